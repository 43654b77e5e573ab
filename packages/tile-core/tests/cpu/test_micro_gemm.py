"""The block GEMM of the CPU backend at awkward sizes in poisoned buffers."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx, tvm, tvm_ffi
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm import Tile2D, micro_gemm
from tile_core.numerics import exprs
from tile_core.ops.gemm import accumulator

pytestmark = pytest.mark.sweep(4)

SIZES = (1, 7, 8, 17, 24, 48, 63, 96, 127, 129)
FLIPS = tuple((a, b, c) for a, b, c in itertools.product((False, True), repeat=3))
PAIRS = (
    ("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"), ("float16", "float32", "float32"),
    ("float32", "bfloat16", "float32"), ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "bfloat16"),
    ("float32", "float32", "bfloat16"), ("float64", "float64", "float64"), ("float32", "float16", "float64"),
    ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int8", "uint8", "int32"), ("int16", "int16", "int32"),
    ("int32", "int32", "int32"), ("uint8", "uint8", "uint32"), ("int32", "int16", "int64"), ("int8", "int8", "int64"),
)  # fmt: skip

# A host CPU runs the code that is planned for any of these.
PLANS = {
    "avx512": Isa("avx512", 512, 32, True, True, ""),
    "avx2": Isa("avx2", 256, 16, True, True, ""),
    "sse2": Isa("sse2", 128, 16, False, False, ""),
    "neon": Isa("neon", 128, 32, True, True, ""),
    "scalar": Isa("scalar", 64, 16, False, False, ""),
}


@dataclass(frozen=True)
class Case:
    """One call: sizes, dtypes, which operands are stored transposed, and how C begins."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str] = ("float32", "float32", "float32")
    flips: tuple[bool, bool, bool] = (False, False, False)
    clear: Any = False  # False, True, or "on" / "off": an expression that is true or false when it runs
    plan: str = "avx512"
    full_range: bool = False


@dataclass(frozen=True)
class Built:
    """The function of a case, and the tiles that its statement was made for."""

    case: Case
    function: Any
    tiles: tuple[Tile2D, Tile2D, Tile2D]


