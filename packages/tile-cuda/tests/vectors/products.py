"""Matrix products of a warp; fragments and metadata by the tables of the PTX manual."""

from itertools import product

import ml_dtypes
import numpy as np

from .table import LANES, Expected, Vector, assembly, vector_operand

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "s8": np.int8, "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8}
# Widely spread exponents of operands: results that lose bits, subnormal operands and results. By operand; those of an
# f16 accumulator do not overflow.
WIDE = {"f16": (-24, 15), "bf16": (-70, 60), "tf32": (-70, 60), "e4m3": (-9, 8), "e5m2": (-16, 15)}
SMALL = {"f16": (-24, -10), "bf16": (-75, -55), "tf32": (-75, -55), "e4m3": (-10, -4), "e5m2": (-17, -11)}
HUGE = {"f16": (5, 9), "bf16": (60, 64), "tf32": (60, 64), "e4m3": (4, 8), "e5m2": (4, 9)}  # accumulators that overflow
INTO_F16 = (-9, 4)
_STYLES = ("integers", "random", "special", "wide", "small", "huge")
LEGAL = np.array([4, 8, 9, 12, 13, 14], np.uint32)
LEGAL_PAIRS = np.array([4, 14], np.uint32)
LANE = np.arange(LANES)
G, T = LANE // 4, LANE % 4


