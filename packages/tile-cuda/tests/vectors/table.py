"""Kernels of one instruction each, as data: text, inputs, and expected outputs.

A kernel of a group runs many of them: every block runs one case of one vector, which a plan names. Each of the 32
threads of a block reads its ``inputs`` words and writes its ``outputs`` words; a block may have ``memory`` words of its
own besides. The same text is compiled for a device (``record.py``) and runs on the models.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

LANES = 32
SHARED_BYTES = 2048
PARAMS = ("in", "plan", "out", "memory")
ENTRY = "group"


@dataclass(frozen=True)
class Expected:
    """Words per lane, and of the memory behind them; ``bound`` is the allowed error of each value (none: exact;
    infinity: any, for totals whose overflow depends on the order)."""

    out: np.ndarray
    memory: np.ndarray | None = None
    bound: np.ndarray | None = None


@dataclass(frozen=True)
class Vector:
    """One instruction.

    ``kind`` selects a comparison: "words" bit by bit; "f16", "bf16", "f32", "f64" bit by bit too, but NaN equals
    NaN; "~f16", "~f32", "~f64" as values, within the bound.
    """

    name: str
    opcode: str
    group: str
    body: str
    inputs: int
    outputs: int
    cases: Callable[[np.random.Generator], list[np.ndarray]]  # each of (LANES, inputs) words
    oracle: Callable[[np.ndarray, np.ndarray], Expected]
    kind: str = "words"
    memory: Callable[[np.random.Generator], np.ndarray] | None = None


READ = {"h": "(unsigned short)x[{0}]", "r": "x[{0}]", "f": "__uint_as_float(x[{0}])",
        "l": "(x[{0}] | (unsigned long long)x[{1}] << 32)",
        "d": "__longlong_as_double((long long)(x[{0}] | (unsigned long long)x[{1}] << 32))"}  # fmt: skip
TYPE = {"h": "unsigned short", "r": "unsigned", "f": "float", "l": "unsigned long long", "d": "double"}
WRITE = {"h": "y[{0}] = {2};", "r": "y[{0}] = {2};", "f": "y[{0}] = __float_as_uint({2});",
         "l": "y[{0}] = (unsigned){2}; y[{1}] = (unsigned)({2} >> 32);",
         "d": "y[{0}] = (unsigned)__double_as_longlong({2}); y[{1}] = (unsigned)(__double_as_longlong({2}) >> 32);",
         }  # fmt: skip


def words(letters: str) -> int:
    """Words that operands of these constraints take."""
    return sum(2 if letter in "ld" else 1 for letter in letters)


def assembly(template: str, outs: str, ins: str, *more: str, first: int = 0) -> str:
    """Return a body of one asm statement with words from ``first`` on, then ``more``."""
    lines, given, results, at = [], [], [], first
    for letter in ins:
        given.append(f'"{letter}"({READ[letter].format(at, at + 1)})')
        at += words(letter)
    for i, letter in enumerate(outs):
        lines.append(f"{TYPE[letter]} d{i};")
        results.append(f'"={letter}"(d{i})')
    lines.append(f'asm volatile("{template}" : {", ".join(results)} : {", ".join([*given, *more])} : "memory");')
    at = 0
    for i, letter in enumerate(outs):
        lines.append(WRITE[letter].format(at, at + 1, f"d{i}"))
        at += words(letter)
    return " ".join(lines)


def vector_operand(start: int, count: int) -> str:
    """``{%3,%4}``."""
    return "{" + ",".join(f"%{start + i}" for i in range(count)) + "}"


@dataclass
class Plan:
    """A group's launch: arrays by parameter, and positions of the cases of a vector."""

    arrays: dict[str, np.ndarray]
    rows: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)  # offsets of in, out, memory

    @property
    def blocks(self) -> int:
        return len(self.arrays["plan"]) // 4


def text_of(vectors: list[Vector]) -> str:
    """Return the kernel of a group."""
    functions = [
        f"__device__ void run_{v.name}(const unsigned* x, unsigned* y, unsigned* m, unsigned char* smem) "
        f"{{ {v.body} }}\n"
        for v in vectors
    ]
    calls = [
        f"    case {i}: run_{v.name}(in + p[1] + threadIdx.x * {v.inputs}, out + p[2] + threadIdx.x * {v.outputs}, "
        "memory + p[3], smem); break;\n"
        for i, v in enumerate(vectors)
    ]
    return (
        "".join(functions)
        + f'extern "C" __global__ void __launch_bounds__({LANES}) {ENTRY}(const unsigned* __restrict__ in, '
        "const int* __restrict__ plan, unsigned* out, unsigned* memory) {\n"
        "  extern __shared__ __align__(1024) unsigned char smem[];\n"
        "  const int* p = plan + blockIdx.x * 4;\n  switch (p[0]) {\n" + "".join(calls) + "  }\n}\n"
    )