LEAD, BORDER = 1, 3  # every tile sits at [1, 3:, 3:] of a buffer of shape [2, rows + 6, cols + 6]


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed with a failure."""
    value = random.SystemRandom().randrange(2**32)
    print(f"seed {value}")
    return value


def run(cases: list[Case], seed: int) -> None:
    rng = np.random.default_rng(seed)
    built = [build(case, f"case{index}") for index, case in enumerate(cases)]
    for one, function in zip(built, compiled(built), strict=True):
        check(one, function, rng)


@pytest.mark.sweep(1)
def test_random_sizes_and_layouts(seed: int) -> None:
    choose = random.Random(seed)
    cases = [
        Case(
            choose.choice(SIZES),
            choose.choice(SIZES),
            choose.choice(SIZES),
            flips=choose.choice(FLIPS),
            clear=choose.choice([False, True, "on", "off"]),
            plan=choose.choice([*PLANS]),
        )
        for _ in range(25)
    ]
    run(cases, seed)


@pytest.mark.parametrize("flips", FLIPS)
def test_every_layout(flips: tuple[bool, bool, bool], seed: int) -> None:
    run([Case(17, 40, 33, flips=flips), Case(6, 64, 4, flips=flips, plan="avx2"), Case(5, 3, 2, flips=flips)], seed)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_few_rows_read_b_as_it_is_stored(rows: int, seed: int) -> None:
    choose = random.Random(seed)
    sizes = [(1, 1), (1, 17), (13, 2), (31, 61), (64, 16), (37, 127)]
    run(
        [
            Case(
                rows, n, k, flips=(choose.random() < 0.5, choose.random() < 0.7, False),
                clear=choose.choice([False, True, "on", "off"]), plan=choose.choice([*PLANS]),
            )
            for n, k in sizes
        ],
        seed,
    )  # fmt: skip


@pytest.mark.parametrize("clear", [False, True, "on", "off"])
def test_a_vector_of_rows_multiplies_b_as_it_is_stored(clear: Any, seed: int) -> None:
    cases = [
        Case(m, n, k, flips=(flip, True, False), clear=clear, plan=plan)
        for (plan, m), (n, k), flip in itertools.product(
            [("avx512", 16), ("avx2", 8)], [(64, 64), (40, 72), (128, 33), (48, 400)], [False, True]
        )
    ]
    built = [build(case, f"case{index}") for index, case in enumerate(cases)]
    assert all("c_panel" in str(one.function) for one in built)
    run(cases, seed)
    assert "c_panel" not in str(build(Case(16, 44, 64, flips=(False, True, False)), "odd").function)


@pytest.mark.parametrize("types", PAIRS, ids="-".join)
def test_few_rows_of_every_dtype(types: tuple[str, str, str], seed: int) -> None:
    choose = random.Random(seed)
    run([Case(choose.randint(1, 4), 19, 37, types, (False, True, False), plan=choose.choice([*PLANS]))], seed)


def test_edge_sizes(seed: int) -> None:
    sizes = (
        (1, 1, 1),
        (1, 129, 7),
        (129, 1, 8),
        (1, 1, 127),
        (2, 15, 1),
        (3, 2, 3),
        (6, 65, 5),
        (7, 80, 2),
        (12, 31, 1),
    )
    run([Case(m, n, k, plan=plan) for m, n, k in sizes for plan in ("avx512", "sse2")], seed)


@pytest.mark.sweep(1)
def test_every_width_up_to_three_strips(seed: int) -> None:
    run([Case(3, n, 2, plan="sse2") for n in range(1, 52)], seed)


def test_deep_products_are_split(seed: int) -> None:
    begins = [Case(5, 20, 800, clear=clear) for clear in (False, True, "on", "off")]
    once = [Case(4, 16, 389, clear=clear) for clear in (False, True, "on", "off")]
    run([*begins, *once, Case(2, 3, 391), Case(3, 17, 769, flips=(True, True, True))], seed)


@pytest.mark.parametrize("types", PAIRS, ids="-".join)
def test_dtype_pairs(types: tuple[str, str, str], seed: int) -> None:
    choose = random.Random(seed)
    first = Case(7, 24, 17, types, clear=True)
    run([first, Case(9, 33, 20, types, flips=choose.choice(FLIPS)), Case(1, 5, 3, types, (False, True, False))], seed)


@pytest.mark.parametrize("c", ["int32", "uint32"])
def test_integers_wrap_around(c: str, seed: int) -> None:
    run([Case(5, 19, 40, (c, c, c), full_range=True), Case(5, 1, 40, (c, c, c), full_range=True)], seed)
    run([Case(3, 19, 41, (c, c, c), (False, True, False), full_range=True)], seed)


def test_no_integer_product_is_declared_free_of_overflow() -> None:
    # Hardware wraps either way; the mark would allow LLVM to assume that nothing ever does.
    text = library_of([build(Case(6, 64, 8, ("int32", "int32", "int32")), "wrapping")]).inspect_source("ll")
    assert re.search(r"mul <\d+ x i32>", text)
    assert not re.search(r"(mul|add) (nsw|nuw).* <\d+ x i32>", text)


def test_half_precision_accumulators_are_rounded_once(seed: int) -> None:
    # 2048 ones and a half: adding in float16 would lose every half, adding in float32 keeps the exact sum.
    case = Case(1, 16, 600, ("float16", "float16", "float16"))
    one = build(case, "half")
    arrays = [np.full([int(x) for x in tile.buffer.shape], value, "float16")
              for tile, value in zip(one.tiles, (0.5, 0.5, 2048), strict=True)]  # fmt: skip
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    compiled([one])[0](*tensors, 0)
    assert (tensors[2].numpy()[LEAD, BORDER, BORDER:-BORDER] == np.float16(2048 + 150)).all()


def test_special_values_follow_ieee(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = Case(5, 20, 3, clear=True)
    one = build(case, "special")
    arrays = [np.zeros([int(x) for x in tile.buffer.shape], "float32") for tile in one.tiles]
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 1.0, 0.0], "float32")
    for array in arrays[:2]:
        array[...] = rng.choice(special, array.shape)
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    compiled([one])[0](*tensors, 0)
    a, b, found = (t.numpy()[LEAD, BORDER:-BORDER, BORDER:-BORDER] for t in tensors)
    with np.errstate(all="ignore"):
        expected = sum((a[:, i : i + 1] * b[i : i + 1] for i in range(3)), np.zeros_like(found))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("flips", FLIPS[::2])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_are_read_by_the_hook(name: str, flips: tuple[bool, bool, bool], seed: int) -> None:
    case = Case(7, 33, 18, (name, name, "float32"), flips)

    def hook(tile: Tile2D) -> Tile2D:
        return replace(tile, load=lambda i, j: exprs.decode_expr(tirx.BufferLoad(tile.buffer, tile.at(i, j)), name))

    one = build(case, "narrow", hook)
    check_codes(one, seed)


def test_a_load_replaces_reading(seed: int) -> None:
    # The tile holds halves with an offset: value = code / 2 - 1.
    def hook(tile: Tile2D) -> Tile2D:
        plain = replace(tile, load=None)
        half, one = tirx.FloatImm("float32", 0.5), tirx.FloatImm("float32", 1)
        return replace(tile, load=lambda i, j: tirx.Cast("float32", plain.read(i, j)) * half - one)

    rng = np.random.default_rng(seed)
    cases = [Case(5, 19, 400, ("uint8", "uint8", "float32"), flips) for flips in FLIPS]
    built = [build(case, f"load{index}", hook) for index, case in enumerate(cases)]
    for one, function in zip(built, compiled(built), strict=True):
        shapes = [[int(x) for x in tile.buffer.shape] for tile in one.tiles]
        codes = [rng.integers(0, 8, shape).astype("uint8") for shape in shapes[:2]]
        tensors = [tvm.runtime.tensor(array) for array in (*codes, np.zeros(shapes[2], "float32"))]
        function(*tensors, 0)
        a, b, c = (tile_of(t.numpy(), flip) for t, flip in zip(tensors, one.case.flips, strict=True))
        np.testing.assert_array_equal(c, (a / 2 - 1) @ (b / 2 - 1))


@pytest.mark.parametrize("plan", [*PLANS])
def test_no_index_leaves_the_tiles(plan: str, seed: int) -> None:
    choose = random.Random(seed)
    for index in range(12):
        types = choose.choice([("float32", "float32", "float32"), ("float16", "float16", "float32")])
        m, n, k = (choose.choice(SIZES) for _ in range(3))
        case = Case(m, n, k, types, choose.choice(FLIPS), plan=plan)
        one = build(case, f"bounds{index}")
        shapes = dict(zip((tile.buffer for tile in one.tiles), stored(case), strict=True))
        seen = accesses(one.function.body)
        assert {buffer for buffer, _ in seen} >= set(shapes), case
        for buffer, indices in seen:
            origin = BORDER if buffer in shapes else 0
            extents = shapes.get(buffer) or tuple(int(x) for x in buffer.shape)
            for (low, high), extent in zip(indices[-2:], extents[-2:], strict=True):
                assert low >= origin, case
                assert high < origin + extent, case


def test_code_size_is_bounded() -> None:
    halves = ("float16", "float16", "float16")
    for case in (Case(129, 127, 63), Case(127, 1023, 511, halves, (True, True, True)), Case(250, 9, 3)):
        assert len(accesses(build(case, "size").function.body)) < 1200


def tile_of(array: Any, flip: bool) -> Any:
    inside = array[LEAD, BORDER:-BORDER, BORDER:-BORDER].astype("float32")
    return inside.T if flip else inside


def check_codes(one: Any, seed: int) -> None:
    """Run a case on all finite codes of an 8-bit float, compared in float64."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(getattr(ml_dtypes, one.case.types[0]))
    codes = np.arange(256, dtype=np.uint8)
    finite = codes[np.isfinite(codes.view(kind).astype("float32"))]
    shapes = [[int(x) for x in tile.buffer.shape] for tile in one.tiles]
    arrays = [rng.choice(finite, shapes[0]), rng.choice(finite, shapes[1]), np.zeros(shapes[2], "float32")]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    compiled([one])[0](*tensors, 0)
    a, b = (tile_of(x.view(kind), flip).astype("float64") for x, flip in zip(arrays[:2], one.case.flips, strict=False))
    found = tile_of(tensors[2].numpy(), one.case.flips[2])
    assert (np.abs(found - a @ b) <= 1e-5 * (np.abs(a) @ np.abs(b))).all()


