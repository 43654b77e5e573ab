"""T.reduce_*, reducers and scans: kinds, element types, dimensions, awkward widths, NaN, slices, accumulation."""

from __future__ import annotations

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing import oracles
from tile_core.testing.case import VALUE, Data, Launch, Part, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array, anything, numbers, stored, values
from tile_core.testing.source import lines

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor", "any", "all", "prod")
#: (source, destination).
TYPES = (
    ("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16"), ("int32", "int32"), ("int8", "int8"),
    ("uint16", "uint16"), ("int64", "int64"), ("float64", "float64"), ("int8", "int32"), ("float8_e4m3fn", "float32"),
    ("bool", "int32"), ("bool", "bool"), ("uint64", "uint64"), ("float16", "float32"), ("uint8", "uint32"),
    ("bfloat16", "float32"), ("int16", "int16"), ("uint32", "uint32"),
)  # fmt: skip
SHAPES = ((17, 129), (7, 48), (96, 1), (33, 100), (1, 257), (24, 63), (127, 24))
SCOPES = ("fragment", "shared", "local")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_kinds(), *_widths(), *_nan(), *_truths(), *_others(), *_scans(), *_refusals()]


def _legal(source: str, out: str) -> tuple[str, ...]:
    if DTYPES[source].is_float:
        return tuple(k for k in KINDS if not k.startswith("bit") and k not in ("any", "all"))
    return tuple(k for k in KINDS if not k.endswith("sum") and k != "prod") if out == "bool" else KINDS


def _kinds() -> list[Unit]:
    """Every kind and pair of types, along both dimensions, accumulating or starting anew."""
    found = []
    for n, (source, out) in enumerate(TYPES):
        for dim in (0, 1):
            shape, clear = SHAPES[(2 * n + dim) % 7], (n + dim) % 2 == 0
            kept = shape[1 - dim]
            start = f's = T.alloc_{SCOPES[n % 3]}({shape}, "{source}")\nT.copy(A, s)'
            legal = _legal(source, out)
            for half in (legal[:4], legal[4:8], legal[8:]):
                if not half:
                    continue
                parts = {}
                for kind in half:
                    body = f'''
                        r_{kind} = T.alloc_fragment(({kept},), "{out}")
                        T.copy(S, r_{kind})
                        T.reduce_{kind}(s, r_{kind}, dim={dim}, clear={clear})
                        T.copy(r_{kind}, B_{kind})
                    '''
                    parts[kind] = Part((output(f"B_{kind}", out, kept),), body, None, VALUE)

                def data(
                    rng: np.random.Generator,
                    shape: tuple[int, ...] = shape,
                    kept: int = kept,
                    source: str = source,
                    out: str = out,
                ) -> Data:
                    return {"A": _few(rng, shape, source), "S": numbers(rng, (kept,), out, 0, 3)}

                params = (tensor("A", source, *shape), tensor("S", out, kept))
                name = f"{source}-{out}-{shape[0]}x{shape[1]}-dim{dim}{'' if clear else '-add'}-{half[0]}"
                threads = (1, 31, 32, 96, 128, 384)[n % 6]
                found.append(Unit("reduce", name, params, start, parts, {"": Launch(data)}, threads=threads))
    return found