@np.errstate(all="ignore")
def plan_of(vectors: list[Vector], seed: int) -> Plan:
    """Return the launch with fresh data."""
    ins, plan, memories = [], [], []
    rows: dict[str, list[tuple[int, int, int]]] = {}
    at_in = at_out = at_memory = 0
    for i, v in enumerate(vectors):
        rng = np.random.default_rng([seed, sum(map(ord, v.name)), len(v.name)])
        for case in v.cases(rng):
            assert case.shape == (LANES, v.inputs)
            assert case.dtype == np.uint32
            at_in = -(-at_in // 4) * 4  # of 16 bytes
            rows.setdefault(v.name, []).append((at_in, at_out, at_memory))
            plan += [i, at_in, at_out, at_memory]
            ins.append((at_in, case))
            memory = v.memory(rng) if v.memory else np.zeros(0, np.uint32)
            memories.append(memory)
            at_in += case.size
            at_out += LANES * v.outputs
            at_memory += memory.size + memory.size % 2
            memories.append(np.zeros(memory.size % 2, np.uint32))
    flat = np.zeros(max(at_in, 1), np.uint32)
    for start, case in ins:
        flat[start : start + case.size] = case.reshape(-1)
    arrays = {
        "in": flat,
        "plan": np.array(plan, np.int32),
        "out": np.full(max(at_out, 1), 0xFFFFFFFF, np.uint32),
        "memory": np.concatenate([*memories, np.zeros(2, np.uint32)]),
    }
    return Plan(arrays, rows)


@np.errstate(all="ignore")
def check(v: Vector, plan: Plan, result: dict[str, np.ndarray]) -> None:
    """Compare outputs of a launch with the oracle of a vector."""
    for at_in, at_out, at_memory in plan.rows[v.name]:
        x = plan.arrays["in"][at_in : at_in + LANES * v.inputs].reshape(LANES, v.inputs)
        size = _memory_size(v)
        before = plan.arrays["memory"][at_memory : at_memory + size]
        expected = v.oracle(x, before)
        found = result["out"][at_out : at_out + LANES * v.outputs].reshape(LANES, v.outputs)
        compare(v.kind, found, expected.out, expected.bound, v.name)
        if expected.memory is not None:
            compare("words", result["memory"][at_memory : at_memory + size], expected.memory, None, v.name)


def _memory_size(v: Vector) -> int:
    return v.memory(np.random.default_rng(0)).size if v.memory else 0


def compare(kind: str, found: np.ndarray, expected: np.ndarray, bound: np.ndarray | None, name: str) -> None:
    """Compare words as values of a kind."""
    if kind == "words":
        assert np.array_equal(found, expected), f"{name}: {_differences(found, expected)}"
        return
    a, b = (values(kind.lstrip("~"), array) for array in (found, expected))
    both_nan = np.isnan(a) & np.isnan(b)
    if not kind.startswith("~"):
        codes = {"f64": np.uint64, "f32": np.uint32}.get(kind, np.uint16)
        x, y = (np.ascontiguousarray(array).view(codes) for array in (found, expected))
        same = both_nan | (x == y)
    else:
        allowed = np.zeros(b.shape) if bound is None else bound
        with np.errstate(invalid="ignore"):
            same = both_nan | (a == b) | (np.abs(a - b) <= allowed) | (allowed == np.inf)
    assert same.all(), f"{name}: found {a[~same][:4]}, expected {b[~same][:4]} at {np.argwhere(~same)[:4].tolist()}"


def values(kind: str, array: np.ndarray) -> np.ndarray:
    """Words as double."""
    array = np.ascontiguousarray(array)
    if kind == "bf16":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    types = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    with np.errstate(invalid="ignore"):
        return array.view(types[kind]).astype(np.float64)


def _differences(found: np.ndarray, expected: np.ndarray) -> str:
    at = np.argwhere(found != expected)[:4]
    return ", ".join(f"{tuple(map(int, i))}: {found[tuple(i)]:#x} for {expected[tuple(i)]:#x}" for i in at)
