"""Atomic instructions, and loads and stores with an order."""

import ml_dtypes
import numpy as np

from .table import LANES, READ, TYPE, WRITE, Expected, Vector, words

TYPES = {"u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
         "f32": np.float32, "f64": np.float64, "b16": np.uint16}  # fmt: skip
LETTER = {"u64": "l", "s64": "l", "b64": "l", "f32": "f", "f64": "d", "b16": "h", "f16": "h", "bf16": "h"}
HALVES = {"f16": np.float16, "f16x2": np.float16, "bf16": ml_dtypes.bfloat16, "bf16x2": ml_dtypes.bfloat16}
OPERATIONS = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "exch": ("b32", "b64"), "inc": ("u32",),
    "dec": ("u32",),
}  # fmt: skip
ORDERS = ("", "relaxed.gpu.", "acquire.cta.", "release.sys.", "acq_rel.gpu.")


def vectors() -> list[Vector]:
    """All of them."""
    rows = [atom(op, kind, i) for i, (op, kind) in enumerate((o, k) for o, kinds in OPERATIONS.items() for k in kinds)]
    rows += [red("add", "u32"), red("max", "s32"), red("xor", "b32"), red("add", "u64")]
    rows += [swap(kind) for kind in ("b16", "b32", "b64")]
    rows += [add_halves(kind) for kind in HALVES]
    return [*rows, shared_add(), flushed_add(), contended(), *_accesses()]


def _asm(template: str, outs: str, ins: str) -> str:
    return f'asm volatile("{template}" : {outs} : {ins} : "memory");'


# Each lane has two words of its own.
MINE = '"l"(m + threadIdx.x * 2)'


def _memory(rng):
    return rng.integers(0, 2**32, LANES * 2, dtype=np.uint32)


def _own(memory, dtype):
    """First value of each lane in the memory."""
    return np.ascontiguousarray(memory.reshape(LANES, 2)).view(dtype)[:, 0]


def _put(memory, values):
    out = np.ascontiguousarray(memory.reshape(LANES, 2)).copy()
    out.view(values.dtype)[:, 0] = values
    return out.reshape(-1)


def _result(letter):
    return f"{TYPE[letter]} d; ", f'"={letter}"(d)', WRITE[letter].format(0, 1, "d")


def _given(letter):
    return READ[letter].format(0, 1)


def _applied(op, old, by):
    with np.errstate(all="ignore"):
        table = {"add": lambda: old + by, "min": lambda: np.minimum(old, by), "max": lambda: np.maximum(old, by),
                 "and": lambda: old & by, "or": lambda: old | by, "xor": lambda: old ^ by, "exch": lambda: by,
                 "inc": lambda: np.where(old >= by, 0, old + 1),
                 "dec": lambda: np.where((old == 0) | (old > by), by, old - 1)}  # fmt: skip
        return table[op]().astype(old.dtype)


def _is_float(kind):
    return kind in ("f32", "f64")


def atom(op: str, kind: str, number: int) -> Vector:
    order = ORDERS[number % len(ORDERS)] if op != "inc" else ""
    space = "global." if number % 3 else ""
    opcode = f"atom.{order}{space}{op}.{kind}"
    letter = LETTER.get(kind, "r")
    declare, out, store = _result(letter)
    body = declare + _asm(f"{opcode} %0, [%1], %2;", out, f'{MINE}, "{letter}"({_given(letter)})') + store
    count = words(letter)

    def numbers(rng):
        return np.ascontiguousarray(rng.normal(size=LANES).astype(TYPES[kind])).view(np.uint32).reshape(LANES, count)

    def cases(rng):
        drawn = [
            numbers(rng) if _is_float(kind) else rng.integers(0, 2**32, (LANES, count), dtype=np.uint32) for _ in "12"
        ]
        if op in ("inc", "dec"):
            drawn[1][:, 0] |= 0xC0000000
        return drawn

    def memory(rng):
        if not _is_float(kind):
            return _memory(rng)
        return np.concatenate([numbers(rng), np.zeros((LANES, 2 - count), np.uint32)], axis=1).reshape(-1)

    def oracle(x, before):
        old = _own(before, TYPES[kind])
        by = np.ascontiguousarray(x).view(TYPES[kind])[:, 0]
        return Expected(old.copy().view(np.uint32).reshape(LANES, count), _put(before, _applied(op, old, by)))

    return Vector(f"atom_{op}_{kind}", opcode, "atomic", body, count, count, cases, oracle, "words", memory)


