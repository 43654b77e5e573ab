"""The instruction of a product, by the element types of its operands."""

from __future__ import annotations

from functools import cache
from itertools import product

from tile_core.dtypes import DTYPES
from tile_core.lowering.legality import Atom
from tile_rocm_stub.instructions import INSTRUCTIONS, Instruction

#: Element types of the language that instructions take, by the instructions' own names; 8-bit floats vary.
ELEMENTS = {
    "f16": "float16", "bf16": "bfloat16", "i8": "int8", "f32": "float32", "xf32": "float32", "f64": "float64",
}  # fmt: skip
_FLOATS = tuple(n for n, d in DTYPES.items() if d.is_float and d.has_zero)
_TOTALS = ("float16", "bfloat16", "float32")


def small_floats(fp8: str) -> dict[str, str]:
    """Return the instructions' names of the language's 8-bit floats.

    Parameters
    ----------
    fp8
        Those of the architecture: ``"fnuz"`` or ``"fn"``.
    """
    fnuz = fp8 == "fnuz"
    return {f"float8_e4m3{fp8}": "fp8", "float8_e5m2fnuz" if fnuz else "float8_e5m2": "bf8"}


@cache
def instruction_for(
    types: tuple[str, str, str], fp8: str, xf32: bool, sparse: bool, rows: int = 16
) -> Instruction | None:
    """Return the instruction for element types of A, B and C, or ``None``.

    Operands of other types are converted as they are read, exactly. Float32 is not rounded: its products are those of
    ``v_mfma_f32_16x16x4_f32``, as are those of tfloat32 where there is no ``xf32``.
    """
    names = _inputs(types, small_floats(fp8), xf32, sparse)
    if names is None:
        return None
    found = [i for i in INSTRUCTIONS.values() if (i.inputs, i.sparse, i.m) == (names, sparse, rows)]
    return found[0] if found else None


def _inputs(types: tuple[str, str, str], small: dict[str, str], xf32: bool, sparse: bool) -> tuple[str, str] | None:
    a, b, c = types
    if (a, b) == ("int8", "int8"):
        return ("i8", "i8") if c in ("int32", "uint32") else None
    if a not in _FLOATS or b not in _FLOATS:
        return None
    if c == "float64":
        return None if sparse else ("f64", "f64")
    if c not in _TOTALS or "float64" in (a, b):
        return None
    if a in small and b in small:
        return small[a], small[b]
    wide = {t for t in (a, b) if not DTYPES[t].is_narrow}
    if len(wide) == 2 or wide & {"float32", "tfloat32"}:
        # Numbers of float32 have more than the 10 bits of mantissa that xf32 looks at; all others fit.
        only = "xf32" if xf32 and "float32" not in wide else "f32"
        return None if sparse else (only, only)
    only = {"bfloat16": "bf16"}.get(wide.pop() if wide else "float16", "f16")
    return only, only


@cache
def table(fp8: str, xf32: bool, sparse: bool) -> tuple[Atom, ...]:
    """Return the shapes with their combinations of element types, as a legality table."""
    found: dict[Instruction, set[tuple[str, str, str]]] = {}
    inputs = (*_FLOATS, "int8")
    for types in product(inputs, inputs, (*_TOTALS, "float64", "int32", "uint32")):
        chosen = instruction_for(types, fp8, xf32, sparse)
        if chosen is not None and not (sparse and DTYPES[types[0]].bits not in (8, 16)):
            found.setdefault(chosen, set()).add(types)
    names = {**ELEMENTS, "xf32": "tfloat32", **{name: dtype for dtype, name in small_floats(fp8).items()}}
    return tuple(
        Atom({"M": i.m, "N": i.n, "K": i.k}, frozenset(types), (*(names[x] for x in i.inputs), i.total))
        for i, types in sorted(found.items(), key=lambda entry: entry[0].name)
    )
