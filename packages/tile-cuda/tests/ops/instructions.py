"""Matrix instructions of a warp, on the test machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from machine import Address

from tile_cuda.ptx.table import TABLE

from ..vectors import products


def instructions() -> dict[str, Any]:
    """Return implementations of ``ldmatrix`` and the products, by name."""
    return {name: _named(name) for name in TABLE if name.startswith(("ldmatrix", "mma_sync", "mma_sp"))}


def _named(name: str) -> Any:
    def execute(machine: Any, args: Sequence[Any], on: Any) -> None:
        warps = on.reshape(-1, 32)
        assert (warps.all(1) | ~warps.any(1)).all(), f"{name} by a part of a warp"
        (_ldmatrix if name.startswith("ldmatrix") else _multiply)(name, args, on)

    return execute


def _registers(arg: Address, on: Any, count: int, kind: Any) -> tuple[Any, Any]:
    held, at = arg.registers(count, on)
    assert held.dtype == kind, f"{arg.region.name} is {held.dtype}, not {kind}"
    return held, at


def _ldmatrix(name: str, args: Sequence[Any], on: Any) -> None:
    count = int(re.search(r"_x(\d)", name)[1])  # type: ignore[index]
    wanted = on & (np.arange(len(on)) % 32 < 8 * count)
    rows = args[1].read(16, wanted).view(np.uint16).reshape(-1, 32, 8)[:, : 8 * count].reshape(-1, count, 8, 8)
    if "trans" in name:
        rows = rows.transpose(0, 1, 3, 2)
    words = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, count, 32).transpose(0, 2, 1)
    target, to = _registers(args[0], on, count, np.uint32)
    target[to[0][on], to[1][on]] = words.reshape(len(on), count)[on]


def _multiply(name: str, args: Sequence[Any], on: Any) -> None:
    m, k, types = re.search(r"_m(\d+)n8k(\d+)_row_col_(.*)", name).groups()  # type: ignore[union-attr]
    c, a, b = types.split("_")[:3]
    stored = int(k) // (2 if "_sp_" in name else 1)
    kind = {"f32": np.float32, "s32": np.int32, "f64": np.float64}[c]
    word = np.float64 if a == "f64" else np.uint32
    bits = 64 if a == "f64" else products.BITS[a]
    sizes = (2 if m == "8" else 4, max(1, stored * int(m) * bits // 1024), max(1, int(k) * bits // 128))
    if a == "f64":
        sizes = (2, 1, 1)
    total, to = _registers(args[0], on, sizes[0], kind)
    left, right, held = (
        found[at] for found, at in (
            _registers(args[1], on, sizes[1], word), _registers(args[2], on, sizes[2], word),
            _registers(args[3], on, sizes[0], kind),
        )
    )  # fmt: skip
    metadata = args[4] if len(args) > 4 else None
    selector = int(name.rsplit("_", 1)[1]) if metadata is not None else 0
    for first in range(0, len(on), 32):
        lanes = slice(first, first + 32)
        if on[first]:
            shape = (int(k), stored, selector, None if metadata is None else metadata[lanes])
            total[lanes][to[0][:32], to[1][lanes]] = warp_product(
                left[lanes], right[lanes], held[lanes], (c, a, b), *shape
            )


def warp_product(
    left: Any, right: Any, held: Any, types: tuple[str, str, str], k: int, stored: int, selector: int, metadata: Any
) -> Any:
    """Return the accumulators after an instruction."""
    c, a, b = types
    g, t = np.arange(32) // 4, np.arange(32) % 4
    if a == "f64":
        x, y, z = np.zeros((8, 4)), np.zeros((4, 8)), np.zeros((8, 8))
        x[g, t], y[t, g] = left[:, 0], right[:, 0]
        z[g, 2 * t], z[g, 2 * t + 1] = held[:, 0], held[:, 1]
        z = z + x @ y
        return np.stack([z[g, 2 * t], z[g, 2 * t + 1]], axis=1)
    x, y = products.matrix_a(left, a, stored), products.matrix_b(right, b, k)
    z = products.matrix_c(held, c)
    if metadata is None:
        z = z + x @ y
    else:
        chosen = products.columns_of(metadata, a, k, selector)
        z = z + (x[:, :, None] * y[chosen]).sum(axis=1)
    found = products.fragment(z)
    return found.astype(np.int64).astype(np.int32) if c == "s32" else found.astype(np.float32)
