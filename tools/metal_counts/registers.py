"""Estimates of the registers that a thread of a text needs, and of its arithmetic instructions.

clang compiles the text for a GPU of 32 lanes whose registers it allocates itself (gfx1030, 256 vector registers of 32
bits). MSL features that this GPU lacks become opaque instructions, see ``instructions.h``. Apple's compiler allocates
otherwise, so that the count compares two texts, but does not predict a pipeline's report. Addresses of fragments are
not kept over a loop: opaque instructions cannot take a part of theirs as a constant.

What counts is how many values the text needs at once. So instructions are in an order with few live values: the
scheduler for that GPU would fill the registers that are free at its own steps of occupancy with loads that run ahead
(one kernel needs 34 registers, and it takes 197), and pairs of 16-bit values are not computed with together, for which
Apple's GPUs have no instructions.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from metal_lint.clang import PRELUDE, clang

from tile_metal.emulation.tokens import FunctionTokens, outline, tokenize

_INSTRUCTIONS = Path(__file__).parent / "instructions.h"
_FLAGS = (
    "-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-nogpulib",
    "-O2", "-S", "-w", "-ffp-contract=off", "-fno-slp-vectorize", "-mllvm", "-disable-machine-licm",
    "-mllvm", "-enable-misched=0", "-mllvm", "-pre-RA-sched=list-burr", "-I", str(PRELUDE.parent),
    "-include", str(_INSTRUCTIONS),
)  # fmt: skip
_UNROLLED = ("-mllvm", "-unroll-threshold=10000000", "-mllvm", "-unroll-full-max-count=100000")
#: Instructions of lanes but moves, also of halves of words; functions that nothing looks into (``instructions.h``).
_ARITHMETIC = re.compile(r"\s+(v_(?!mov_|readfirstlane|pack_b32|perm_b32)|; (unary|binary)$)")
#: 64-bit additions and shifts, sign extension, and additions but of long constants: clang adds bits that are clear by
#: ``or``, such as 8 to a multiple of 16.
_ADDRESS = re.compile(
    r"\s+(v_add_co|v_lshlrev_b64|v_ashrrev_i32\w* v\d+, 31,|v_add_nc_u32\w*(?!.* 0x[0-9a-f]{6})"
    r"|v_or_b32\w* v\d+, (\d+|0x[0-9a-f]{1,5}), )"
)
#: Attributes of parameters that differ between the threads of a simdgroup.
_OF_THREADS = ("thread_position_in_grid", "thread_position_in_threadgroup", "thread_index_in_threadgroup",
               "thread_index_in_simdgroup")  # fmt: skip


class NoEstimate(Exception):
    """No clang for that GPU is installed, or the text has an undefined function."""


def estimate(text: str) -> int:
    """Return the 32-bit registers of a text's thread, with the spilled ones.

    Raises
    ------
    NoEstimate
        Saying why.
    """
    found = {key: int(n) for key, n in re.findall(r"\.(vgpr_count|vgpr_spill_count):\s+(\d+)", assembly(text))}
    return found["vgpr_count"] + found["vgpr_spill_count"]


def arithmetic(text: str) -> int:
    """Return the arithmetic instructions that a thread executes, with all loops unrolled.

    Both sides of a branch count. Additions that make addresses do not: the addressing of a GPU decides about them.

    Raises
    ------
    NoEstimate
        Saying why.
    """
    lines = assembly(text.replace("unroll(disable)", "unroll(full)"), _UNROLLED).splitlines()
    if any("Loop Header" in line for line in lines):
        raise NoEstimate("a loop has no constant number of iterations")
    return sum(bool(_ARITHMETIC.match(line)) and not _ADDRESS.match(line) for line in lines)


def assembly(text: str, flags: tuple[str, ...] = ()) -> str:
    """Return the instructions that clang makes of a text.

    Raises
    ------
    NoEstimate
        Saying why.
    """
    program = clang()
    if program is None:
        raise NoEstimate("there is no clang")
    done = subprocess.run(
        [program, *_FLAGS, *flags, "-o", "-", "-"], input=_translated(text), capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise NoEstimate(done.stderr.strip()[:2000])
    if "s_swappc" in done.stdout:
        called = re.findall(r"(\w+)@rel32@lo", done.stdout)
        raise NoEstimate(f"without a body: {', '.join(sorted(set(called)))}")
    return done.stdout


def _translated(text: str) -> str:
    """Return the text as OpenCL C++.

    Positions of threads are not parameters, which lanes would share.
    """
    text = re.sub(r"constexpr auto \w+ = mpp::tensor_ops::matmul2d_descriptor\([^;]*;", "", text)
    text = re.sub(r"matmul2d<\w+, ", "matmul2d<void, ", text)
    tokens = tokenize(text)
    edits = [(t.start, t.end, "") for t in tokens if t.kind == "directive" and t.text[1:].split()[:1] == ["include"]]
    code = [t for t in tokens if t.kind != "directive"]
    for function in outline(code).functions:
        if function.is_kernel:
            edits += _kernel(function, code[function.open].end)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _kernel(function: FunctionTokens, body: int) -> list[tuple[int, int, str]]:
    edits = []
    if not any(t.text == "kernel" for t in function.head):
        edits.append((function.head[0].start, function.head[0].start, "__kernel "))
    for parameter in function.parameters:
        if any(name in _OF_THREADS for name, _ in parameter.attributes):
            kind, name = parameter.tokens[0], parameter.tokens[-1]
            edits.append((name.start, name.end, f"{name.text}_shared"))
            edits.append((body, body, f" {kind.text} {name.text} = metal::tile_of_thread<{kind.text}>();"))
    return edits
