"""Matrix instructions: the models against products by NumPy, and the lowering against AMD's published layouts."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import tile_emulator
from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.numerics.codecs import decode, encode
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_rocm_stub.emit.functions import BYTES, prelude
from tile_rocm_stub.emulation import dialect
from tile_rocm_stub.instructions import INSTRUCTIONS
from tile_rocm_stub.ops.families import ELEMENTS, small_floats
from tile_rocm_stub.ops.plan import MfmaPlan
from tile_rocm_stub.target import RECORDS, make_target

PUBLISHED = np.load(Path(__file__).parent / "published.npz")
TOTALS = {"float32": "float", "int32": "int", "float64": "double"}
#: The part of the index register that an instruction looks at has a nibble for each group of 4 that a lane holds.
CASES = [
    (name, part) for name, one in INSTRUCTIONS.items() for part in range(32 // one.each if one.sparse else 1)
]  # fmt: skip
BYTES_AB, BYTES_C = 16, 64


def formats(arch):
    """The element types of the instructions' inputs, by their names in instructions."""
    small = {name: fmt for fmt, name in small_floats(RECORDS[arch].fp8).items()}
    return ELEMENTS | small


def exists(name, arch):
    return RECORDS[arch].xf32 or "xf32" not in name


def random_codes(kind, shape, rng):
    """Random numbers as codes in memory, and their values."""
    if kind == "int8":
        codes = rng.integers(-128, 128, shape).astype("int8")
        return codes, codes.astype("float64")
    if kind in ("float32", "float64"):
        values = rng.integers(-500, 500, shape) / 64  # exact with the 10 bits of mantissa of xf32
        return values.astype(kind), values
    values = decode(encode(rng.integers(-50, 50, shape) / 8, kind), kind)
    return encode(values, kind), values.astype("float64")


def scattered(table, matrix, width):
    """Return each lane's bytes of the elements in `table`, padded to `width` bytes."""
    rows = np.ascontiguousarray(matrix[table[..., 0], table[..., 1]]).view("uint8").reshape(64, -1)
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