def accesses(body: Any) -> list[tuple[Any, list[tuple[int, int]]]]:
    """Return a statement's accesses of a buffer with the range of each index."""
    analyzer = tvm.sym.Analyzer()
    found: list[tuple[Any, list[tuple[int, int]]]] = []

    def bound(index: Any) -> tuple[int, int]:
        base, span = (index.base, int(index.lanes) - 1) if isinstance(index, tirx.Ramp) else (index, 0)
        limits = analyzer.const_int_bound(base)
        return int(limits.min_value), int(limits.max_value) + span

    loops: list[Any] = []
    tvm_ffi.structural_walk(body, (tirx.For, loops.append))
    for loop in loops:
        analyzer.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))

    def load(access: Any) -> None:
        found.append((access.source, [bound(index) for index in access.indices]))

    def store(access: Any) -> None:
        found.append((access.buffer, [bound(index) for index in access.indices]))

    tvm_ffi.structural_walk(body, (ir.TensorLoad, load))
    tvm_ffi.structural_walk(body, (tirx.BufferStore, store))
    return found


def stored(case: Case) -> list[tuple[int, int]]:
    """Shapes of A, B and C as they lie in memory."""
    shapes = [(case.m, case.k), (case.k, case.n), (case.m, case.n)]
    return [shape[::-1] if flip else shape for shape, flip in zip(shapes, case.flips, strict=True)]


