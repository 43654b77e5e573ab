"""T.view, T.reshape, T.c2d_im2col and T.dp4a."""

from __future__ import annotations

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Data, Unit, one, output, refused, tensor
from tile_core.testing.data import Array, anything, numbers, values
from tile_core.testing.source import lines


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_views(), *_refusals(), *_windows(), *_dots()]


#: Element type of the buffer and of the view, and their shapes.
VIEWS = (
    ("bfloat16", (7, 48), "float32", (7, 24)), ("float32", (17, 6), "float16", (17, 12)),
    ("float32", (4, 6), "uint32", (6, 4)),
    ("int8", (16, 24), "int32", (96,)), ("float16", (63, 8), "uint16", (7, 72)),
    ("uint8", (5, 32), "float8_e4m3fn", (160,)),
    ("int64", (9, 4), "float32", (9, 8)), ("float32", (1, 129), "int32", (129,)),
    ("int16", (24, 10), "int16", (2, 3, 40)),
)  # fmt: skip


def _views() -> list[Unit]:
    found = []
    for n, (a, shape, b, turned) in enumerate(VIEWS):
        for scope in ("shared", "global"):
            alloc = f's = T.alloc_shared({shape}, "{a}")\nT.copy(A, s)\n'
            call = f"T.reshape({{0}}, {turned})" if a == b else f'T.view({{0}}, shape={turned}, dtype="{b}")'
            if scope == "global":
                body = f"T.copy({call.format('A')}, B)\nT.copy(A, C)"
            else:
                body = alloc + lines(f"""
                    v = {call.format("s")}
                    T.copy(v, B)
                    T.fill(v, 1)
                    T.copy(s, C)
                """)

            def want(
                d: Data, a: str = a, b: str = b, turned: tuple[int, ...] = turned, scope: str = scope
            ) -> dict[str, Array]:
                raw = np.ascontiguousarray(d["A"])
                from tile_core.testing.data import stored

                ones = stored(np.ones(turned), b).copy().reshape(-1).view(DTYPES[a].numpy()).reshape(raw.shape)
                seen = raw.copy().reshape(-1).view(DTYPES[b].numpy()).reshape(turned)
                return {"B": values(seen, b), "C": values(raw if scope == "global" else ones, a)}

            params = [tensor("A", a, *shape), output("B", b, *turned), output("C", a, *shape)]
            data = {"": lambda rng, s=shape, t=a: {"A": anything(rng, s, t)}}  # type: ignore[misc]
            op = "view" if a != b else "reshape"
            name = f"{'#2609-' if n == 0 else ''}{a}-{b}-{scope}"
            found.append(one("view", f"{op}-{name}", params, body, want, data, threads=(32, 96, 128)[n % 3]))
    return found


def _refusals() -> list[Unit]:
    s = "s = T.alloc_shared((8, 16), 'float32')\n"
    p = "p = T.alloc_shared((8, 16), 'int4')\n"
    return [
        refused("view", "illegal-size", s + "v = T.view(s, shape=(8, 15))", "K215"),
        refused("view", "illegal-size-of-type", s + "v = T.view(s, shape=(8, 16), dtype='float16')", "K215"),
        refused("view", "illegal-slice", s + "v = T.reshape(s[0:4, :], (64,))", "K216"),
        refused("view", "illegal-packed", p + "v = T.view(p, dtype='int8')", "K216"),
        refused(
            "view",
            "illegal-variable",
            lines("""
            x = T.alloc_var('float32', init=0)
            v = T.view(x, dtype='int32')
        """),
            "K216",
            "K201",
        ),
    ]


#: Image (N, H, W, C), kernel, stride, dilation, pad, tile.
CONVOLUTIONS = (
    ((1, 8, 8, 4), 3, 1, 1, 1, (16, 12)), ((2, 7, 9, 3), 3, 1, 1, 0, (24, 9)), ((1, 9, 6, 5), 2, 2, 1, 0, (8, 10)),
    ((1, 11, 7, 2), 3, 1, 2, 2, (17, 7)), ((2, 5, 5, 8), 1, 1, 1, 0, (10, 8)), ((1, 6, 10, 4), 3, 2, 1, 1, (13, 36)),
)  # fmt: skip


def _windows() -> list[Unit]:
    """#2426: an output that is as wide as the input, or not."""
    found = []
    for n, (image, kernel, stride, dilation, pad, tile) in enumerate(CONVOLUTIONS):
        for dtype in ("float16", ("int8", "float32", "bfloat16")[n % 3]):
            number, height, width, channels = image
            reach = dilation * (kernel - 1) + 1
            out_h, out_w = ((x + 2 * pad - reach) // stride + 1 for x in (height, width))
            rows, cols = number * out_h * out_w, kernel * kernel * channels

            body = f'''
                s = T.alloc_shared({tile}, "{dtype}")
                T.c2d_im2col(A, s, by, bx, {kernel}, {stride}, {dilation}, {pad})
                T.copy(s, B[by * {tile[0]}, bx * {tile[1]}])
            '''
            data = {"": lambda rng, s=image, t=dtype: {"A": anything(rng, s, t)}}  # type: ignore[misc]
            found.append(
                one("im2col", f"#2426-{height}x{width}-k{kernel}s{stride}d{dilation}p{pad}-{dtype}",
                    [tensor("A", dtype, *image), output("B", dtype, rows, cols)], body, None, data,
                    grid=f"T.ceildiv({cols}, {tile[1]}), T.ceildiv({rows}, {tile[0]})", axes="(bx, by)")
            )  # fmt: skip
    a = [tensor("A", "float16", 1, 8, 8, 4)]
    bad = 's = T.alloc_shared((16, 12), "float16")\nT.c2d_im2col(A, s, 0, 0, {0}, {1}, 1, {2})'
    found.append(refused("im2col", "illegal-kernel", bad.format(0, 1, 1), "K212", params=a))
    found.append(refused("im2col", "illegal-stride", bad.format(3, 0, 1), "K212", params=a))
    found.append(refused("im2col", "illegal-pad", bad.format(3, 1, -1), "K212", params=a))
    return found


def _dots() -> list[Unit]:
    found = []
    for a, b, c in (
        ("int8", "int8", "int32"),
        ("uint8", "uint8", "uint32"),
        ("int8", "uint8", "int32"),
        ("uint8", "int8", "int32"),
    ):
        body = """
            for i in T.Parallel(9):
                T.dp4a(A[i, 4], B[i, 0], C[i])
        """
        params = [tensor("A", a, 9, 8), tensor("B", b, 9, 4), output("C", c, 9)]

        def data(rng: np.random.Generator, a: str = a, b: str = b, c: str = c) -> Data:
            return {"A": anything(rng, (9, 8), a), "B": anything(rng, (9, 4), b), "C": numbers(rng, (9,), c, 0, 9)}

        found.append(one("dp4a", f"{a}-{b}-{c}", params, body, None, {"": data}))
    x = [tensor("A", "int16", 8), tensor("C", "int32", 1), tensor("F", "float32", 1), tensor("B", "int8", 8)]
    found.append(refused("dp4a", "illegal-int16", "T.dp4a(A[0], B[0], C[0])", "K211", params=x))
    found.append(refused("dp4a", "illegal-float", "T.dp4a(B[0], B[0], F[0])", "K211", params=x))
    return found
