"""Conversions between formats, and integer instructions."""

from itertools import product

import ml_dtypes
import numpy as np

from .table import LANES, Expected, Vector, assembly, words

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
FP8 = {"e4m3": (E4M3, 448.0, 0x7F), "e5m2": (E5M2, 57344.0, 0x7F)}


def vectors() -> list[Vector]:
    """All of them."""
    return [*_to_wide(), *_to_narrow(), *_tf32(), *_pairs(), *_fp8(), *_integers()]


def _convert(name, outs, ins, kind, values, oracle, template=None):
    opcode = f"cvt.{name}"
    operands = ", ".join(f"%{i}" for i in range(len(outs) + len(ins)))
    body = assembly(template or f"{opcode} {operands};", outs, ins)
    return Vector(name.replace(".", "_"), opcode, "convert", body, words(ins), words(outs), values,
                  lambda x, _: Expected(oracle(x)), kind)  # fmt: skip


def _low(x, dtype):
    return np.ascontiguousarray(x[:, :1].astype(np.uint16)).view(dtype)


def _as_words(array):
    array = np.ascontiguousarray(array)
    return array.view(np.uint32) if array.itemsize >= 4 else array.view(f"u{array.itemsize}").astype(np.uint32)


def _codes16(rng):
    special = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0xFE00, 0x7F80, 0xFF80, 0x7F7F, 0x80,
               0x7F]  # fmt: skip
    first = np.concatenate([special, rng.integers(0, 2**16, LANES - len(special))])
    return [first.astype(np.uint32)[:, None], *(rng.integers(0, 2**16, (LANES, 1), dtype=np.uint32) for _ in range(4))]


def _to_wide():
    yield _convert("f32.f16", "f", "h", "f32", _codes16, lambda x: _as_words(_quiet(_low(x, np.float16), np.float32)))
    yield _convert("f64.f16", "d", "h", "f64", _codes16, lambda x: _as_words(_quiet(_low(x, np.float16), np.float64)))
    yield _convert("f32.bf16", "f", "h", "f32", _codes16, lambda x: _as_words(x[:, :1] << np.uint32(16)))


def _quiet(array, dtype):
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _floats(rng, exponents=(-30, 18), count=1, mantissa=10):
    """Floats around a format: normal, subnormal, ties, overflow, and the special ones."""
    n = LANES * count
    drawn = []
    for case in range(4):
        size = 2.0 ** rng.integers(*exponents, n)
        values = (rng.random(n) + 1) * size * rng.choice([-1, 1], n)
        if case == 1:  # halfway between neighbours
            values = (rng.integers(2**mantissa, 2 ** (mantissa + 1), n) * 2 + 1) * size * 2.0 ** -(mantissa + 1)
        if case == 2:
            special = [
                *(0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 65535, 1e30, -1e30, 2.0**-24, 2.0**-25),
                *(1.5 * 2.0**-25, 2.0**-126, 2.0**-149, 3.4e38, -3.4e38, 448, 464, 465, 480, 57344, 61440, 61441),
            ]
            values[: len(special)] = special
        drawn.append(_quiet(values, np.float32).view(np.uint32).reshape(LANES, count))
    nan = rng.integers(1, 2**23, n) | 0x7F800000 | rng.integers(0, 2, n) << 31  # of any payload
    return [*drawn, nan.astype(np.uint32).reshape(LANES, count)]


def _f32(x, column=0):
    return np.ascontiguousarray(x[:, column : column + 1]).view(np.float32)


