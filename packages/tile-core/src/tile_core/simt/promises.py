"""What a text assumes about the arguments of a launch, which the launch then checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.alignment import WIDEST, Aligned, row_symbols


def assume(params: Iterable[Any], address: int = WIDEST, divisor: int = WIDEST) -> Aligned:
    """Return what a fast text assumes: addresses of all parameters, and symbols that are part of their row strides."""
    buffers = [p for p in params if tirx.is_buffer_var(p)]
    return Aligned(dict.fromkeys(buffers, address), {v: divisor for b in buffers for v in row_symbols(b)})


def relied(body: Any, aligned: Aligned) -> Aligned:
    """Return what the wide accesses of a thread's code need of an assumption."""
    used: set[Any] = set()
    for call in collect(body, ir.Call):
        if nodes.is_tile_call(call, "move") or nodes.is_tile_call(call, "address"):
            used |= {a.source for a in call.args if isinstance(a, ir.TensorLoad)}
    buffers = [b for b in aligned.addresses if b in used]
    symbols = {v for b in buffers for v in row_symbols(b)}
    return Aligned(
        {b: aligned.addresses[b] for b in buffers}, {v: n for v, n in aligned.divisors.items() if v in symbols}
    )