def red(op: str, kind: str) -> Vector:
    opcode = f"red.{'relaxed.gpu.' if kind == 's32' else ''}global.{op}.{kind}"
    letter = LETTER.get(kind, "r")
    body = _asm(f"{opcode} [%0], %1;", "", f'{MINE}, "{letter}"({_given(letter)})') + " y[0] = 0;"
    count = words(letter)

    def oracle(x, before):
        by = np.ascontiguousarray(x).view(TYPES[kind])[:, 0]
        return Expected(np.zeros((LANES, 1), np.uint32), _put(before, _applied(op, _own(before, TYPES[kind]), by)))

    return Vector(f"red_{op}_{kind}", opcode, "atomic", body, count, 1, _random(count), oracle, "words", _memory)


def _random(count):
    return lambda rng: [rng.integers(0, 2**32, (LANES, count), dtype=np.uint32) for _ in range(2)]


def swap(kind: str) -> Vector:
    opcode = f"atom.global.cas.{kind}"
    letter = LETTER.get(kind, "r")
    declare, out, store = _result(letter)
    # Every other lane expects the current value.
    types = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long"}[letter]
    expect = f"{types} e = threadIdx.x % 2 ? *(const {types}*)(m + threadIdx.x * 2) : ({types})~0; "
    body = (
        declare
        + expect
        + _asm(f"{opcode} %0, [%1], %2, %3;", out, f'{MINE}, "{letter}"(e), "{letter}"({_given(letter)})')
    )
    count = words(letter)

    def oracle(x, before):
        old = _own(before, TYPES[kind])
        fresh = np.ascontiguousarray(x).view(TYPES[kind])[:, 0]
        odd = np.arange(LANES) % 2 == 1
        found = old.astype(np.uint64).view(np.uint32).reshape(LANES, 2)[:, :count]
        return Expected(found, _put(before, np.where(odd, fresh, old).astype(TYPES[kind])))

    return Vector(f"cas_{kind}", opcode, "atomic", body + store, count, count, _random(count), oracle, "words", _memory)


def add_halves(kind: str) -> Vector:
    opcode = f"atom.global.add.noftz.{kind}"
    letter = LETTER.get(kind, "r")
    declare, out, store = _result(letter)
    body = declare + _asm(f"{opcode} %0, [%1], %2;", out, f'{MINE}, "{letter}"({_given(letter)})') + store
    pairs = kind.endswith("x2")

    def pack(values):
        codes = np.ascontiguousarray(values.astype(HALVES[kind])).view(np.uint16).astype(np.uint32)
        return codes[:, 0] | codes[:, 1] << np.uint32(16)

    def cases(rng):
        keep = np.uint32(0xFFFFFFFF if pairs else 0xFFFF)
        return [pack(rng.normal(size=(LANES, 2)) * size)[:, None] & keep for size in (1, 2.0**-15, 2.0**15)]

    def memory(rng):
        return np.stack([pack(rng.normal(size=(LANES, 2))), np.zeros(LANES, np.uint32)], axis=1).reshape(-1)

    def oracle(x, before):
        old = np.ascontiguousarray(before.reshape(LANES, 2)).view(HALVES[kind])[:, :2]
        by = np.ascontiguousarray(x).view(HALVES[kind])
        with np.errstate(all="ignore"):
            total = (old.astype(np.float64) + by.astype(np.float64)).astype(HALVES[kind])
        after = np.ascontiguousarray(before.reshape(LANES, 2)).copy()
        after.view(HALVES[kind])[:, : 2 if pairs else 1] = total[:, : 2 if pairs else 1]
        found = before.reshape(LANES, 2)[:, :1] & np.uint32(0xFFFFFFFF if pairs else 0xFFFF)
        return Expected(found, after.reshape(-1))

    return Vector(f"atom_add_{kind}", opcode, "atomic", body, 1, 1, cases, oracle, "words", memory)