def _to_narrow():
    wide = lambda rng: [*_floats(rng), *_floats(rng, (-140, 128), mantissa=7)]  # noqa: E731
    yield _convert("rn.f16.f32", "h", "f", "f16", _floats, lambda x: _as_words(_quiet(_f32(x), np.float16)))
    yield _convert("rn.bf16.f32", "h", "f", "bf16", wide, lambda x: _as_words(_quiet(_f32(x), BF16)))
    yield _convert("rn.f16.bf16", "h", "h", "f16", _codes16,
                   lambda x: _as_words(_quiet((x[:, :1] << np.uint32(16)).view(np.float32), np.float16)))  # fmt: skip

    def doubles(rng):
        near = [
            _quiet(c.view(np.float32), np.float64) * (1 + rng.choice([-1, 0, 1], c.shape) * 2.0**-50)
            for c in _floats(rng)[:-1]
        ]
        nan = rng.integers(1, 2**52, (LANES, 1)) | 0x7FF << 52 | rng.integers(0, 2, (LANES, 1)) << 63
        return [np.ascontiguousarray(values).view(np.uint32) for values in (*near, nan)]

    def f64(x):
        return np.ascontiguousarray(x).view(np.float64)

    yield _convert("rn.f16.f64", "h", "d", "f16", doubles, lambda x: _as_words(_quiet(f64(x), np.float16)))
    yield _convert("rn.f32.f64", "f", "d", "f32", doubles, lambda x: _as_words(_quiet(f64(x), np.float32)))
    yield _convert("f64.f32", "d", "f", "f64", _floats, lambda x: _as_words(_quiet(_f32(x), np.float64)))


def _tf32():
    def oracle(ties_away):
        def rounded(x):
            values = _quiet(_f32(x), np.float64)
            with np.errstate(all="ignore"):
                unit = 2.0 ** (np.maximum(np.frexp(np.where(np.isfinite(values), values, 1))[1] - 1, -126) - 10)
                scaled = np.abs(values) / unit
                whole = np.floor(scaled + 0.5) if ties_away else np.rint(scaled)
                return _as_words(np.float32(np.copysign(whole * unit, values)))

        return rounded

    def values(rng):
        return [*_floats(rng), *_floats(rng, (-140, 127))]

    for way in ("rna", "rn"):
        yield _convert(f"{way}.tf32.f32", "r", "f", "f32", values, oracle(way == "rna"))


def _pairs():
    def values(rng):
        return _floats(rng, count=2)

    for name, dtype in (("f16", np.float16), ("bf16", BF16)):

        def oracle(x, dtype=dtype):
            return _as_words(_quiet(_f32(x, 1), dtype)) | _as_words(_quiet(_f32(x, 0), dtype)) << np.uint32(16)

        yield _convert(f"rn.{name}x2.f32", "r", "ff", name, values, oracle)


def _saturated(values, name):
    dtype, largest, nan = FP8[name]
    with np.errstate(all="ignore"):
        codes = _as_words(np.clip(values, -largest, largest).astype(dtype))
    return np.where(np.isnan(values), np.uint32(nan), codes)


def _fp8():
    def all_codes(_):
        return [
            np.arange(i, i + 64, dtype=np.uint8).view(np.uint16).astype(np.uint32)[:, None] for i in (0, 64, 128, 192)
        ]

    for name, (dtype, _, _) in FP8.items():

        def widened(x, dtype=dtype):
            codes = np.ascontiguousarray(x[:, :1].astype(np.uint16)).view(np.uint8)
            return np.ascontiguousarray(codes.view(dtype).astype(np.float16)).view(np.uint32)

        def narrowed(x, name=name):
            return _saturated(_f32(x, 1), name) | _saturated(_f32(x, 0), name) << np.uint32(8)

        def halves(x, name=name):
            parts = np.ascontiguousarray(x[:, :1]).view(np.float16).astype(np.float32)
            return _saturated(parts[:, :1], name) | _saturated(parts[:, 1:], name) << np.uint32(8)

        def near(rng, name=name):
            mantissa = 3 if name == "e4m3" else 2
            drawn = [*_floats(rng, (-12, 10), 2, mantissa), *_floats(rng, (-20, 18), 2, mantissa)]
            return [*drawn, *_midpoints(FP8[name][0])]

        def half_pairs(rng):
            return [rng.integers(0, 2**32, (LANES, 1), dtype=np.uint32) for _ in range(6)]

        yield _convert(f"rn.f16x2.{name}x2", "r", "h", "f16", all_codes, widened)
        yield _convert(f"rn.satfinite.{name}x2.f32", "h", "ff", "words", near, narrowed)
        yield _convert(f"rn.satfinite.{name}x2.f16x2", "h", "r", "words", half_pairs, halves)


