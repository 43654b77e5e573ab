"""Loops of products whose operands threads convert: dequantization, scales, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Param, Unit, output, tensor
from tile_core.testing.data import stored
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed
from tile_core.testing.tables.converted_operands import PACKED, PRODUCTS, SOURCES, VALUES, element

_THREADS = (128, 128, 128, 256, 64, 96)
#: Storages: targets have ways of their own for those of 4 bits.
_SOURCES = (*SOURCES, *(("int4", "uint4") * 2))
#: Elements of K in an iteration and in a group with one scale: whole words of all storages, then others.
_DEPTHS = (
    (32, 16),
    (32, 32),
    (32, 32),
    (64, 16),
    (64, 32),
    (64, 64),
    (128, 32),
    (128, 64),
    (128, 128),
    (192, 96),
    (64, 100),
    (128, 256),
)
_ODD = ((66, 66), (130, 65), (198, 99), (132, 44), (70, 140))
_CODES = {"int4": (-8, 8), "uint4": (0, 16)}
#: The most elements that threads convert for a block: the plain executor takes a second for 4 thousand.
_MOST = 8_192


@st.composite
def converted_operands(draw: Draw) -> Unit:
    """Draw a loop whose product reads an operand that threads compute from a tile."""
    kind = draw(st.sampled_from(("bfloat16", "float16")))
    source = draw(st.sampled_from(_SOURCES))
    storage, per = SOURCES[source][:2]
    k, group = draw(st.sampled_from((*_DEPTHS, *(_ODD if per == 1 else ()))))
    trips, stages = draw(st.sampled_from((0, 1, 2, 3, 5, 6, 8, 8))), draw(st.sampled_from((0, 2, 3, 4)))
    legal = [n for n in (64, 64, 128, 32, 40) if n * k * trips <= _MOST] or [16]
    m, n = draw(st.sampled_from((16, 8, 64, 64, 48, 17))), draw(st.sampled_from(legal))
    first, wide = draw(st.sampled_from((False, False, True))), draw(st.sampled_from((1, 2)))
    columns, depth = n * wide - draw(st.sampled_from((0, 0, 3))), max(k * trips, k) - draw(st.sampled_from((0, 0, 32)))
    depth = max(depth, 32)
    scale = f"S[bx * {n} + i, (o * {k} + j) // {group}]"
    value = draw(st.sampled_from(("scaled", *VALUES)))
    lines = [f'a = T.alloc_shared(({m}, {k}), "{kind}")', f'q = T.alloc_shared(({n}, {k // per}), "{storage}")']
    lines += [f'w = T.alloc_{draw(st.sampled_from(("shared", "shared", "fragment")))}(({n}, {k}), "{kind}")']
    c = (n, m) if first else (m, n)
    lines += [f'{x} = T.alloc_fragment({c}, "float32")' for x in "cp"]
    lines += ["T.clear(c)"]
    lines += [f"for o in T.Pipelined({trips}, num_stages={stages}):", f"    T.copy(A[0, o * {k}], a)"]
    product = ("T.gemm(w, a, c, transpose_B=True)",) if first else PRODUCTS[draw(st.sampled_from(tuple(PRODUCTS)))]
    direct = draw(st.sampled_from(("", "", "rows", "rows", "columns")))
    form = VALUES[value].format(
        x=element(source, (f"bx * {n}", f"o * {k}") if direct else None, turned=direct == "columns"),
        s=scale, z=scale.replace("S[", "Z[", 1), f=f"S[bx * {n} + i, 0]", kind=kind,
    )  # fmt: skip
    lines += [] if direct else [f"    T.copy(W[bx * {n}, o * {k // per}], q)"]
    lines += [f"    for i, j in T.Parallel({n}, {k}):", f"        w[i, j] = {form}"]
    lines += [f"    {x}".format(m=m, n=n, k=k, group=group) for x in product]
    lines += [f"T.copy(c, B[bx * {n}, 0])" if first else f"T.copy(c, B[0, bx * {n}])"]
    groups = -(-depth // group)
    words = -(-depth // per)
    params = [tensor("A", kind, m, depth)]
    params += [tensor("W", storage, *((words, columns) if direct == "columns" else (columns, words)))]
    params += [tensor("S", kind, columns, groups), tensor("Z", "int8", columns, groups)]
    params += [output("B", "float32", *((columns, m) if first else (m, columns)))]
    data = _data(draw, params)
    packed = storage in PACKED and direct != "columns" and k % 32 == 0 and draw(st.booleans())
    needs = frozenset({"float4"}) if storage.startswith("float4") else frozenset[str]()
    return themed(
        "converted-operands", draw, params, "\n".join(lines), {"": data}, VALUE,
        threads=draw(st.sampled_from(_THREADS)), grid=str(wide), needs=needs, packed=("W",) * packed,
    )  # fmt: skip


def _data(draw: Draw, params: list[Param]) -> dict[str, Any]:
    """Return operands whose products are exact, and scales that are powers of two."""
    data: dict[str, Any] = {}
    for p in params:
        shape = tuple(int(n) for n in p.shape or ())
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        if p.name == "W" and p.dtype in ("uint8", "int32", "int64"):
            bits = np.iinfo(p.dtype)
            data["W"] = rng.integers(bits.min, bits.max, shape, dtype=p.dtype, endpoint=True)
        elif p.dtype in _CODES:
            data["W"] = stored(rng.integers(*_CODES[p.dtype], shape), p.dtype)
        elif p.name == "S":
            data["S"] = np.exp2(rng.integers(-1, 2, shape)).astype(randoms(draw, (1,), p.dtype).dtype)
        elif not p.out:
            data[p.name] = randoms(draw, shape, p.dtype, -3, 3)
    return data
