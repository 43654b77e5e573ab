"""Loops of products whose operands threads convert: dequantization, scales, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Param, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

#: Storage of the operand, the elements of one of its words, and a word's element ``e`` as an integer or float.
_SOURCES: dict[str, tuple[str, int, str]] = {
    "int4": ("int4", 1, "q[{at}]"), "uint4": ("uint4", 1, "q[{at}]"), "float4": ("float4_e2m1fn", 1, "q[{at}]"),
    "int8": ("int8", 1, "q[{at}]"), "fp8": ("float8_e4m3fn", 1, "q[{at}]"), "float16": ("float16", 1, "q[{at}]"),
    "bytes": ("uint8", 2, '(T.cast(q[{at}], "int32") >> ({e} * 4) & 15)'),
    "signed": ("uint8", 2, '((T.cast(q[{at}], "int32") >> ({e} * 4) & 15 ^ 8) - 8)'),
    "words": ("int32", 8, "((q[{at}] >> ({e} * 4) & 15) - 8)"),
}  # fmt: skip
#: Values of the operand from the element ``x``, its scale ``s`` and its zero ``z``.
_VALUES = (
    'T.cast({x}, "{kind}") * {s}', 'T.cast({x}, "{kind}") * {s}', 'T.cast({x}, "{kind}")',
    '(T.cast({x}, "{kind}") - T.cast({z}, "{kind}")) * {s}', 'T.if_then_else(i != 1, T.cast({x}, "{kind}"), 0)',
    'T.cast(T.max(T.cast({x}, "float32"), 0) * T.cast({s}, "float32"), "{kind}")',
)  # fmt: skip
_THREADS = (128, 128, 128, 256, 64, 96)


@st.composite
def converted_operands(draw: Draw) -> Unit:
    """Draw a loop whose product reads an operand that threads compute from a copied tile."""
    kind = draw(st.sampled_from(("bfloat16", "float16")))
    storage, per, element = _SOURCES[draw(st.sampled_from(tuple(_SOURCES)))]
    m, n = draw(st.sampled_from((16, 8, 64, 64, 48, 17))), draw(st.sampled_from((64, 64, 128, 32, 40)))
    k, group = draw(st.sampled_from((32, 64, 128))), draw(st.sampled_from((16, 32, 64)))
    trips, stages = draw(st.sampled_from((0, 1, 2, 3, 4, 5))), draw(st.sampled_from((0, 2, 3, 4)))
    first, wide = draw(st.sampled_from((False, False, True))), draw(st.sampled_from((1, 2)))
    columns, depth = n * wide - draw(st.sampled_from((0, 0, 3))), max(k * trips, k) - draw(st.sampled_from((0, 0, 32)))
    depth = max(depth, 32)
    at, e = (f"i, j // {per}", f"(j % {per})") if per > 1 else ("i, j", "")
    scale = f"S[bx * {n} + i, (o * {k} + j) // {group}]"
    value = draw(st.sampled_from(_VALUES)).format(
        x=element.format(at=at, e=e), s=scale, z=scale.replace("S[", "Z[", 1), kind=kind
    )
    lines = [f'a = T.alloc_shared(({m}, {k}), "{kind}")', f'q = T.alloc_shared(({n}, {k // per}), "{storage}")']
    lines += [f'w = T.alloc_{draw(st.sampled_from(("shared", "shared", "fragment")))}(({n}, {k}), "{kind}")']
    c = (n, m) if first else (m, n)
    lines += [f'c = T.alloc_fragment({c}, "float32")', "T.clear(c)"]
    lines += [f"for o in T.Pipelined({trips}, num_stages={stages}):", f"    T.copy(A[0, o * {k}], a)"]
    lines += [f"    T.copy(W[bx * {n}, o * {k // per}], q)", f"    for i, j in T.Parallel({n}, {k}):"]
    lines += [f"        w[i, j] = {value}", f"    T.gemm({'w, a' if first else 'a, w'}, c, transpose_B=True)"]
    lines += [f"T.copy(c, B[bx * {n}, 0])" if first else f"T.copy(c, B[0, bx * {n}])"]
    groups = -(-depth // group)
    params = [tensor("A", kind, m, depth), tensor("W", storage, columns, -(-depth // per))]
    params += [tensor("S", kind, columns, groups), tensor("Z", "int8", columns, groups)]
    params += [output("B", "float32", *((columns, m) if first else (m, columns)))]
    data = _data(draw, params)
    needs = frozenset({"float4"}) if storage.startswith("float4") else frozenset[str]()
    return themed(
        "converted-operands", draw, params, "\n".join(lines), {"": data}, VALUE,
        threads=draw(st.sampled_from(_THREADS)), grid=str(wide), needs=needs,
    )  # fmt: skip


def _data(draw: Draw, params: list[Param]) -> dict[str, Any]:
    """Return operands whose products are exact, and scales that are powers of two."""
    data: dict[str, Any] = {}
    for p in params:
        shape = tuple(int(n) for n in p.shape or ())
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        if p.name == "W" and p.dtype in ("uint8", "int32"):
            high = 256 if p.dtype == "uint8" else 2**32
            data["W"] = rng.integers(0, high, shape).astype("uint8" if p.dtype == "uint8" else "uint32").view(p.dtype)
        elif p.name == "S":
            data["S"] = np.exp2(rng.integers(-1, 2, shape)).astype(randoms(draw, (1,), p.dtype).dtype)
        elif not p.out:
            data[p.name] = randoms(draw, shape, p.dtype, 0 if p.dtype == "uint4" else -3, 3)
    return data
