"""Atomics: every operation and type, on elements, tiles and scalars; previous values; memory orders."""

from __future__ import annotations

import itertools

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import VALUE, Data, Launch, Part, Unit, one, output, refused, tensor
from tile_core.testing.data import COMPUTED, numbers
from tile_core.testing.source import lines

OPS = ("add", "max", "min", "and", "or", "xor")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_updates(), *_vectors(), *_mixed(), *_counts(), *_orders(), *_loads(), *_refusals()]


def _updates() -> list[Unit]:
    found = []
    for dtype in COMPUTED:
        parts = {}
        legal = OPS if DTYPES[dtype].is_integer else OPS[:3]
        for op in legal:
            for form, code in (
                ("element", f"for i in T.Parallel(20):\n    T.atomic_{op}(add_element[i], A[bx, i])"),
                ("tile", f"T.atomic_{op}(add_tile, A[bx, 0:20])"), ("scalar", f"T.atomic_{op}(add_scalar, 2)"),
            ):  # fmt: skip
                name = f"{op}_{form}"
                code = code.replace(f"add_{form}", name)
                need = frozenset({f"atomic:{op}:{dtype}"})
                parts[name] = Part((output(name, dtype, 20),), code, None, VALUE, need)

        def data(rng: np.random.Generator, t: str = dtype, names: tuple[str, ...] = tuple(parts)) -> Data:
            return {"A": numbers(rng, (4, 20), t, -9, 9), **{n: numbers(rng, (20,), t, 0, 5) for n in names}}

        for op in legal:
            own = {k: v for k, v in parts.items() if k.startswith(f"{op}_")}
            name = f"{'#2572-' if DTYPES[dtype].bits == 16 else ''}{dtype}-{op}"
            found.append(Unit("atomic", name, (tensor("A", dtype, 4, 20),), "", own, {"": Launch(data)}, grid="4"))
    return found


def _vectors() -> list[Unit]:
    """#2561: pairs and fours of any element type."""
    found = []
    for dtype in ("float32", "float16", "int32", "int64", "bfloat16", "uint8"):
        parts = {}
        for width in (2, 4):
            body = lines(f"""
                for i in T.serial({16 // width}):
                    T.atomic_addx{width}(B{width}[i * {width}], A[bx, i * {width}])
            """)
            need = frozenset({f"atomic:add:{dtype}"})

            parts[f"x{width}"] = Part((output(f"B{width}", dtype, 16),), body, None, VALUE, need)

        def data(rng: np.random.Generator, t: str = dtype) -> Data:
            return {n: numbers(rng, s, t, 0, 9) for n, s in (("A", (3, 16)), ("B2", (16,)), ("B4", (16,)))}

        name = f"#2561-{dtype}"
        found.append(Unit("atomic", name, (tensor("A", dtype, 3, 16),), "", parts, {"": Launch(data)}, grid="3"))
    return found


def _mixed() -> list[Unit]:
    """#2382: the value is converted to the element type of the destination."""
    found = []
    for dtype in ("float16", "bfloat16", "int32", "float64"):
        body = lines("""
            s = T.alloc_shared((24,), 'float32')
            T.copy(A, s)
            T.atomic_add(B, s)
            for i in T.Parallel(24):
                T.atomic_add(C[i], s[i])
        """)

        def data(rng: np.random.Generator, t: str = dtype) -> Data:
            return {"A": numbers(rng, (24,), "float32"), "B": numbers(rng, (24,), t), "C": numbers(rng, (24,), t)}

        params = [tensor("A", "float32", 24), output("B", dtype, 24), output("C", dtype, 24)]
        needs = frozenset({f"atomic:add:{dtype}"})
        found.append(one("atomic", f"#2382-{dtype}", params, body, None, {"": data}, VALUE, needs=needs))
    return found


