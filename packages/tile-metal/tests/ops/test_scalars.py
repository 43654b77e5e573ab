"""Scalar arguments of every size: the declared structure matches the caller's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from zoo.case import poisoned

import tile_core.language as T
from tile_core.dtypes import dtype
from tile_metal.emit.helpers import HELPER_NAMES, helper
from tile_metal.emit.names import TYPES

from .kit import right, text

SMALL = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16")
WIDE = ("int32", "uint32", "float32", "int64", "uint64")
VALUES = {
    "bool": 1, "int8": -7, "uint8": 200, "int16": -300, "uint16": 60000, "float16": 1.5, "bfloat16": -2.5,
    "int32": -70000, "uint32": 4_000_000_000, "float32": 0.1, "int64": -(1 << 40), "uint64": 1 << 63,
}  # fmt: skip
MSL = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half", "bfloat16": "bfloat", "float32": "float",
}  # fmt: skip


def echo(kind):
    @T.prim_func
    def echo(x: kind, Y: T.Tensor((4,), kind)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = x

    return echo


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", [*SMALL, *WIDE])
def test_each_alone(kind):
    numpy = dtype(kind).numpy()
    value = np.array(VALUES[kind], "float64" if "float" in kind else "O").astype(numpy)[()]
    found, out = right(echo(kind), value, poisoned((4,), numpy))
    np.testing.assert_array_equal(out["Y"].astype("float64"), np.full(4, value).astype("float64"))
    assert f"\n  {MSL[kind]} x;\n" in found.text
    assert f"  const {MSL[kind]} x = args.x;" in found.text


def test_all_of_them_mixed():
    """In an order in which nearly every field needs padding before it."""

    @T.prim_func
    def mixed(
        a: "bool", b: "int64", c: "int8", X: T.Tensor((16,), "float32"), d: "float16", e: "uint64", f: "uint8",
        g: "int16", h: "float32", i: "bfloat16", j: "int32", k: "uint16", m: "uint32",
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            tid = T.get_thread_binding(0)
            if tid == 0:
                X[0] = T.cast(a, "float32")
                X[1] = T.cast(b, "float32")
                X[2] = T.cast(c, "float32")
                X[3] = T.cast(d, "float32")
                X[4] = T.cast(e, "float32")
                X[5] = T.cast(f, "float32")
                X[6] = T.cast(g, "float32")
                X[7] = h
                X[8] = T.cast(i, "float32")
                X[9] = T.cast(j, "float32")
                X[10] = T.cast(k, "float32")
                X[11] = T.cast(m, "float32")

    order = (
        "bool",
        "int64",
        "int8",
        "float16",
        "uint64",
        "uint8",
        "int16",
        "float32",
        "bfloat16",
        "int32",
        "uint16",
        "uint32",
    )
    values = [VALUES[kind] for kind in order]
    _, out = right(mixed, *values[:3], np.zeros(16, "float32"), *values[3:])
    np.testing.assert_array_equal(out["X"][:12], np.float32(values))


def test_no_union_of_words():
    """Each scalar is a field of its own type, never a wrong union member."""
    found = text(echo("float16")).text
    assert "union" not in found
    assert re.search(r"struct echo_args \{\n  half x;\n\};", found)
    assert "constant echo_args& args [[buffer(1)]]" in found


def test_sizes_beside_scalars():
    """Runtime sizes are fields too, behind the other scalars."""
    n = T.dynamic("n")

    @T.prim_func
    def scaled(X: T.Tensor((n,), "float32"), flag: "bool", by: "float16"):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < n:
                    X[bx * 64 + i] = T.if_then_else(flag, X[bx * 64 + i] * T.cast(by, "float32"), 0.0)

    x = np.arange(77, dtype="float32")
    for flag in (True, False):
        _, out = right(scaled, x, flag, np.float16(0.5))
        np.testing.assert_array_equal(out["X"], x / 2 if flag else np.zeros(77))


def test_a_float_becomes_an_integer_only_by_a_written_conversion():
    """Conversions are explicit and in range: Metal leaves others undefined, and compilers may warn."""
    for name in sorted(HELPER_NAMES):
        if name.endswith("_of_f32"):
            kind = TYPES[name.removesuffix("_of_f32")]
            assert f"({kind})(" in helper(name).text, name
