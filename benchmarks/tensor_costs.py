"""Bytes moved per iteration by `tcgen05` main loops, against limits of the chip.

They are counted in the emitted texts.

::

    python benchmarks/tensor_costs.py                print the table
    python benchmarks/tensor_costs.py --page FILE    write it into a page, between its marks

Nothing runs: no GPU with these instructions was available. The texts are those that the compiler emits for sm_100a; the
limits are published numbers (`LIMITS`), not our measurements. An iteration takes at least as long as the slowest unit
needs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools")]

from zoo import programs  # noqa: E402
from zoo.table import BF16, F16, FP8, INT8, NT, TF32  # noqa: E402

from tile_core.compiler import lower  # noqa: E402
from tile_core.plugins.contexts import make_context  # noqa: E402
from tile_core.plugins.manager import installed  # noqa: E402

#: Of a multiprocessor and a clock. Tensor unit: 2.25 dense float16 PFLOP/s of a B200 (148 multiprocessors, 1.85 GHz),
#: twice that for 8-bit types, four times for 4-bit types, half for tf32; twice that with a sparse A. Shared memory: 128
#: bytes, as products of fewer than 128 columns from shared memory were found to be bound by (SemiAnalysis, "Dissecting
#: Nvidia Blackwell", 2026); TMA writes there hardly competed with such reads on an H200. Loads: the rate that TMA was
#: measured to load there, from the L2 cache and without multicast.
LIMITS = {"multiplications": 4096, "shared bytes": 128, "loaded bytes": 50}
#: Dense multiplications of a kind, in units of those of 16-bit types; bits of an element.
KINDS = {
    "f16": (1.0, 16), "tf32": (0.5, 32), "f8f6f4": (2.0, 8), "i8": (2.0, 8), "mxf8f6f4": (2.0, 8), "mxf4": (4.0, 4),
    "mxf4nvf4": (4.0, 4),
}  # fmt: skip
#: How tiles that blocks share are loaded, beside each block for itself.
OPTIONS: dict[str, dict[str, object]] = {
    "by default: roles and clusters of 2": {"persistent": "auto"},
    "roles and clusters of 4": {"persistent": "auto", "clusters": 4},
    "clusters of 2": {"clusters": 2}, "clusters of 4": {"clusters": 4}, "pairs of blocks": {"clusters": "pairs"},
}  # fmt: skip
ROWS, BYTES, COPIED = 128, 32, 512
BEGIN, END = "<!-- tensor costs -->", "<!-- end of tensor costs -->"
_PRODUCT = re.compile(r"tcgen05_mma_(sp_)?cta_group_(\d)_kind_(\w+?)(?:_block_scale_\w+)?\(.*, (\d+)u, [^,]+\);")
_MULTICAST = re.compile(r"multicast_cluster\(&(\w+)\[slot\w* \* (\d+)")
_ANNOUNCED = re.compile(r"arrive_expect_tx\w*\([^,]*, (\d+)\)")
_MOVED = re.compile(r"tcgen05_(?:ld|st)_sync_aligned_32x32b_x(\d+)_b32")


@dataclass(frozen=True)
class Iteration:
    """Bytes moved by one iteration of a loop, and its multiplications.

    Multiplications are those of a dense A.

    Attributes
    ----------
    loaded
        To shared memory.
    read
        From shared memory, by products: each reads its part of A and of B.
    moved
        Between tensor memory and registers, by threads.
    multiplications
        In units of dense ones of 16-bit types: what the tensor unit takes time for.
    """

    loaded: int
    read: int
    moved: int
    multiplications: float

    def clocks(self) -> dict[str, float]:
        """Return the clocks that each unit needs."""
        return {
            "tensor unit": self.multiplications / LIMITS["multiplications"],
            "shared memory": self.read / LIMITS["shared bytes"],
            "loads": self.loaded / LIMITS["loaded bytes"],
        }


def iteration_of(text: str) -> Iteration:
    """Count one iteration of the text's loop with products.

    Raises
    ------
    ValueError
        There is none.
    """
    loops = list(_loops(text[text.index('extern "C"') :]))
    loop = next((b for b in loops if _PRODUCT.search(b)), None)
    if loop is None:
        raise ValueError("the text has no loop with products on tcgen05")
    # Where blocks have roles, another loop of the same trip count copies.
    copies = loop if _ANNOUNCED.search(loop) else next(b for b in loops if _ANNOUNCED.search(b))
    read, work, size = 0, 0.0, 0
    for sparse, blocks, kind, descriptor in _PRODUCT.findall(loop):
        columns, (rate, bits) = (int(descriptor) >> 17 & 63) * 8, KINDS[kind]
        # A sparse instruction takes twice the depth of B, in the time of a dense one.
        # A pair of blocks has 128 rows, and half of the columns of B, in each.
        read += ROWS * BYTES + columns // int(blocks) * BYTES * (2 if sparse else 1)
        size = bits // 8
        work += ROWS * columns * (BYTES * 8 // bits) / rate
    read += COPIED * loop.count("tcgen05_cp_")
    moved = sum(int(n) * 4 * ROWS for n in _MOVED.findall(loop))
    # Of a multicast tile each of two blocks loads half: its slot's elements count instead of a copy.
    slots = dict(_MULTICAST.findall(copies))
    multicast = sum(int(elements) * size // 2 for elements in slots.values())
    return Iteration(sum(map(int, _ANNOUNCED.findall(copies))) - multicast, read, moved, work)


def rows() -> Iterator[tuple[str, Iteration]]:
    """Yield the kernels, and an iteration of each."""
    return ((name, made()) for name, made in kernels())


def kernels() -> Iterator[tuple[str, Callable[[], Iteration]]]:
    """Yield the kernels, and functions that compile them and count an iteration."""
    for name, types, block, trans in (
        ("float16", F16, (256, 256, 64), NT), ("float16", F16, (128, 256, 64), NT),
        ("float16", F16, (256, 128, 64), NT),
        ("float16", F16, (128, 208, 64), NT), ("float16", F16, (128, 128, 64), NT),
        ("float16", F16, (128, 64, 64), NT), ("bfloat16", BF16, (128, 192, 64), NT), ("tf32", TF32, (128, 192, 32), NT),
        ("e4m3 x e5m2", FP8, (256, 256, 128), NT),
        ("e4m3 x e5m2", FP8, (128, 192, 128), NT), ("int8", INT8, (128, 192, 128), NT),
    ):  # fmt: skip
        how = (types, block, 3, trans, 128)
        made = partial(programs.gemm, 1024, 768, 1024, *how)
        yield f"{name}, {' x '.join(map(str, block))}", partial(_iteration, made, clusters="never")
        if block[:2] != (256, 256) and block != (128, 256, 64):
            continue
        made = partial(programs.gemm, 1024, 1024, 1024, *how)
        for what, options in OPTIONS.items():
            yield f"{name}, {' x '.join(map(str, block))}, {what}", partial(_iteration, made, **options)
    for block in ((128, 192, 64), (128, 192, 128), (128, 256, 64)):
        made = partial(programs.gemm_sp, 1024, 768, 1024, "float16", False, block)
        yield f"2:4 sparse float16, {' x '.join(map(str, block))}", partial(_iteration, made, clusters="never")
    for name, types, per, block in (
        ("MXFP8", ("float8_e4m3fn", "float8_e8m0fnu"), 32, (128, 192, 128)),
        ("MXFP4", ("float4_e2m1fn", "float8_e8m0fnu"), 32, (128, 192, 256)),
        ("NVFP4", ("float4_e2m1fn", "float8_e4m3fn"), 16, (128, 192, 256)),
    ):
        made = partial(programs.scaled_gemm, 1024, 768, 2048, types, per, block, 3)
        # Threads copy scales in rows of fewer than 16 bytes: no barrier expects their bytes.
        row = block[2] // per
        scales = (block[0] + block[1]) * row if row < 16 else 0
        yield f"{name}, {' x '.join(map(str, block))}", partial(_iteration, made, scales, clusters="never")


def table(found: Iterable[tuple[str, Iteration]]) -> str:
    """Return the table of kernels, in Markdown."""
    lines = [
        "| kernel, tile | loaded | read by products | moved by threads | clocks: tensor unit | shared memory | loads "
        "| bound by |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, iteration in found:
        clocks = iteration.clocks()
        most = max(clocks, key=lambda unit: clocks[unit])
        cells = [
            f"{iteration.loaded:,}",
            f"{iteration.read:,}",
            f"{iteration.moved:,}",
            *(f"{c:,.0f}" for c in clocks.values()),
            most,
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def in_page(page: str, found: str) -> str:
    """Return a page with the table between its marks."""
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{found}\n\n{END}{rest.split(END)[1]}"


def _iteration(made: Callable[[], object], more: int = 0, **options: object) -> Iteration:
    """Return an iteration of a program, with loaded bytes that no barrier expects."""
    iteration = iteration_of(_text(made(), **options))
    return replace(iteration, loaded=iteration.loaded + more)


def _text(program: object, **more: object) -> str:
    context = make_context("cuda:sm_100a", {"tcgen05": "always", "tma": "always", "persistent": "never", **more})
    return str(lower(program, context, installed()).lowered.text)


def _loops(text: str) -> Iterator[str]:
    """Yield the bodies of loops, by the indentation of their last brace."""
    for found in re.finditer(r"\n( *)for \([^\n]*\) \{\n", text):
        yield text[found.end() :].split(f"\n{found[1]}}}\n")[0]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    page = parser.parse_args().page
    found = table(rows())
    if page is None:
        print(found)
    else:
        page.write_text(in_page(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
