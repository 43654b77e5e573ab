"""Divided and shifted masks of loop variables: NVRTC's code computes the program's values."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import tile_core as tile
from tile_core import language as T

from .nvrtc import ptx_of
from .ptx_machine import Memory, execute

_LOOPS = {
    "serial": "for i in T.serial({n}):",
    "partly unrolled": "for i in T.unroll({n}, unroll_factor=4):",
    "parallel": "for i in T.Parallel({n}):",
    "while": "while i < {n}:",
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", [1, 2, 7])
@pytest.mark.parametrize("loop", _LOOPS)
def test_an_index_is_masked_and_divided(loop: str, seed: int) -> None:
    """Without the opaque moves of ``masked_shifts`` most of these programs read other elements."""
    rng = random.Random(f"{loop}{seed}")
    loops = [(rng.choice([16, 32, 48, 64]), _index(rng)) for _ in range(6)]
    lines = ["i = T.alloc_var('int32', init=0)"] if loop == "while" else []
    for row, (n, index) in enumerate(loops):
        lines += ["i = 0"] if loop == "while" else []
        lines += [_LOOPS[loop].format(n=n), f"    B[{row * 64} + i] = A[{index}]"]
        lines += ["    i = i + 1"] if loop == "while" else []
    a = np.random.default_rng(seed).integers(0, 1 << 30, 1024, dtype="int32")
    b = _run(_program(lines, "int32", 1024, 6 * 64), a, np.zeros(6 * 64, "int32")).reshape(6, 64)
    for found, (n, index) in zip(b, loops, strict=True):
        expected = [a[eval(index, {"i": i})] for i in range(n)]
        np.testing.assert_array_equal(found[:n], expected, err_msg=index)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["uint4", "int4", "float4_e2m1fn"])
@pytest.mark.parametrize("shift", [2, 3, 7])
def test_half_bytes_are_written_in_a_rotated_order(dtype: str, shift: int) -> None:
    """``B[(i + 3) % 16] = A[15 - i]`` wrote behind the end of B."""
    program = _program(["for i in T.Parallel(16):", f"    B[(i + {shift}) % 16] = A[15 - i]"], dtype, 16, 16)
    a, before = np.random.default_rng(shift).integers(0, 256, (2, 8), dtype=np.uint8)
    after = _halves(_run(program, a, before))
    np.testing.assert_array_equal(after[(np.arange(16) + shift) % 16], _halves(a)[::-1])


def test_a_module_that_reads_behind_an_array_is_noticed() -> None:
    memory = Memory()
    with pytest.raises(IndexError, match="4 bytes at 0x10008"):
        execute(
            ".visible .entry k(\n.param .u64 p)\n{\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1+8];\nret;\n}",
            [memory.put(bytes(8))], memory,
        )  # fmt: skip


def _index(rng: random.Random) -> str:
    """Return an index below 1,024 of the form that is miscompiled."""
    start = rng.choice([f"i + {rng.randrange(1, 9)}", f"i * {rng.randrange(1, 5)} + {rng.randrange(1, 9)}"])
    masks = [f"% {rng.choice([8, 16, 32, 64])}", f"& {rng.choice([15, 31, 63, 62, 60])}", "// 4 * 4", ">> 2 << 3"]
    inner = f"({start}) {rng.choice(masks)}"
    return f"(({inner}){rng.choice(['', ' ^ 4', ' + 1'])}) {rng.choice(['// 2', '// 4', '>> 1', '>> 3', '// 2 % 16'])}"


def _program(lines: list[str], dtype: str, read: int, written: int) -> Any:
    text = "\n".join([
        "@T.prim_func",
        f"def kernel(A: T.Tensor(({read},), '{dtype}'), B: T.Tensor(({written},), '{dtype}')):",
        "    with T.Kernel(1, threads=1):",
        *(f"        {line}" for line in lines),
    ])  # fmt: skip
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {"T": T}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"]


def _run(program: Any, a: Any, b: Any) -> Any:
    text = tile.compile(program, target="cuda:sm_90a", runtime="emulator").source
    memory = Memory()
    addresses = [memory.put(x.tobytes()) for x in (a, b)]
    execute(ptx_of(text, "compute_90a"), addresses, memory)
    return np.frombuffer(bytes(memory.arrays[addresses[1]]), b.dtype)


def _halves(data: Any) -> Any:
    return np.stack([data & 15, data >> 4], -1).reshape(-1)


@pytest.mark.parametrize("form", ["-2 - (v + i)", "i * 3 + v", "v - i"])
def test_an_index_that_wraps_is_not_widened_before(form: str) -> None:
    """Keep an index that wraps in 32 bits: widening before the guard changes addresses."""
    lines = [
        "for i in range(-2147483648, 2147483647, 536870912):",
        "    p = T.cast((T.cast(i, 'int64') + 2147483648) // 536870912, 'int32')",
        "    B[p] = A[z[0]]",
        f"    B[8 + p] = A[{form} + z[0]]",
    ]
    text = _text(lines)
    assert "A[(long long)mov_b32_opaque(" in text
    assert "(long long)(int)((unsigned)" not in text


@pytest.mark.parametrize("form", ["-i", "-2 - (v + i)", "v - i"])
def test_an_index_that_wraps_is_extended_by_the_address(form: str) -> None:
    """The same for arrays with an index of 32 bits, on the PTX that NVRTC makes."""
    lines = [
        "for i in range(-2147483648, 2147483647, 536870912):",
        "    p = T.cast((T.cast(i, 'int64') + 2147483648) // 536870912, 'int32')",
        "    B[p] = A[z[0] * 0 + 3]",
        f"    B[8 + p] = A[{form} + z[0]]",
    ]
    text = _text(lines, "n = 29")
    assert "A[mov_b32_opaque(" in text
    a, b, z = np.arange(1, 30, dtype="int32"), np.zeros(16, "int32"), np.zeros(2, "int32")
    memory = Memory()
    addresses = [memory.put(x.tobytes()) for x in (a, b, z)]
    execute(ptx_of(text, "compute_90a").replace("%tid.x", "0"), [*addresses, 5], memory)
    found = np.frombuffer(bytes(memory.arrays[addresses[1]]), "int32")
    steps = range(-(2**31), 2**31 - 1, 2**29)
    wrapped = [(eval(form, {"i": i, "v": 5}) + 2**31) % 2**32 - 2**31 for i in steps]
    assert found.tolist() == [4] * 8 + [int(a[x]) if 0 <= x < 29 else 0 for x in wrapped]


def _text(lines: list[str], size: str = 'n = T.dynamic("n", "int64")') -> str:
    source = "\n".join([
        size,
        "@T.prim_func",
        'def k(A: T.Tensor((n,), "int32"), B: T.Tensor((16,), "int32"), z: T.Tensor((2,), "int32"), v: T.int32):',
        "    with T.Kernel(1, threads=32):",
        *(f"        {line}" for line in lines),
    ])  # fmt: skip
    name = f"<widened {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"T": T}
    exec(compile(source, name, "exec"), scope)
    return tile.compile(scope["k"], "cuda:sm_90a", runtime="emulator").source