def _midpoints(dtype):
    """Floats halfway between all neighbours of a format, and next to these."""
    numbers = np.sort(np.arange(128, dtype=np.uint8).view(dtype).astype(np.float32))
    numbers = numbers[np.isfinite(numbers)]
    middle = ((numbers[:-1].astype(np.float64) + numbers[1:]) / 2).astype(np.float32)
    sided = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))])
    every = np.concatenate([sided, -sided])
    every = np.resize(every, -(-every.size // (2 * LANES)) * 2 * LANES)
    return list(every.view(np.uint32).reshape(-1, LANES, 2))


# ----------------------------------------------------------------------------------------------------- integers


def _integers():
    for a, b in product(("s32", "u32"), ("s32", "u32")):

        def dot(x, a=a, b=b):
            left = np.ascontiguousarray(x[:, :1]).view(np.int8 if a == "s32" else np.uint8).astype(np.int64)
            right = np.ascontiguousarray(x[:, 1:2]).view(np.int8 if b == "s32" else np.uint8).astype(np.int64)
            return ((left * right).sum(axis=1) + x[:, 2].astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)[:, None]

        yield _integer(f"dp4a.{a}.{b}", f"dp4a_{a}_{b}", "%0, %1, %2, %3", 3, dot)
    yield _integer("prmt.b32", "prmt", "%0, %1, %2, %3", 3, _permuted)
    for table in (0x96, 0xE8, 0xCA, 0x01, 0x2D):
        yield _integer("lop3.b32", f"lop3_{table:x}", f"%0, %1, %2, %3, {table:#x}", 3, lambda x, t=table: _logic(x, t))
    yield Vector("mov_pack", "mov.b32", "convert", assembly("mov.b32 %0, {%2,%1};", "r", "hh"), 2, 1, _words(2),
                 lambda x, _: Expected((x[:, :1] & 0xFFFF) << np.uint32(16) | x[:, 1:] & 0xFFFF))  # fmt: skip
    yield Vector("mov_unpack", "mov.b64", "convert", assembly("mov.b64 {%1,%0}, %2;", "rr", "l"), 2, 2, _words(2),
                 lambda x, _: Expected(x[:, ::-1]))  # fmt: skip
    template = "{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %1, %2, p; @!p mov.b32 %0, 0x7; }"
    yield Vector("setp_selp", "setp.lt.s32", "convert", assembly(template, "r", "rr"), 2, 1, _words(2),
                 lambda x, _: Expected(np.where(x[:, :1].view(np.int32) < x[:, 1:].copy().view(np.int32), x[:, :1],
                                                np.uint32(7))))  # fmt: skip


def _words(count):
    return lambda rng: [rng.integers(0, 2**32, (LANES, count), dtype=np.uint32) for _ in range(3)]


def _integer(opcode, name, operands, count, oracle):
    body = assembly(f"{opcode} {operands};", "r", "r" * count)
    return Vector(name, opcode, "convert", body, count, 1, _words(count), lambda x, _: Expected(oracle(x)))


def _permuted(x):
    bytes_ = np.ascontiguousarray(x[:, :2]).view(np.uint8).reshape(LANES, 8)
    out = np.zeros((LANES, 4), np.uint8)
    for lane, i in product(range(LANES), range(4)):
        pick = int(x[lane, 2]) >> 4 * i & 15
        byte = bytes_[lane, pick & 7]
        out[lane, i] = (0xFF if byte >= 128 else 0) if pick & 8 else byte
    return out.view(np.uint32)


def _logic(x, table):
    bits = [(x[:, i][:, None] >> np.arange(32, dtype=np.uint32)) & 1 for i in range(3)]
    picked = (table >> (bits[0] * 4 + bits[1] * 2 + bits[2])) & 1
    return (picked.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)[:, None]