def build(case: Case, name: str, hook: Callable[[Tile2D], Tile2D] = lambda tile: tile, **options: Any) -> Built:
    """Make the function of a case.

    ``hook`` may change the tiles of A and B, ``options`` go to ``micro_gemm``.
    """
    tiles = []
    for letter, dtype, flip, (rows, cols) in zip("ABC", case.types, case.flips, stored(case), strict=True):
        shape = (LEAD + 1, rows + 2 * BORDER, cols + 2 * BORDER)
        storage = "uint8" if dtype.startswith("float8") else dtype
        buffer = tirx.decl_buffer(shape, storage, letter, layout=None, data_alignment=np.dtype(storage).itemsize)
        tiles.append(Tile2D(buffer, (LEAD,), BORDER, BORDER, flip, dtype))
    a, b, c = tiles
    clear = case.clear
    flag = tirx.Var("flag", "int32")
    if isinstance(clear, str):
        clear = flag == (1 if clear == "on" else 2)
    plan = PLANS[case.plan]
    body = micro_gemm(hook(a), hook(b), c, case.m, case.n, case.k, isa=plan, clear=clear, **options)
    function = tirx.PrimFunc([a.buffer, b.buffer, c.buffer, flag], body)
    return Built(case, function.with_attr("global_symbol", name).with_attr("tirx.noalias", True), (a, b, c))


def compiled(built: list[Built]) -> list[Callable[..., None]]:
    """Compile all functions in one module for the CPU of this machine."""
    library = library_of(built)
    return [library[str(one.function.attrs["global_symbol"])] for one in built]


def library_of(built: list[Built]) -> Any:
    """The compiled module of all functions."""
    host = tvm.target.Target(Isa.for_cpu(tvm.target.codegen.llvm_get_system_cpu()).target())
    host = host.with_host(host)
    p = tirx.transform
    passes = [
        p.BindTarget(host), p.StmtSimplify(), p.FlattenBuffer(), p.BF16ComputeLegalize(), p.NarrowDataType(32),
        p.VectorizeLoop(True), p.UnrollLoop(), p.StmtSimplify(), p.AnnotateEntryFunc(), p.SplitHostDevice(),
        p.MakePackedAPI(), p.BF16StorageLegalize(), p.LowerTVMBuiltin(), p.LowerIntrin(),
    ]  # fmt: skip
    names = [str(one.function.attrs["global_symbol"]) for one in built]
    module = tvm.IRModule(dict(zip(names, (one.function for one in built), strict=True)))
    return tvm.get_global_func("target.build.llvm")(tvm.ir.transform.Sequential(passes)(module), host)


def check(built: Built, function: Callable[..., None], rng: np.random.Generator) -> None:
    """Run a case on fresh data: exact result, borders untouched and unused."""
    case = built.case
    arrays = [_poisoned(shape, name, case, rng) for shape, name in zip(stored(case), case.types, strict=True)]
    if case.clear in (True, "on"):
        arrays[2] = np.full_like(arrays[2], _poison(case.types[2]))
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    function(*tensors, 1)
    expected = arrays[2].copy()
    inside = (LEAD, slice(BORDER, -BORDER), slice(BORDER, -BORDER))
    a, b, c = (array[inside].T if flip else array[inside] for array, flip in zip(arrays, case.flips, strict=True))
    result = reference(case, a, b, c)
    expected[inside] = result.T if case.flips[2] else result
    found = tensors[2].numpy()
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8), err_msg=str(case))
    for array, tensor in zip(arrays[:2], tensors[:2], strict=True):
        np.testing.assert_array_equal(tensor.numpy().view(np.uint8), array.view(np.uint8), err_msg=str(case))


def reference(case: Case, a: Any, b: Any, c: Any) -> Any:
    """The exact result, from NumPy."""
    wide = np.dtype(accumulator(case.types[2]))
    start = np.zeros(c.shape, wide) if case.clear in (True, "on") else c.astype(wide)
    with np.errstate(over="ignore", invalid="ignore"):
        return (start + a.astype(wide) @ b.astype(wide)).astype(c.dtype)


def _poisoned(shape: tuple[int, int], name: str, case: Case, rng: np.random.Generator) -> Any:
    """Return an array with small integers in the tile, for exact totals, and poison around."""
    dtype = _numpy(name)
    array = np.full((LEAD + 1, shape[0] + 2 * BORDER, shape[1] + 2 * BORDER), _poison(name), dtype)
    if case.full_range:
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    else:
        values = rng.integers(0 if name.startswith("uint") else -3, 4, shape).astype(dtype)
    array[LEAD, BORDER:-BORDER, BORDER:-BORDER] = values
    return array


def _poison(name: str) -> Any:
    return 101 if name.startswith(("int", "uint")) else _numpy(name).type(float("nan"))


def _numpy(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