def vectors() -> list[Vector]:
    """All of them."""
    rows = []
    for k, (a, b, c) in product((8, 16), (("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"))):
        rows.append(dense(k, a, b, c))
    for k in (4, 8):
        rows.append(dense(k, "tf32", "tf32", "f32"))
    for k, a, b, saturates in product((16, 32), ("s8", "u8"), ("s8", "u8"), (False, True)):
        rows.append(dense(k, a, b, "s32", saturates))
    for k, a, b, c in product((16, 32), ("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f32", "f16")):
        rows.append(dense(k, a, b, c))
    rows.append(double())
    for k, (a, b, c) in product((16, 32), (("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"))):
        rows += [sparse(k, a, b, c, s) for s in range(64 // k)]
    for k in (8, 16):
        rows += [sparse(k, "tf32", "tf32", "f32", s) for s in range(32 // k)]
    for k, a, b, saturates in product((32, 64), ("s8", "u8"), ("s8", "u8"), (False, True)):
        rows += [sparse(k, a, b, "s32", s, saturates) for s in range(64 // k)]
    rows += [sparse(64, a, b, "f32", 0) for a, b in product(("e4m3", "e5m2"), ("e4m3", "e5m2"))]
    return rows


def dense(k: int, a: str, b: str, c: str, saturates: bool = False) -> Vector:
    shape = f"m16n8k{k}.row.col{'.satfinite' if saturates else ''}"
    return _vector(f"mma.sync.aligned.{shape}.{c}.{a}.{b}.{c}", "mma", k, k, (a, b, c), None, saturates)


def sparse(k: int, a: str, b: str, c: str, selector: int, saturates: bool = False) -> Vector:
    shape = f"m16n8k{k}.row.col{'.satfinite' if saturates else ''}"
    opcode = f"mma.sp::ordered_metadata.sync.aligned.{shape}.{c}.{a}.{b}.{c}"
    return _vector(opcode, "mma_sp", k, k // 2, (a, b, c), selector, saturates)


def _vector(opcode, group, k, stored, types, selector, saturates) -> Vector:
    a, b, c = types
    na, nb, nc = stored * BITS[a] // 64, k * BITS[b] // 128, 2 if c == "f16" else 4
    letter = "f" if c == "f32" else "r"
    start = nc
    operands = [vector_operand(0, nc)]
    for count in (na, nb, nc):
        operands.append(vector_operand(start, count))
        start += count
    ins = "r" * (na + nb) + letter * nc
    if selector is not None:
        operands += [f"%{start}", f"{selector:#x}"]
        ins += "r"
    body = assembly(f"{opcode} {', '.join(operands)};", letter * nc, ins)

    def cases(rng):
        drawn = []
        for style in _STYLES if c != "s32" else _STYLES[:2]:
            parts = [_codes(rng, a, (LANES, na), style, c), _codes(rng, b, (LANES, nb), style, c)]
            parts.append(_accumulator(rng, c, nc, style, a))
            if selector is not None:
                parts.append(_metadata(rng, a, k, selector))
            drawn.append(np.concatenate(parts, axis=1))
        return drawn

    def oracle(x, _):
        fa, fb = x[:, :na], x[:, na : na + nb]
        accumulator = x[:, na + nb : na + nb + nc]
        left, right = matrix_a(fa, a, stored), matrix_b(fb, b, k)
        if selector is None:
            chosen = np.broadcast_to(np.arange(k), (16, k))
        else:
            chosen = columns_of(x[:, -1], a, k, selector)
        with np.errstate(all="ignore"):
            products = left[:, :, None] * right[chosen]  # row, stored, column
            total = products.sum(axis=1) + matrix_c(accumulator, c)
            sizes = _magnitude(left, a)[:, :, None] * _magnitude(right, b)[chosen]
            size = sizes.sum(axis=1) + np.abs(matrix_c(accumulator, c))
            exact = _whole(left) and _whole(right) and _whole(matrix_c(accumulator, c))
            relative = 2.0**-9 if c == "f16" else 2.0**-11 if BITS[a] == 8 else 2.0**-18
            least = 2.0**-24 if c == "f16" else 2.0**-148  # the steps of subnormal numbers
            bound = None if exact or c == "s32" else fragment(np.nan_to_num(size) * relative + least)
            if bound is not None:  # where overflow is a matter of the order
                of_order = fragment(size) > (2.0**15 if c == "f16" else 2.0**126)
                if not (c == "f16" and BITS[a] == 8):  # whose addend comes last: infinity and it may give NaN
                    of_order &= np.isfinite(fragment(size))
                bound[of_order] = np.inf
            return Expected(_write(total, c, saturates), bound=bound)

    kind = "words" if c == "s32" else f"~{c}"
    name = opcode.replace("::", "_").replace(".", "_") + ("" if selector is None else f"_{selector}")
    head = f"{group}_{'int8' if c == 's32' else 'fp8' if BITS[a] == 8 else 'float'}"
    return Vector(name, opcode, head, body, na + nb + nc + (selector is not None), nc, cases, oracle, kind)


# --------------------------------------------------------------------------------------------------- fragments


def matrix_a(registers: np.ndarray, kind: str, columns: int) -> np.ndarray:
    """Registers (lane, r) to the matrix (16, columns)."""
    values = elements(registers, kind)
    matrix = np.zeros((16, columns))
    per_word = values.shape[2]
    for r, e in product(range(values.shape[1]), range(per_word)):
        matrix[G + 8 * (r % 2), (T + 4 * (r // 2)) * per_word + e] = values[:, r, e]
    return matrix


def matrix_b(registers: np.ndarray, kind: str, rows: int) -> np.ndarray:
    values = elements(registers, kind)
    matrix = np.zeros((rows, 8))
    per_word = values.shape[2]
    for r, e in product(range(values.shape[1]), range(per_word)):
        matrix[(T + 4 * r) * per_word + e, G] = values[:, r, e]
    return matrix


def matrix_c(registers: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f16":
        values = np.ascontiguousarray(registers).view(np.float16).astype(np.float64)
    else:
        values = np.ascontiguousarray(registers).view(np.float32 if kind == "f32" else np.int32).astype(np.float64)
    matrix = np.zeros((16, 8))
    for i in range(4):
        matrix[G + 8 * (i // 2), 2 * T + i % 2] = values[:, i]
    return matrix


def fragment(matrix: np.ndarray) -> np.ndarray:
    return np.stack([matrix[G + 8 * (i // 2), 2 * T + i % 2] for i in range(4)], axis=1)


def elements(registers: np.ndarray, kind: str) -> np.ndarray:
    """Registers (lane, r) to values (lane, r, element)."""
    registers = np.ascontiguousarray(registers)
    if kind == "tf32":
        registers = registers & np.uint32(0xFFFFE000)
    with np.errstate(invalid="ignore"):
        return registers[..., None].view(TYPES[kind]).astype(np.float64)


def columns_of(metadata: np.ndarray, kind: str, k: int, selector: int) -> np.ndarray:
    """Dense column of each stored element of each row."""
    group = 2 if kind == "tf32" else 4
    found = np.zeros((16, k // 2), int)
    for row, n in product(range(16), range(k // group)):
        quad = 4 * (row % 8)
        if BITS[kind] == 8 and k == 64:
            word, bit = metadata[quad + (row >= 8) + 2 * (n // 8)], 4 * (n % 8)
        elif BITS[kind] == 8:
            word, bit = metadata[quad + 2 * selector + (row >= 8)], 4 * n
        elif k // group == 4:
            word, bit = metadata[quad + selector], 16 * (row >= 8) + 4 * n
        else:
            word, bit = metadata[quad + 2 * selector + n // 4], 16 * (row >= 8) + 4 * (n % 4)
        nibble = int(word) >> bit & 15
        if kind == "tf32":
            found[row, n] = 2 * n + {4: 0, 14: 1}[nibble]
        else:
            found[row, 2 * n : 2 * n + 2] = 4 * n + (nibble & 3), 4 * n + (nibble >> 2)
    return found


def _write(total: np.ndarray, kind: str, saturates: bool) -> np.ndarray:
    values = fragment(total)
    if kind == "f32":
        return values.astype(np.float32).view(np.uint32)
    if kind == "f16":
        return np.ascontiguousarray(values.astype(np.float16)).view(np.uint32)
    whole = values.astype(np.int64)
    if saturates:
        whole = np.clip(whole, -(2**31), 2**31 - 1)
    return (whole & 0xFFFFFFFF).astype(np.uint32)


def _magnitude(matrix: np.ndarray, kind: str) -> np.ndarray:
    """Return magnitudes as a device aligns them: subnormals as the least normal number."""
    least = 2.0 ** (-126 if kind in ("bf16", "tf32") else -14)
    return np.where(matrix == 0, 0, np.maximum(np.abs(matrix), least if BITS[kind] > 8 or kind[0] == "e" else 0))


def _whole(matrix: np.ndarray) -> bool:
    return bool((np.abs(matrix) <= 64).all() and (matrix == np.round(matrix)).all())


# --------------------------------------------------------------------------------------------------------- data


def _spread(kind, into, style):
    """The range of exponents of operands."""
    if style == "wide":
        return INTO_F16 if into == "f16" else WIDE[kind]
    return SMALL[kind] if style == "small" else HUGE[kind]


def _codes(rng, kind, shape, style, into):
    count = (*shape, 32 // BITS[kind])
    if kind in ("s8", "u8"):
        low, high = (np.iinfo(TYPES[kind]).min, np.iinfo(TYPES[kind]).max) if style == "random" else (0, 5)
        return rng.integers(low, high, count, endpoint=True).astype(TYPES[kind]).view(np.uint32)[..., 0]
    values = (
        rng.integers(-4, 4, count, endpoint=True).astype(np.float64) if style == "integers" else rng.normal(size=count)
    )
    if style == "special":
        pick = rng.random(count)
        values = np.where(pick < 0.01, np.inf, np.where(pick < 0.015, np.nan, values))
    if style in ("wide", "small", "huge"):
        exponents = rng.integers(*_spread(kind, into, style), count)
        values = (1 + rng.random(count)) * 2.0**exponents * rng.choice([-1, 1], count)
    with np.errstate(all="ignore"):
        coded = np.ascontiguousarray(values.astype(TYPES[kind]))
    return coded.view(np.uint32)[..., 0]


def _accumulator(rng, kind, count, style, operand):
    if kind == "s32":
        near = 2**31 - 1 - rng.integers(0, 3 * 10**4, (LANES, count))
        accumulator = (
            near * rng.choice([-1, 1], (LANES, count)) if style == "random" else rng.integers(-9, 9, (LANES, count))
        )
        return accumulator.astype(np.int32).view(np.uint32)
    values = rng.integers(-9, 9, (LANES, 4)).astype(float) if style == "integers" else rng.normal(size=(LANES, 4))
    if style in ("wide", "small", "huge"):
        low, high = _spread(operand, kind, style)
        values *= 2.0 ** rng.integers(2 * low, min(2 * high, 126), (LANES, 4))
    return np.ascontiguousarray(values.astype(np.float16 if kind == "f16" else np.float32)).view(np.uint32)


def _metadata(rng, kind, k, selector):
    """Legal nibbles in the lanes that supply them; anything in the others."""
    nibbles = rng.choice(LEGAL_PAIRS if kind == "tf32" else LEGAL, (LANES, 8))
    legal = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(axis=1).astype(np.uint32)
    suppliers = {4: selector == T, 8: selector == T // 2}.get(k // (2 if kind == "tf32" else 4), T >= 0)
    anything = rng.integers(0, 2**32, LANES, dtype=np.uint32)
    return np.where(suppliers, legal, anything).astype(np.uint32)[:, None]


# ------------------------------------------------------------------------------------------------------- double


def double() -> Vector:
    opcode = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
    body = assembly(f"{opcode} {{%0,%1}}, {{%2}}, {{%3}}, {{%4,%5}};", "dd", "dddd")

    def cases(rng):
        whole = rng.integers(-9, 9, (LANES, 4)).astype(np.float64)
        return [np.ascontiguousarray(x).view(np.uint32) for x in (whole, rng.normal(size=(LANES, 4)))]

    def oracle(x, _):
        values = np.ascontiguousarray(x).view(np.float64)
        a, b = np.zeros((8, 4)), np.zeros((4, 8))
        a[G, T], b[T, G] = values[:, 0], values[:, 1]
        out = np.stack([(a @ b)[G, 2 * T + i] + values[:, 2 + i] for i in range(2)], axis=1)
        size = np.stack([(abs(a) @ abs(b))[G, 2 * T + i] + abs(values[:, 2 + i]) for i in range(2)], axis=1)
        return Expected(np.ascontiguousarray(out).view(np.uint32), bound=None if _whole(a) else size * 2.0**-50)

    return Vector("mma_f64", opcode, "mma_float", body, 8, 4, cases, oracle, "~f64")