def _few(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Values with zeros in every third row and column only.

    Lines of floats have few values except 1, for exact products.
    """
    found = numbers(rng, shape, dtype, -3, 3)
    rows, columns = np.indices(shape)
    ones = (found == 0) & ((rows % 3 > 0) | (columns % 3 > 0))
    if DTYPES[dtype].is_float:
        ones |= rng.random(shape) > 4 / max(shape)
    found[ones] = stored(np.ones(shape), dtype)[ones]
    return found


def _widths() -> list[Unit]:
    """#2394, #2399, #2542: widths that no power of two and no number of threads divides."""
    found = []
    for n, width in enumerate((1, 2, 31, 48, 96, 100, 120, 127, 192, 229, 257)):
        body = f"""
            f = T.alloc_fragment((5, {width}), "float32")
            r = T.alloc_fragment((5,), "float32")
            q = T.alloc_fragment((5, 1), "float32")
            T.copy(A, f)
            T.reduce_sum(f, r, dim=1)
            T.reduce_max(f, q, dim=-1)
            T.copy(r, B)
            T.copy(q[:, 0], C)
        """

        params = [tensor("A", "float32", 5, width), output("B", "float32", 5), output("C", "float32", 5)]
        for threads in (128, (32, 48, 96, 64)[n % 4]):
            data = {"": lambda rng, w=width: {"A": numbers(rng, (5, w), "float32", -99, 99)}}  # type: ignore[misc]
            found.append(
                one("reduce", f"#2399-width-{width}-{threads}", params, body, None, data, VALUE, threads=threads)
            )
    return found


def _nan() -> list[Unit]:
    """#2697: NaN is left out, or wins with nan_propagate, also with an accumulator; infinities."""
    found = []
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        for nan, clear in ((False, True), (True, True), (False, False), (True, False)):
            parts = {}
            for kind in ("max", "min", "absmax"):
                body = f'''
                    r_{kind} = T.alloc_fragment((9,), "{dtype}")
                    T.copy(S, r_{kind})
                    T.reduce_{kind}(s, r_{kind}, dim=1, clear={clear}, nan_propagate={nan})
                    T.copy(r_{kind}, B_{kind})
                '''
                parts[kind] = Part((output(f"B_{kind}", dtype, 9),), body, None, VALUE)
            start = f's = T.alloc_shared((9, 70), "{dtype}")\nT.copy(A, s)'
            params = (tensor("A", dtype, 9, 70), tensor("S", dtype, 9))
            launch = Launch(lambda rng, t=dtype: _special(rng, t))  # type: ignore[misc]
            name = f"#2697-{dtype}{'-nan' if nan else ''}{'' if clear else '-add'}"
            found.append(Unit("reduce", name, params, start, parts, {"": launch}))
    return found


def _special(rng: np.random.Generator, dtype: str) -> Data:
    a = rng.choice([1.0, -2.0, 0.0, -0.0, 3.5, np.inf, -np.inf], (9, 70))
    a[0, 3] = a[1, 69] = a[2, 0] = np.nan
    a[3] = np.nan
    start = np.array([-1.0, 2.0, np.nan, 1.0, np.nan, 0, 5, -np.inf, np.inf])
    return {"A": stored(a, dtype), "S": stored(start, dtype)}


def _truths() -> list[Unit]:
    """any and all of floats, into bools and integers: NaN is not zero, -0 is."""
    found = []
    for n, (source, out) in enumerate(
        (("float32", "bool"), ("float16", "int32"), ("float8_e4m3fn", "bool"), ("float64", "uint8"), ("int8", "bool"))
    ):
        for clear in (True, False):
            parts = {}
            for kind in ("any", "all"):
                body = f'''
                    r_{kind} = T.alloc_{SCOPES[n % 2]}((9,), "{out}")
                    T.copy(S, r_{kind})
                    T.reduce_{kind}(s, r_{kind}, dim=1, clear={clear})
                    T.copy(r_{kind}, B_{kind})
                '''

                parts[kind] = Part((output(f"B_{kind}", out, 9),), body, None)

            def data(rng: np.random.Generator, source: str = source, out: str = out) -> Data:
                a = rng.choice([0.0, -0.0, 2.0, 0.0], (9, 70))
                a[0], a[1], a[2], a[3] = 0.0, -0.0, 1.0, 0.0
                a[1, 69] = a[3, 7] = 1.0 if "int" in source else np.nan
                a[4], a[4, 33] = 3.0, -0.0
                return {"A": stored(a, source), "S": stored(rng.choice([0, 2], 9), out)}

            start = f's = T.alloc_{SCOPES[(n + clear) % 2]}((9, 70), "{source}")\nT.copy(A, s)'
            params = (tensor("A", source, 9, 70), tensor("S", out, 9))
            name = f"truths-{source}-{out}{'' if clear else '-add'}"
            threads = (96, 128, 31)[n % 3]
            found.append(Unit("reduce", name, params, start, parts, {"": Launch(data)}, threads=threads))
    return found


def _others() -> list[Unit]:
    """Three dimensions, kept extents of 1, slices (#3022), elements, a source that is the destination."""
    found = []
    shape = (5, 6, 19)
    for dim in (0, 1, 2, -1, -3):
        kept = tuple(1 if d == dim % 3 else e for d, e in enumerate(shape))
        less = tuple(e for d, e in enumerate(shape) if d != dim % 3)
        body = f"""
            s = T.alloc_shared({shape}, "int32")
            k = T.alloc_fragment({kept}, "int32")
            T.copy(A, s)
            T.reduce_sum(s, k, dim={dim})
            T.copy(k, B)
            T.reduce_max(A, C, dim={dim})
        """

        params = [tensor("A", "int32", *shape), output("B", "int32", *kept), output("C", "int32", *less)]
        data = {"": lambda rng: {"A": anything(rng, shape, "int32")}}
        found.append(one("reduce", f"rank3-dim{dim}", params, body, None, data))
    body = """
        s = T.alloc_shared((40, 80), "float32")
        v = T.alloc_fragment((80,), "float32")
        one = T.alloc_fragment((1,), "float32")
        T.copy(A, s)
        T.reduce_sum(s[4:24, 10:77], B, dim=1)
        T.copy(s[z, :], v)
        T.reduce_sum(v[3:67], one)
        T.copy(one, C[0])
        T.reduce_max(s[z, 5:75], C[1:2])
        T.reduce_min(s[z : z + 7, 2], C[2])
    """

    def sliced(d: Data) -> dict[str, Array]:
        a, z = values(d["A"], "float32"), d["z"]
        column = oracles.copy_region(a, (z, 2), (7, 1))
        return {"B": a[4:24, 10:77].sum(1), "C": np.array([a[z, 3:67].sum(), a[z, 5:75].max(), column.min()])}

    launches = {str(z): lambda rng, z=z: {"z": z, "A": numbers(rng, (40, 80), "float32", -99, 99)} for z in (0, 33, 36)}
    params = [tensor("A", "float32", 40, 80), scalar("z"), output("B", "float32", 20), output("C", "float32", 3)]
    found.append(one("reduce", "#3022-slices", params, body, sliced, launches, VALUE))  # type: ignore[arg-type]
    body = lines("""
        s = T.alloc_shared((9, 40), 'float32')
        T.copy(A, s)
        T.reduce_sum(s, s[:, 3], dim=1)
        T.copy(s, B)
    """)

    data = {"": lambda rng: {"A": numbers(rng, (9, 40), "float32")}}
    params = [tensor("A", "float32", 9, 40), output("B", "float32", 9, 40)]
    found.append(one("reduce", "into-its-source", params, body, None, data, VALUE))
    return found


_SCANS = (
    ("cumsum", False), ("cumsum", True), ("cummax", False), ("cummax", True), ("cumprod", False), ("cumprod", True),
)  # fmt: skip


def _scans() -> list[Unit]:
    found = []
    shapes = ((33, 48), (7, 129), (64, 1), (1, 100), (32, 64))
    types = ("float32", "float16", "int32", "int8", "uint64", "bfloat16", "float64", "int16", "uint32")
    for n, dtype in enumerate(types):
        shape = shapes[n % 5]
        for dim in (0, 1):
            parts = {}
            for op, reverse in _SCANS:
                tag = f"{op}{'_back' if reverse else ''}"
                body = f'''
                    d_{tag} = T.alloc_{"fragment" if reverse else "shared"}({shape}, "{dtype}")
                    T.{op}(s, d_{tag}, dim={dim}, reverse={reverse})
                    T.copy(d_{tag}, B_{tag})
                '''
                parts[tag] = Part((output(f"B_{tag}", dtype, *shape),), body, None, VALUE)
            start = f's = T.alloc_shared({shape}, "{dtype}")\nT.copy(A, s)'
            launch = Launch(lambda rng, t=dtype, s=shape: {"A": numbers(rng, s, t, -1, 1)})  # type: ignore[misc]
            name = f"{dtype}-{shape[0]}x{shape[1]}-dim{dim}"
            threads = (256, 96, 128, 31)[n % 4]
            found.append(Unit("scan", name, (tensor("A", dtype, *shape),), start, parts, {"": launch}, threads=threads))
    return [*found, *_scan_peers()]


def _scan_peers() -> list[Unit]:
    """Regressions #2536, #2576, #3011, #2284, in-place scans and NaN.

    #2536: rows at an offset; #2576: 96 threads; #3011: shared to fragment; #2284: columns.
    """
    data = {"": lambda rng: {"A": numbers(rng, (128, 8), "float32")}}
    params = [tensor("A", "float32", 128, 8), output("B", "float32", 128, 8)]

    body = lines("""
        s = T.alloc_shared((128, 8), 'float32')
        T.copy(A, s)
        T.cumsum(s[64:128, :])
        T.copy(s, B)
    """)
    found = [one("scan", "#2536-rows", params, body, None, data, VALUE, threads=96)]
    body = lines("""
        s = T.alloc_shared((128, 8), 'float32')
        f = T.alloc_fragment((128, 8), 'float32')
        T.copy(A, s)
        T.cumsum(s, f, dim=1)
        T.copy(f, B)
    """)
    found.append(one("scan", "#3011-to-fragment", params, body, None, data, VALUE))
    for nan in (False, True):
        body = lines(f"""
            s = T.alloc_shared((9, 70), 'float32')
            T.copy(A, s)
            T.cummax(s, dim=1, nan_propagate={nan})
            T.copy(s, B)
        """)
        special = {"": lambda rng: {"A": _special(rng, "float32")["A"]}}
        params = [tensor("A", "float32", 9, 70), output("B", "float32", 9, 70)]

        def want(d: Data, nan: bool = nan) -> Array:
            return oracles.cummax(values(d["A"], "float32"), 1, nan_propagate=nan)

        found.append(one("scan", f"nan-{nan}", params, body, want, special, VALUE))
    return found


def _refusals() -> list[Unit]:
    def body(src: str, dst: str, call: str, a: tuple[int, ...] = (8, 16), b: tuple[int, ...] = (8,)) -> str:
        return lines(f"""
            s = T.alloc_shared({a}, '{src}')
            d = T.alloc_shared({b}, '{dst}')
            {call}
        """)

    f = "float32"
    return [
        refused("reduce", "illegal-dim", body(f, f, "T.reduce_sum(s, d, dim=2)"), "K209"),
        refused("reduce", "illegal-destination", body(f, f, "T.reduce_sum(s, d, dim=0)"), "K210"),
        refused("reduce", "#2599-bits-of-floats", body(f, f, "T.reduce_bitand(s, d)"), "K211"),
        refused("reduce", "illegal-float-into-int", body(f, "int32", "T.reduce_sum(s, d)"), "K211"),
        refused("reduce", "illegal-narrow-destination", body("float16", "float8_e5m2", "T.reduce_sum(s, d)"), "K211"),
        refused("reduce", "illegal-truths-of-floats", body(f, f, "T.reduce_any(s, d)"), "K211"),
        refused("reduce", "illegal-product-of-truths", body("bool", "bool", "T.reduce_prod(s, d)"), "K211"),
        refused("reduce", "illegal-kind", body(f, f, "T.reduce(s, d, 'mean')"), "K212"),
        refused("scan", "illegal-dim", body(f, f, "T.cumsum(s, dim=-3)"), "K209"),
        refused("scan", "illegal-shape", body(f, f, "T.cumsum(s, d)"), "K203"),
        refused("scan", "illegal-types", body(f, "int32", "T.cumsum(s, d)", b=(8, 16)), "K211"),
    ]
