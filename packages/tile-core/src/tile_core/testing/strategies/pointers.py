"""Tables of addresses: blocks and loops that read and write tensors that lie anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Param, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed

_TYPES = ("float32", "int32", "float16", "int8", "uint8", "int64", "bfloat16", "uint16", "float8_e4m3fn")
#: What a block does with the tensors x and y of its group; {w} elements from {o} on.
_BODIES = (
    "T.copy(x[{o} : {o} + {w}], s)\nT.copy(s, y[{p} : {p} + {w}])",
    "for i in T.Parallel({w}):\n    y[i + {p}] = x[{w} - 1 - i]",
    "T.copy(x[{o} : {o} + {w}], s)\nfor i in T.Parallel({w}):\n    s[i] = T.max(s[i], x[i])\n"
    "T.copy(s, y[{p} : {p} + {w}])",
    "y[{p} : {p} + {w}] = T.min(x[{o} : {o} + {w}], x[0:{w}])",
    "if N[{g}] > {o}:\n    T.copy(x[{o} : {o} + {w}], s)\n    T.copy(s, y[0:{w}])",
    "m = T.make_tensor(P[{g}], (N[{g}] // 4, 3), strides=(4, 1))\n"
    "for i in T.Parallel({w}):\n    y[i] = m[i // 3, i % 3]",
)


@st.composite
def pointers(draw: Draw) -> Unit:
    """Draw groups of any sizes with addresses read per block, or in one block's loop."""
    dtype, groups = draw(st.sampled_from(_TYPES)), draw(st.integers(1, 4))
    sizes = [draw(st.sampled_from((1, 3, 8, 31, 32, 33, 64, 70))) for _ in range(groups)]
    facts = {"w": draw(st.sampled_from((1, 8, 32, 45))), "o": draw(st.integers(0, 5)), "p": draw(st.integers(0, 3))}
    looped = draw(st.booleans())
    facts["g"] = "k" if looped else "bx"
    named = "" if draw(st.booleans()) else f", {spelled(draw, dtype)}"
    align = draw(st.sampled_from(("", f", align={max(1, DTYPES[dtype].bits // 8)}")))
    lines = [f"x = T.make_tensor(P[{facts['g']}], (N[{facts['g']}],){named}{align})"]
    lines += [f"y = T.make_tensor(Q[{facts['g']}], (N[{facts['g']}],))"]
    lines += draw(st.sampled_from(_BODIES)).format(**facts).splitlines()
    body = [f's = T.alloc_{draw(st.sampled_from(("shared", "fragment")))}(({facts["w"]},), "{dtype}")']
    body += [f"for k in T.serial({groups}):", *("    " + line for line in lines)] if looped else lines
    xs, ys = [f"X{n}" for n in range(groups)], [f"Y{n}" for n in range(groups)]
    params = [tensor(x, dtype, n) for x, n in zip(xs, sizes, strict=True)]
    params += [output(y, dtype, n) for y, n in zip(ys, sizes, strict=True)]
    params += [Param(name, dtype, (groups,), of=tuple(of)) for name, of in (("P", xs), ("Q", ys))]
    params.append(tensor("N", "int32", groups))
    data: dict[str, Any] = {name: randoms(draw, (n,), dtype, 0, 4) for name, n in zip(xs, sizes, strict=True)}
    data |= {name: randoms(draw, (n,), dtype, 0, 4) for name, n in zip(ys, sizes, strict=True)}
    data["N"] = np.array(sizes, np.int32)
    grid = "1" if looped else str(groups)
    threads = draw(st.sampled_from((1, 32, 48, 128)))
    return themed("pointers", draw, params, "\n".join(body), {"": data}, grid=grid, threads=threads)