class Product:
    """One instruction on random matrices, and each lane's operands."""

    def __init__(self, name, part, arch):
        one, rng = INSTRUCTIONS[name], np.random.default_rng(part + 1)
        tables = {m: PUBLISHED[f"{name}.{m}"] for m in ("ABDK" if one.sparse else "ABD")}
        types = [formats(arch)[x] for x in one.inputs]
        a_codes, a = random_codes(types[0], (one.m, one.k), rng)
        b_codes, b = random_codes(types[1], (one.k, one.n), rng)
        index = np.zeros(64, "uint32")
        self.c = rng.integers(-99, 99, (one.m, one.n)).astype(one.total)
        if one.sparse:
            pairs = np.array([(i, j) for j in range(4) for i in range(j)])
            kept = pairs[rng.integers(0, 6, (one.m, one.k // 4))]  # row, group, first and second
            mask = np.zeros((one.m, one.k), bool)
            np.put_along_axis(mask.reshape(one.m, -1, 4), kept, True, axis=2)
            a = np.where(mask, a, 0)
            # Of the 4 elements that a cell names, those that are kept are stored, in order.
            cells = tables["A"].reshape(64, -1, 4, 2)
            rows, groups = cells[:, :, 0, 0], cells[:, :, 0, 1] // 4
            columns = groups[..., None] * 4 + kept[rows, groups]
            tables["A"] = np.stack([np.broadcast_to(rows[..., None], columns.shape), columns], -1).reshape(64, -1, 2)
            cells = tables["K"].reshape(64, -1, 4, 2)[:, :, 0]
            nibbles = kept[cells[..., 0], cells[..., 1] // 4] @ [1, 4]
            shifts = 4 * np.arange(nibbles.shape[1]) + part * one.each
            index = (nibbles.astype("uint32") << shifts.astype("uint32")).sum(1).astype("uint32")
        self.lanes = (scattered(tables["A"], a_codes, BYTES_AB), scattered(tables["B"], b_codes, BYTES_AB))
        self.given, self.index, self.held = scattered(tables["D"], self.c, BYTES_C), index, tables["D"]
        self.expected = a @ b + self.c


def text_of(cases):
    """A kernel whose blocks execute one instruction each."""
    lines, types = [], set()
    for number, (name, part) in enumerate(cases):
        one = INSTRUCTIONS[name]
        types |= {one.d, one.a, one.b} - {"float", "double"}
        d, a, b = (f"*({t}*)&{p}[at * {r}]" for t, p, r in (
            (one.d, "out", BYTES_C), (f"const {one.a}", "a", BYTES_AB), (f"const {one.b}", "b", BYTES_AB),
        ))  # fmt: skip
        flags = f"(int)index[at], 0, {part}" if one.sparse else "0, 0, 0"
        c = f"*(const {one.d}*)&c[at * {BYTES_C}]"
        lines.append(f"  if (block == {number}) {d} = {one.builtin}({a}, {b}, {c}, {flags});")
    return "\n".join([
        *prelude(types, (), {}),
        'extern "C" __global__ void multiply(const unsigned char* a, const unsigned char* b, const unsigned char* c,',
        "    const unsigned* index, unsigned char* out) {",
        "  const int block = (int)__builtin_amdgcn_workgroup_id_x();",
        "  const int at = block * 64 + (int)__builtin_amdgcn_workitem_id_x();",
        *lines, "}\n",
    ])  # fmt: skip


def run(cases, arch, products, threads=64):
    params = [ParamFact(n, "pointer", "uint8", "read", 16) for n in "abc"]
    params += [ParamFact("index", "pointer", "uint32", "read", 16), ParamFact("out", "pointer", "uint8", "write", 16)]
    facts = LaunchFacts("multiply", tuple(params), (len(cases), 1, 1), (threads, 1, 1))
    lanes = {n: np.stack([p.lanes[i] for p in products]).ravel() for i, n in enumerate("ab")}
    given = {"c": np.stack([p.given for p in products]).ravel(), "index": np.stack([p.index for p in products]).ravel()}
    out = np.zeros(len(cases) * 64 * BYTES_C, "uint8")
    return tile_emulator.run(text_of(cases), facts, {**lanes, **given, "out": out}, dialect(make_target(arch)))


@functools.cache
def results(arch):
    cases = [case for case in CASES if exists(case[0], arch)]
    products = [Product(*case, arch) for case in cases]
    result = run(cases, arch, products)
    assert result.ok, [str(r) for r in result.reports]
    outputs = result.outputs["out"].reshape(len(cases), 64, BYTES_C)
    return {case: (p, out) for case, p, out in zip(cases, products, outputs, strict=True)}


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("arch", "name", "part"), [(arch, *case) for arch in RECORDS for case in CASES if exists(case[0], arch)]
)
def test_models_agree_with_numpy(arch, name, part):
    product, out = results(arch)[name, part]
    one, held = INSTRUCTIONS[name], product.held
    assert BYTES[one.d] == held.shape[1] * np.dtype(one.total).itemsize
    found = np.zeros((one.m, one.n), one.total)
    found[held[..., 0], held[..., 1]] = np.ascontiguousarray(out[:, : BYTES[one.d]]).view(one.total)
    assert np.allclose(found, product.expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", [n for n, one in INSTRUCTIONS.items() if not one.sparse])
def test_fragments_are_where_amd_says(name):
    """A fragment of one instruction matches the published tables, element for element."""
    one = INSTRUCTIONS[name]

    class Problem:
        m, n, k = one.m, one.n, one.k

    plan = MfmaPlan(Problem, WarpPartition(1, 1, 1, 1), 64, one)
    for role, matrix in enumerate("ABD"):
        table, layout = PUBLISHED[f"{name}.{matrix}"], plan.held(role)
        for lane, columns in enumerate(table):
            for register, (i, j) in enumerate(columns):
                assert layout(int(i), int(j)) == (lane, register)


def test_lanes_that_take_no_part_are_reported():
    case = ("mfma_f32_16x16x16_f16", 0)
    result = run([case], "gfx942", [Product(*case, "gfx942")], threads=32)
    assert {r.kind for r in result.reports} == {"collective"}


@pytest.mark.parametrize("nibble", [0b0000, 0b0001, 0b1010, 0b0111])
def test_indices_that_do_not_increase_are_reported(nibble):
    case = ("smfmac_f32_16x16x32_f16", 0)
    product = Product(*case, "gfx942")
    product.index[17] = (product.index[17] & ~np.uint32(15)) | nibble
    result = run([case], "gfx942", [product])
    assert {r.kind for r in result.reports} == {"metadata"}
    assert "lane 17" in str(result.reports[0])