def shared_add() -> Vector:
    """Add floats in shared memory; keep subnormal numbers."""
    address = '"r"((unsigned)__cvta_generic_to_shared(smem + threadIdx.x * 4))'
    body = (
        "((float*)smem)[threadIdx.x] = __uint_as_float(x[0]); __syncthreads(); "
        + _asm("red.shared.add.f32 [%0], %1;", "", f'{address}, "f"(__uint_as_float(x[1]))')
        + " __syncthreads(); y[0] = ((unsigned*)smem)[threadIdx.x];"
    )

    def cases(rng):
        return [(rng.normal(size=(LANES, 2)) * size).astype(np.float32).view(np.uint32) for size in (1, 2.0**-130)]

    def oracle(x, _):
        values = np.ascontiguousarray(x).view(np.float32)
        return Expected((values[:, :1] + values[:, 1:]).view(np.uint32))

    return Vector("red_shared_f32", "red.shared.add.f32", "atomic", body, 2, 1, cases, oracle)


def flushed_add() -> Vector:
    """Add floats in global memory; flush subnormal operands and results."""
    declare, out, store = _result("f")
    body = declare + _asm("atom.global.add.f32 %0, [%1], %2;", out, f'{MINE}, "f"({_given("f")})') + store

    def small(rng, count):
        return (rng.normal(size=(LANES, count)) * 2.0**-125).astype(np.float32).view(np.uint32)

    def flush(values):
        return np.where(np.abs(values) < 2.0**-126, np.copysign(np.float32(0), values), values)

    def oracle(x, before):
        old = _own(before, np.float32)
        total = flush(flush(old) + flush(np.ascontiguousarray(x).view(np.float32)[:, 0]))
        return Expected(old.copy().view(np.uint32)[:, None], _put(before, total.astype(np.float32)))

    return Vector("atom_flush_f32", "atom.global.add.f32", "atomic", body, 1, 1, lambda rng: [small(rng, 1)], oracle,
                  "words", lambda rng: small(rng, 2).reshape(-1))  # fmt: skip


def contended() -> Vector:
    """All lanes add to one word."""
    body = _asm("red.global.add.u32 [%0], %1;", "", '"l"(m), "r"(x[0])') + " y[0] = 0;"

    def oracle(x, before):
        after = before.copy()
        after[0] = (int(before[0]) + int(x.astype(np.uint64).sum())) & 0xFFFFFFFF
        return Expected(np.zeros((LANES, 1), np.uint32), after)

    return Vector("red_contended", "red.global.add.u32", "atomic", body, 1, 1, _random(1), oracle, "words", _memory)


def _accesses():
    for opcode_load, opcode_store in (
        ("ld.global.b32", "st.global.b32"),
        ("ld.acquire.gpu.global.u32", "st.release.gpu.global.u32"),
        ("ld.relaxed.sys.global.u32", "st.relaxed.cta.global.u32"),
    ):
        body = (
            "unsigned d; "
            + _asm(f"{opcode_load} %0, [%1];", '"=r"(d)', MINE)
            + _asm(f"{opcode_store} [%0+4], %1;", "", f'{MINE}, "r"(x[0])')
            + " y[0] = d;"
        )

        def oracle(x, before):
            after = before.reshape(LANES, 2).copy()
            after[:, 1] = x[:, 0]
            return Expected(before.reshape(LANES, 2)[:, :1], after.reshape(-1))

        name = opcode_load.replace(".", "_")
        yield Vector(name, opcode_load, "atomic", body, 1, 1, _random(1), oracle, "words", _memory)
    body = (
        "unsigned d0, d1; "
        + _asm("ld.global.v2.u32 {%0,%1}, [%2];", '"=r"(d0), "=r"(d1)', MINE)
        + " y[0] = d0; y[1] = d1;"
    )
    yield Vector("ld_v2", "ld.global.v2.u32", "atomic", body, 1, 2, _random(1),
                 lambda x, before: Expected(before.reshape(LANES, 2)), "words", _memory)  # fmt: skip
    body = "short d; " + _asm("ld.global.s8 %0, [%1];", '"=h"(d)', MINE) + " y[0] = (unsigned)(int)d;"
    yield Vector("ld_s8", "ld.global.s8", "atomic", body, 1, 1, _random(1), lambda x, before: Expected(
        _own(before, np.int8).astype(np.int32).view(np.uint32)[:, None]), "words", _memory)  # fmt: skip
