"""Flags of the host compiler."""

from __future__ import annotations

# No C++ runtime library; frame pointers for stack walks; wrapping integers and uncontracted floats.
FLAGS = (
    "-std=c++17", "-g1", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
    "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
)  # fmt: skip
ENGINE_FLAGS = ("-O2", "-fno-sanitize=all", "-fno-semantic-interposition")
# Large frames touch the guard page of a stack; registers that nothing has set hold no zeros. What C++ leaves undefined
# is noticed before the compiler computes with it: constants too.
KERNEL_FLAGS = (
    "-O1", "-w", "-fstack-clash-protection", "-ftrivial-auto-var-init=pattern",
    "-fsanitize=integer-divide-by-zero,shift-exponent,float-cast-overflow", "-fsanitize-recover=all",
)  # fmt: skip
# Less is optimised where accesses are checked: such a kernel runs once or twice, most often for less time than that.
CHECK_FLAGS = ("-Og", "-fsanitize=thread", "-fsanitize=alignment,bounds")
# Left alone, it does not show reads of what is written right after.
CLANG_CHECK_FLAGS = ("-mllvm", "-tsan-instrument-read-before-write=1")
#: The levels of optimisation of kernels.
LEVELS = ("-O1", "-Og")
