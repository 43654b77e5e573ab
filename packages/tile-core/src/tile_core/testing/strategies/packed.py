"""Loops over adjacent 16-bit floats, of which a target may compute two by one instruction."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Data, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed

#: Operations of one rounding each, none of which a target may fuse.
_SINGLE = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "T.abs({a})", "T.max({a}, {b})", "T.min({a}, {b})",
    "T.max({a}, {b}, nan_propagate=True)", "T.min({a}, 1.5, nan_propagate=True)", "{a} / {b}", "T.sqrt({a})",
    "T.if_then_else({a} < {b}, {a}, -{b})", "T.if_then_else({a} != {b}, {b}, 0.25)", "T.Select({a} >= 1, {b}, {a})",
    "T.if_then_else(T.any_of({a} == {b}, {b} > 0), {a}, {b})", "T.if_then_else(i % 3 == 1, {a} - {b}, {a})",
    "T.if_then_else(i + 1 < {n}, X[i + 1], {a})", "T.cast(T.cast({a}, 'float32') * 1.5, '{t}')",
    "T.cast(T.cast({a}, 'float8_e4m3fn'), '{t}')", "T.cast(T.cast({b}, 'float8_e5m2'), '{t}')",
    "T.max(T.max({a}, -{b}), T.abs({b}))",
)  # fmt: skip
#: A product, and an addition to it: exact for small integers, whether they are fused or not.
_FUSED = (
    "{a} * {b} + {a}",
    "{b} - {a} * {b}",
    "{a} * 2 - {b}",
    "({a} - {b}) * ({a} + {b}) - {a}",
    "T.fma({a}, {b}, {b})",
)
#: Elements of an array of one thread that an iteration reads and writes: the last ones depend on another iteration.
_OWN = (("v", "v"), ("v", "v + 4"), ("2 * v", "2 * v"), ("v + 1", "v"), ("v", "v + 1"), ("v + 1", "v + 1"), ("4", "v"))


@st.composite
def packed(draw: Draw) -> Unit:
    """Draw loops over adjacent 16-bit floats in global memory, fragments and arrays of one thread."""
    dtype = draw(st.sampled_from(("float16", "bfloat16")))
    n = draw(st.sampled_from((8, 16, 31, 32, 64, 96)))
    exact = draw(st.booleans())
    forms = (*_FUSED, *_SINGLE[:8]) if exact else _SINGLE
    data = {name: (randoms if exact else patterns)(draw, (n,), dtype) for name in "XY"}
    kind = draw(st.sampled_from(("global", "global", "fragment", "array")))
    given, threads = ("X[i]", "Y[i]"), draw(st.sampled_from((1, 4, 32)))
    lines, after = [], []
    if kind == "fragment":
        lines = [f"x = T.alloc_fragment(({n},), '{dtype}')", "T.copy(X, x)"]
        given, after = ("x[i]", "Y[i]"), ["T.copy(x, Out)"]
    if kind == "array":
        return _in_one_thread(draw, dtype, n, forms, data)

    def form(a: str, b: str) -> str:
        return str(draw(st.sampled_from(forms))).format(a=a, b=b, n=n, t=dtype)

    out = "x[i]" if kind == "fragment" else "Out[i]"
    lines += [f"for i in T.Parallel({n}):", f"    s = {form(*given)}"]
    guard = draw(st.sampled_from(("", "", "i % 2 == 0", f"i < {n // 2 + 1}", "Y[i] > 0")))
    if guard:
        lines += [f"    if {guard}:", f"        {out} = {form('s', given[1])}", "    else:"]
    lines.append(f"    {'    ' if guard else ''}{out} = {form(given[1], 's')}")
    params = [tensor("X", dtype, n), tensor("Y", dtype, n), output("Out", dtype, n)]
    return themed("packed", draw, params, "\n".join([*lines, *after]), {"": data}, threads=threads)


def _in_one_thread(draw: Draw, dtype: str, n: int, forms: tuple[str, ...], data: Data) -> Unit:
    """Return loops of one thread, whose iterations may depend on each other."""
    plain = [f for f in forms if "i" not in f.replace("if_then", "").replace("min", "")]
    lines = [f"x = T.alloc_local((8,), '{dtype}')", "for v in T.unroll(8):", "    x[v] = X[v]"]
    for _ in range(draw(st.integers(1, 3))):
        read, written = draw(st.sampled_from(_OWN))
        form = draw(st.sampled_from(plain)).format(a=f"x[{read}]", b="Y[v]", n=n, t=dtype)
        loop, again = draw(st.sampled_from(("T.unroll", "T.serial"))), draw(st.booleans())
        lines += [f"for v in {loop}(4):", f"    x[{written}] = {form}"]
        lines += [f"    x[{written}] = x[{written}] + Y[v + 1]"] if again else []
    lines += ["for v in T.serial(8):", "    Out[v] = x[v]"]
    params = [tensor("X", dtype, n), tensor("Y", dtype, n), output("Out", dtype, 8)]
    return themed("packed", draw, params, "\n".join(lines), {"": data}, threads=1)
