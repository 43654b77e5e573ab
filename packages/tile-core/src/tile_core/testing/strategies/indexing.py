"""Index arithmetic: what loads, stores, conditions and elements of 4 bits are addressed by."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, tensor
from tile_core.testing.indices import kernel
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import Drawn, patterns, randoms, themed


@st.composite
def indices(draw: Draw) -> Unit:
    """Draw a kernel of a few index expressions of every kind."""
    return kernel(Drawn(draw), draw(st.integers(1, 4)), draw(st.integers(0, 10**6))).unit()


@st.composite
def nibbles(draw: Draw) -> Unit:
    """Draw a kernel that moves 4-bit elements by index arithmetic: neighbours share a byte."""
    dtype = draw(st.sampled_from(("uint4", "int4", "float4_e2m1fn")))
    n = draw(st.sampled_from((2, 6, 14, 16, 30, 32, 62, 64)))
    threads = draw(st.sampled_from((1, 7, 32, 64, 128)))
    c, d = draw(st.integers(0, 2 * n)), draw(st.sampled_from((1, 2, 3)))
    sources = (f"{n - 1} - i", "i", f"({c} - i) % {n}", f"(i + {c}) % {n}", f"({c} - i) // {d}", f"i * {d} - 1")
    source = draw(st.sampled_from(sources))
    target = draw(st.sampled_from(("i", f"{n - 1} - i", f"(i + {c}) % {n}")))
    form = draw(st.sampled_from(("parallel", "serial", "threads", "shared", "cast")))
    b = output("B", dtype, n)
    if form == "cast":
        wide = "float32" if dtype.startswith("float") else "int32"
        params = [tensor("A", wide, n), b]
        data = {"A": randoms(draw, (n,), wide), "B": randoms(draw, (n,), dtype)}
        body = f'for i in T.Parallel({n}):\n    B[{target}] = T.cast(A[{source}], "{dtype}")'
    else:
        params = [tensor("A", dtype, n), b]
        data = {"A": patterns(draw, (n,), dtype), "B": randoms(draw, (n,), dtype)}
        body = f"for i in T.{'serial' if form == 'serial' else 'Parallel'}({n}):\n    B[{target}] = A[{source}]"
    if form == "threads":
        threads = n
        body = f"i = T.get_thread_binding(0)\nB[{target}] = A[{source}]"
    if form == "shared":  # what provably lies outside scratch memory is refused
        body = (
            f'a = T.alloc_shared(({n},), "{dtype}")\nb = T.alloc_shared(({n},), "{dtype}")\nT.copy(A, a)\n'
            f"for i in T.Parallel({n}):\n    b[{target}] = a[({source}) % {n}]\nT.copy(b, B)"
        )
    needs = frozenset({"threads"}) if form == "threads" else frozenset[str]()
    return themed("nibbles", draw, params, body, {"": data}, threads=threads, needs=needs)
