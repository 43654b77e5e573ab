"""The functions of the table that implement an atomic operation of the language."""

from __future__ import annotations

from tile_core.records import dataclass
from tile_cuda.ptx.exchange_loops import BITS, loop_name
from tile_cuda.ptx.memory import SCOPES
from tile_cuda.ptx.table import TABLE, has
from tile_cuda.ptx.values import VALUES


@dataclass(frozen=True)
class Atomic:
    """The functions of an atomic operation.

    Attributes
    ----------
    name
        The function: of the address and, unless it loads, the value.
    dtype
        Type of the value that it takes and returns; others of the same width are reinterpreted.
    fence
        A function without arguments that must run before, or ``""``.
    """

    name: str
    dtype: str
    fence: str = ""


def update(kind: str, dtype: str, space: str, order: str, *, returns: bool, arch: str) -> Atomic:
    """Return how an element is updated.

    Parameters
    ----------
    kind
        ``"add"``, ``"max"``, ``"min"``, ``"and"``, ``"or"`` or ``"xor"``.
    dtype
        The element's type.
    space
        ``"global"`` or ``"shared"``.
    order
        A memory order of the language.
    returns
        Whether the previous value is used.
    arch
        The architecture.
    """
    sem, fence = _order(order, space)
    value = VALUES[dtype]
    name, taken = value.name, dtype
    if name == "s64" and kind == "add":
        name, taken = "u64", "uint64"
    if kind in BITS and value.bits >= 32:
        name, taken = f"b{value.bits}", f"uint{value.bits}"
    op = f"{kind}_noftz" if name in ("f16", "bf16") and kind == "add" else kind
    qualified = f"{sem}_{SCOPES[space]}_{space}" if sem else space
    red, atom = f"red_{qualified}_{op}_{name}", f"atom_{qualified}_{op}_{name}"
    for candidate in (() if returns else (red,)) + (atom,):
        if candidate in TABLE and has(TABLE[candidate], arch):
            return Atomic(candidate, taken, fence)
    return Atomic(loop_name(kind, value.name, space, sem), dtype, fence)


def load(dtype: str, space: str, order: str) -> Atomic:
    """Return how an element is loaded."""
    fence = _order(order, space)[1]
    sem = "relaxed" if order == "relaxed" else "acquire"
    kind, bits = _bits(dtype)
    return Atomic(f"ld_{sem}_{SCOPES[space]}_{space}_{kind}", bits, fence)


def store(dtype: str, space: str, order: str) -> Atomic:
    """Return how an element is stored."""
    fence = _order(order, space)[1]
    sem = "relaxed" if order == "relaxed" else "release"
    kind, bits = _bits(dtype)
    return Atomic(f"st_{sem}_{SCOPES[space]}_{space}_{kind}", bits, fence)


def _order(order: str, space: str) -> tuple[str, str]:
    """Return the order of the instruction, and the additional fence that sequential consistency needs."""
    if order == "seq_cst":
        return "acq_rel", f"fence_sc_{SCOPES[space]}"
    return {"relaxed": "", "consume": "acquire"}.get(order, order), ""


def _bits(dtype: str) -> tuple[str, str]:
    bits = VALUES[dtype].bits
    return ("u8" if bits == 8 else f"b{bits}"), f"uint{bits}"
