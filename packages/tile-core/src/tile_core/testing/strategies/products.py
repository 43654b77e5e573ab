"""Steps that multiply tiles: dense products and 2:4 sparse ones."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Block, Sketch, limit, sparse_operand
from tile_core.testing.strategies.draws import EXTENTS, SCOPES, Draw, is_matrix, offset, pick

#: Accumulator by the kind of operands.
_ACCUMULATORS = {
    "float32": "float32", "float16": "float32", "bfloat16": "float32", "float64": "float64", "int8": "int32",
    "uint8": "int32", "int16": "int32", "int32": "int32", "uint32": "uint32", "int64": "int64",
    "uint64": "uint64",
}  # fmt: skip


def product(draw: Draw, sketch: Sketch, block: Block, times: int = 1) -> None:
    """Multiply a tile by a newly loaded one, into a new or an old accumulator."""
    a = pick(draw, sketch, is_matrix)
    if a is None:
        return
    ta, tb = draw(st.booleans()), draw(st.booleans())
    m, k = a.shape[::-1] if ta else a.shape
    n = draw(st.sampled_from(EXTENTS))
    acc = _ACCUMULATORS[a.dtype]
    is_int = DTYPES[acc].is_integer
    bound = a.bound * 3.0 * k * times
    if bound * 2 > limit(acc) and not is_int:
        return
    b = sketch.alloc((n, k) if tb else (k, n), a.dtype, draw(st.sampled_from(SCOPES)), float("inf") if is_int else 3.0)
    source = sketch.input(a.dtype)
    row = offset(draw, 4)
    block.add(f"T.copy({source}[{row}, 0], {b.name})")
    old = pick(draw, sketch, lambda t: t.shape == (m, n) and t.dtype == acc and t.name != a.name)
    c = (
        old
        if old is not None and draw(st.booleans())
        else sketch.alloc((m, n), acc, draw(st.sampled_from(SCOPES)), 0.0)
    )
    total = c.bound + bound
    if total > limit(acc) and not is_int:
        return
    sketch.grown(c, float("inf") if is_int else total)
    clear = draw(st.booleans())

    flags = f"transpose_A={ta}, transpose_B={tb}, clear_accum={clear}"
    block.add(f"T.gemm({a.name}, {b.name}, {c.name}, {flags})")


def sparse_product(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Multiply a 2:4 sparse operand, a parameter of its own, by a loaded tile."""
    dtype, meta = draw(
        st.sampled_from((("float16", "int16"), ("bfloat16", "int32"), ("int8", "int32"), ("float32", "int16")))
    )
    m, n, k = (
        draw(st.sampled_from((8, 17, 32, 64, 128))),
        draw(st.sampled_from(EXTENTS)),
        draw(st.sampled_from((32, 64))),
    )
    tb = draw(st.booleans())
    name = sketch.fresh("S")
    kept, metadata = sparse_operand(draw(st.integers(0, 10**6)), m, k, dtype, meta)
    sketch.extras[f"{name}"] = (dtype, kept)
    sketch.extras[f"{name}E"] = (meta, metadata)
    acc = _ACCUMULATORS[dtype]
    a = sketch.alloc((m, k // 2), dtype, "shared", 3.0)
    e = sketch.alloc(metadata.shape, meta, "shared", float("inf"))
    b = sketch.alloc((n, k) if tb else (k, n), dtype, "shared", float("inf") if DTYPES[dtype].is_integer else 3.0)
    c = sketch.alloc((m, n), acc, "fragment", float("inf") if DTYPES[acc].is_integer else 9.0 * k)
    source, row = sketch.input(dtype), offset(draw, 3)
    name_of_op = draw(st.sampled_from(("gemm_sp", "gemm_sp", "gemm_sp_v2")))

    lines = [f"T.copy({name}, {a.name})", f"T.copy({name}E, {e.name})", f"T.copy({source}[{row}, 0], {b.name})"]
    flags = f"transpose_B={tb}, clear_accum=True"
    block.add("\n".join([*lines, f"T.{name_of_op}({a.name}, {e.name}, {b.name}, {c.name}, {flags})"]))
