"""The CPU's targets: ``cpu:<LLVM's name of a processor>`` with its capabilities."""

from __future__ import annotations

import functools
from typing import Any

from tile_core.compat.tvm import tvm
from tile_core.cpu.isa import Isa, detect
from tile_core.cpu.processors import is_64_bit, is_swept
from tile_core.errors.lowering import UnknownProcessor
from tile_core.target import Capabilities, Fact, Target, every_atomic
from tile_runtime.errors.guess import nearest

ISA: Fact[str] = Fact("isa", str)

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float16", "bfloat16", "float32", "float64")
#: Blocks are given their scratch by the heap; the limit only keeps a typo from exhausting the machine's memory.
_SCRATCH_BYTES = 1 << 30


def make_target(arch: str) -> Target:
    """Return the target of a processor name; of this machine for an empty one.

    Raises
    ------
    UnknownProcessor
        If the name is not in LLVM's list of processors, or is that of a 32-bit processor.
    """
    isa = detect() if arch in ("", "native") else _isa(arch)
    return Target(
        text=f"cpu:{isa.mcpu}",
        kind="cpu",
        backend="cpu",
        arch=isa.mcpu,
        capabilities=Capabilities(
            max_threads=1024,
            shared_bytes=_SCRATCH_BYTES,
            vector_bytes=tuple(b for b in (4, 8, 16, 32, 64) if b * 8 <= isa.vector_bits),
            native_dtypes=frozenset({"bool", "float32", "float64", "float16", *_INTEGERS}),
            atomics=every_atomic(_INTEGERS, _FLOATS),
            offset_bits=64,
            extra=ISA.value(isa.name),
        ),
    )


def isa_of(target: Target) -> Isa:
    """Return the vector unit's facts."""
    return _isa(target.arch)


@functools.lru_cache(maxsize=32)
def _isa(arch: str) -> Isa:
    host = detect()
    if arch == host.mcpu:
        return host
    known: list[Any] = [str(n) for n in tvm.target.codegen.llvm_get_cpu_archlist(tvm.target.Target({"kind": "llvm"}))]
    if arch not in known or not is_64_bit(arch):
        near = nearest(arch, [name for name in known if name != arch and is_swept(name)], 3) or [host.mcpu]
        raise UnknownProcessor(found=arch, near=", ".join(near))
    return Isa.for_cpu(arch)