def _counts() -> list[Unit]:
    """Once per iteration, once per block, once per thread (#2959), and different previous values."""
    zero = {"": lambda rng: {"C": np.zeros(2, np.int32)}}
    c = output("C", "int32", 2)
    need = frozenset({"atomic:add:int32", "atomic:max:int32"})
    threads = need | {"threads"}
    histogram = """
        h = T.alloc_shared((16,), "int32")
        T.clear(h)
        for i in T.Parallel(64):
            T.atomic_add(h[A[bx * 64 + i] % 16], 1)
        T.atomic_add(B, h)
    """

    def data(rng: np.random.Generator) -> Data:
        return {"A": rng.integers(0, 1000, 256).astype(np.int32), "B": np.zeros(16, np.int32)}

    sorted_previous = """
        i = T.get_thread_binding(0)
        P[bx * 128 + T.atomic_add(C[bx], 1, return_prev=True)] = 1
        T.atomic_max(C[bx], i)
    """
    previous = [c, output("P", "int32", 256)]
    return [
        one("atomic", "per-block", [c], "T.atomic_add(C[0], 1)", None, zero, grid="7", needs=need),
        one("atomic", "per-iteration", [c], "for i in T.Parallel(50):\n    T.atomic_add(C[i % 2], i)", None, zero,
            needs=need),
        one("atomic", "#2959-per-thread", [c], lines("""
            i = T.get_thread_binding(0)
            T.atomic_add(C[0], 1)
            T.atomic_max(C[1], i)
        """), None, zero, grid="2", needs=threads),
        one("atomic", "histogram", [tensor("A", "int32", 256), output("B", "int32", 16)], histogram,
            None, {"": data}, grid="4", needs=need),
        one("atomic", "#2667-previous", previous, sorted_previous,
            lambda d: {"C": np.array([128, 128]), "P": np.ones(256)}, zero, grid="2", needs=threads),
        one("atomic", "#2594-load-before", [c, output("P", "int32", 1)], lines("""
            if C[1] == 0:
                v = C[0]
                T.atomic_add(C[0], 5)
                P[0] = v
        """), None, zero, needs=need),
    ]  # fmt: skip


def _orders() -> list[Unit]:
    found = []
    for order in ("default", "relaxed", "acquire", "seq_cst"):
        load, store, both = ("acquire", "release", "acq_rel") if order == "acquire" else (order, order, order)
        load, store, both = ("" if o == "default" else f', memory_order="{o}"' for o in (load, store, both))
        body = f"""
            v = T.atomic_load(A[2]{load})
            T.atomic_store(B[1], v + 1{store})
            T.atomic_add(B[0], v{both})
        """
        params = [tensor("A", "int32", 4), output("B", "int32", 2)]
        data = {"": lambda rng: {"A": numbers(rng, (4,), "int32"), "B": np.array([3, 4], np.int32)}}

        found.append(one("atomic", f"order-{order}", params, body, None, data, needs=frozenset({"atomic:add:int32"})))
    return found


def _loads() -> list[Unit]:
    """Atomic loads of memory that other threads read plainly, which nothing writes at that time."""
    found = []
    for dtype, read in itertools.product(("int32", "uint32", "float32"), ("A", "s")):
        body = f'''
            s = T.alloc_shared((37,), "{dtype}")
            T.copy(A, s)
            for i in T.Parallel(37):
                v = T.atomic_load({read}[i], memory_order="relaxed")
                B[i] = v - {read}[36 - i]
        '''
        data = {"": lambda rng, dtype=dtype: {"A": numbers(rng, (37,), dtype)}}

        params = [tensor("A", dtype, 37), output("B", dtype, 37)]
        found.append(one("atomic", f"load-beside-plain-{dtype}-{read}", params, lines(body), None, data))
    return found


def _refusals() -> list[Unit]:
    a = [tensor("A", "int32", 8), tensor("F", "float8_e5m2", 8), tensor("P", "int4", 8), tensor("Q", "bool", 8)]
    return [
        refused("atomic", "#2574-load-release", "v = T.atomic_load(A[0], memory_order='release')", "K212", params=a),
        refused("atomic", "#2574-store-acquire", "T.atomic_store(A[0], 1, memory_order='acquire')", "K212", params=a),
        refused("atomic", "illegal-order", "T.atomic_add(A[0], 1, memory_order='strong')", "K212", params=a),
        refused("atomic", "illegal-float8", "T.atomic_add(F[0], 1)", "K211", params=a),
        refused("atomic", "illegal-int4", "T.atomic_add(P[0], 1)", "K211", params=a),
        refused("atomic", "illegal-bits-of-floats", "T.atomic_or(G[0], 1)", "K211", params=[tensor("G", "float32", 8)]),
        refused("atomic", "illegal-bool", "T.atomic_max(Q[0], True)", "K211", params=a),
        refused("atomic", "illegal-previous-of-tile", "v = T.atomic_add(A, 1, return_prev=True)", "K213", params=a),
        refused("atomic", "illegal-alignment", "T.atomic_addx4(A[2], A[0])", "K217", params=a),
        refused("atomic", "illegal-shapes", "T.atomic_add(A, A[0:4])", "K203", params=a),
    ]
