"""Vector loops: loads at indices that wrap inside of a vector, guards, conversions."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.data import COMPUTED
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import convertible, randoms, themed

#: Extents around the widths of vectors, and one that takes several of the widest.
_EXTENTS = (8, 13, 16, 31, 32, 37, 48, 61, 64)
_GUARDS = (
    "j < {c}", "j >= {c}", "j == {c}", "j % 2 == 0", "i < {c}", "j < i + {c}", "j < v + {c}",
    "j > 1 and j < {c} + 2", "j < 1 or (j + {c}) % 4 == 1", "j < L[i]", "L[i] <= j + {c}", "j < L[i] or j >= {c} * 9",
)  # fmt: skip
_ROWS = 6


@st.composite
def lanes(draw: Draw) -> Unit:
    """Draw loops that load at remainders, masks and narrow values of their variables."""
    dtype = draw(st.sampled_from(("int32", "uint64", "float32", "int8", "float64", "uint16")))
    params, lines, data = [scalar("v")], [], {"v": draw(st.integers(0, 3)), "A": randoms(draw, (_ROWS, 3), dtype)}
    data["L"] = randoms(draw, (_ROWS,), "int32", 0, 70)
    params += [tensor("A", dtype, _ROWS, 3), tensor("L", "int32", _ROWS)]
    for n in range(draw(st.integers(3, 6))):
        p, q = draw(st.sampled_from((3, 5, 7, 3, 6, 8))), draw(st.sampled_from((4, 4, 4, 2, 8, 16, 5)))
        extent = draw(st.sampled_from(_EXTENTS))
        row, column = _wrapped(draw, "i", p), _wrapped(draw, "j", q)
        guarded = _guarded(draw)
        data[f"C{n}"] = randoms(draw, (p, q), dtype)
        data[f"D{n}"] = randoms(draw, (_ROWS, extent), dtype)
        params += [tensor(f"C{n}", dtype, p, q), tensor(f"D{n}", dtype, _ROWS, extent)]
        params.append(output(f"B{n}", dtype, _ROWS, extent))
        over = draw(st.sampled_from((0, 0, 3)))  # iterations whose stores are dropped
        at = "j" if not over else "j + T.min(v, 0)"
        target, value = f"B{n}[i, {at}] =", f"C{n}[{row}, {column}] + {guarded}"
        rows = ("if j < L[i]:", f"    {target} {value}", "else:", f"    {target} A[i, 1]")
        # Elements decide, at the index that is stored to.
        masked = (f"{target} T.if_then_else(D{n}[i, {at}] > zero, D{n}[i, {at}], {guarded})",)
        form = draw(st.sampled_from(((f"{target} {value}",), (f"{target} {value}",), rows, masked)))
        lines += [f"for i, j in T.Parallel({_ROWS}, {extent + over}):"]
        lines += [f"    {line}".replace("zero", f"T.cast(0, {dtype!r})") for line in form]
    return themed("lanes", draw, params, "\n".join(lines), {"": data}, threads=draw(st.sampled_from((32, 64))))


def _wrapped(draw: Draw, var: str, size: int) -> str:
    """Return an index below a size that a variable passes several times."""
    b = draw(st.integers(-7, 11))
    forms = [f"({var} + {b}) % {size}"] * 3 + [f"({b} - {var}) % {size}", f"({var} * 3 + {b}) % {size}"]
    if size & (size - 1) == 0:
        kind = draw(st.sampled_from(("int8", "uint8", "int16", "uint16")))
        step = draw(st.sampled_from((1, 1 << (int(kind.lstrip("uint")) - 4))))
        narrow = f"T.cast(T.cast({var} * {step} + {b}, '{kind}'), 'int32')"
        forms += [f"({var} + {b}) & {size - 1}", f"({narrow} // {step}) % {size}"]
        forms.append(f"(({var} + {b}) % {2 * size}) // 2" if size > 2 else f"({var} // 2 + {b}) % {size}")
    return str(draw(st.sampled_from(forms)))


def _guarded(draw: Draw) -> str:
    """Return a term behind an explicit guard, perhaps nested, or one the compiler adds."""
    c = draw(st.integers(1, 5))
    guard = draw(st.sampled_from(_GUARDS)).format(c=c)
    form = draw(st.sampled_from((
        "T.if_then_else({g}, A[i, 0], zero)", "T.if_then_else({g}, A[i, 0], zero)", "A[i, j + T.min(v, 0)]",
        "T.if_then_else(i > 1, T.if_then_else({g}, A[i, 1], zero), A[i, 2])", "T.Select({g}, A[i, 0], A[i, 1])",
    )))  # fmt: skip
    return str(form).format(g=guard)


@st.composite
def vector_casts(draw: Draw) -> Unit:
    """Draw vectorized conversions of one array to several types, with and without guards."""
    source = draw(st.sampled_from(("uint64", "float32", "float32", *COMPUTED)))
    kinds = draw(st.lists(st.sampled_from(COMPUTED).filter(lambda k: k != source), min_size=2, max_size=4, unique=True))
    n = draw(st.sampled_from(_EXTENTS))
    params, lines = [tensor("A", source, n)], []
    for kind in kinds:
        value = f"T.cast(A[i], '{kind}')"
        forms = (value, value, f"T.if_then_else(i % 3 != 1, {value}, T.cast(A[{n - 1} - i], '{kind}'))")
        params.append(output(f"B_{kind}", kind, n))
        lines += [f"for i in T.Parallel({n}):", f"    B_{kind}[i] = {draw(st.sampled_from(forms))}"]
    elements = convertible(draw, (n,), source, kinds[0])
    if source == "float32" and draw(st.booleans()):
        elements = (elements.view("uint32") & 0x807FFFFF).view("float32")  # subnormal numbers and zeros
    data = {"A": elements}
    threads = draw(st.sampled_from((1, 32, 64)))
    return themed("vector-casts", draw, params, "\n".join(lines), {"": data}, threads=threads)
