"""Products by dot-product and tile instructions: awkward sizes, tiny numbers, in place and on other processors."""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tvm
from tile_core.cpu import target as cpu_target
from tile_core.cpu.build import build
from tile_core.cpu.dots import DOTS, TILES, dot_of, tiles_of
from tile_core.cpu.isa import MATRICES, Isa, detect, features_of, without
from tile_core.cpu.micro_dots import micro_dots
from tile_core.cpu.micro_tiles import micro_tiles
from tile_core.cpu.runtime.host import HostAdapter
from tile_core.plugins.manager import installed_again
from tile_core.testing.fuzz import fuzz
from tile_core.testing.run import Session
from tile_core.testing.tables import cases
from tile_runtime.abi.adapter import Built
from tile_runtime.cpu import processor
from tile_runtime.cpu.loader import KIND, NEEDS, make

pytestmark = pytest.mark.sweep(0.25)

_spec = importlib.util.spec_from_file_location("dot_texts", Path(__file__).with_name("dot_texts.py"))
assert _spec is not None
assert _spec.loader is not None
dot_texts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(dot_texts)

NAMES = {"dots": "cpu.gemm.dot", "tiles": "cpu.gemm.tiles"}
HAS_TILES = MATRICES.issubset(detect().features)
WITHOUT_TILES = replace(detect(), features=tuple(sorted({*detect().features} - MATRICES)))
TYPES = (
    ("bfloat16", "bfloat16", "float32"), ("bfloat16", "bfloat16", "bfloat16"), ("bfloat16", "bfloat16", "float16"),
    ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int8", "uint8", "int32"), ("uint8", "uint8", "int32"),
    ("uint8", "uint8", "uint32"), ("int8", "int8", "uint32"),
)  # fmt: skip
FLIPS = [*itertools.product((False, True), repeat=2)]


@pytest.fixture(autouse=True, params=["dots", "tiles"] if HAS_TILES else ["dots"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of instructions: a processor with tiles also runs as one without."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "dots":
            patch.setattr(cpu_target, "_isa", lambda arch: WITHOUT_TILES)
        installed_again()  # whose variants are those of a processor
        yield str(request.param)
    installed_again()


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed with a failure."""
    value = random.SystemRandom().randrange(2**32)
    print(f"seed {value}")
    return value


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The lowered functions of kernels, which are not built."""
    found: list[Any] = []

    def load(self: HostAdapter, artefact: Any) -> Any:
        found.append(artefact)
        return lambda *args: None

    monkeypatch.setattr(HostAdapter, "load", load)
    return found


def numpy_of(dtype: str) -> Any:
    return np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)


def values(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """All integers of a type; small ones as floats, whose totals are exact."""
    if "float" in dtype:
        return rng.integers(-3, 4, shape).astype(numpy_of(dtype))
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def whole(m: int, n: int, k: int, types: tuple[str, str, str], flips: tuple[bool, bool], clear: Any = False) -> Any:
    """One product of tiles, added to C as it is; ``clear`` may be ``"runtime"``."""
    a_type, b_type, c_type = types
    a_shape, b_shape = (k, m) if flips[0] else (m, k), (n, k) if flips[1] else (k, n)

    @T.prim_func
    def main(A: T.Tensor(a_shape, a_type), B: T.Tensor(b_shape, b_type), C: T.Tensor((m, n), c_type), flag: T.int32):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(a_shape, a_type)
            b = T.alloc_shared(b_shape, b_type)
            c = T.alloc_fragment((m, n), c_type)
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            if clear == "runtime":
                T.gemm(a, b, c, *flips, clear_accum=flag > 0)
            else:
                T.gemm(a, b, c, *flips, clear_accum=clear)
            T.copy(c, C)

    return main


def tiled(m: int, n: int, k: int, dtype: str, flips: tuple[bool, bool], block: tuple[int, int, int]) -> Any:
    """An ordinary product of tensors."""
    block_m, block_n, block_k = block
    acc = "int32" if "int" in dtype else "float32"
    a_shape, b_shape = (k, m) if flips[0] else (m, k), (n, k) if flips[1] else (k, n)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), acc)):
        with T.Kernel(T.ceildiv(n, block_n), T.ceildiv(m, block_m), threads=128) as (bx, by):
            a = T.alloc_shared((block_k, block_m) if flips[0] else (block_m, block_k), dtype)
            b = T.alloc_shared((block_n, block_k) if flips[1] else (block_k, block_n), dtype)
            c = T.alloc_fragment((block_m, block_n), acc)
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, block_k), num_stages=2):
                if flips[0]:
                    T.copy(A[i * block_k, by * block_m], a)
                else:
                    T.copy(A[by * block_m, i * block_k], a)
                if flips[1]:
                    T.copy(B[bx * block_n, i * block_k], b)
                else:
                    T.copy(B[i * block_k, bx * block_n], b)
                T.gemm(a, b, c, *flips)
            T.copy(c, C[by * block_m, bx * block_n])

    return main


def test_narrow_results_are_rounded_after_each_step() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 256), "bfloat16"), B: T.Tensor((256, 16), "bfloat16"), C: T.Tensor((8, 16), "bfloat16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((8, 32), "bfloat16")
            b = T.alloc_shared((32, 16), "bfloat16")
            c = T.alloc_fragment((8, 16), "bfloat16")
            T.fill(c, 8192)
            for i in T.Pipelined(8, num_stages=2):
                T.copy(A[0, i * 32], a)
                T.copy(B[i * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    a, b = np.full((8, 256), 0.5, ml_dtypes.bfloat16), np.ones((256, 16), ml_dtypes.bfloat16)
    c = np.zeros((8, 16), ml_dtypes.bfloat16)
    tile.compile(main, target="cpu")(a, b, c)
    # Steps of 16 vanish beside 8192, whose neighbour is 8256; their total of 128 would not.
    assert (c.astype("float32") == 8192).all()


def isa() -> Isa:
    """Return the processor that kernels are compiled for."""
    return cpu_target._isa(detect().mcpu)


def chosen(types: tuple[str, str, str]) -> str:
    """Return the kind of the best instruction that this processor has; empty without one."""
    if tiles_of(isa(), *types) is not None:
        return "tiles"
    return "dots" if dot_of(isa(), *types) is not None else ""


def run(program: Any, types: tuple[str, str, str], *arrays: Any, **options: Any) -> str:
    """Run a program, and return its report: with the variant if this processor has the instruction."""
    kernel = tile.compile(program, target="cpu", options=options)
    kernel(*arrays)
    report = str(kernel.explain())
    # Where there are several, the first ones were rejected.
    found = [name for name in ("cpu.gemm.packed", "cpu.gemm.dot", "cpu.gemm.tiles") if f"{name} " in report]
    assert found[0] == NAMES.get(chosen(types), "cpu.gemm.packed"), report
    return report


def product(a: Any, b: Any, flips: tuple[bool, bool], start: Any = 0) -> Any:
    wide = "float64" if a.dtype.kind not in "iu" else "int64"
    left, right = (x.astype(wide).T if flip else x.astype(wide) for x, flip in zip((a, b), flips, strict=True))
    return start + left @ right


@pytest.mark.sweep(6)
@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("flips", FLIPS)
def test_products_of_tiles(types: tuple[str, str, str], flips: tuple[bool, bool], seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    m, n = choose.choice([5, 7, 13, 16, 33, 61, 65, 97]), choose.choice([16, 17, 31, 48, 65, 127])
    k = choose.choice([1, 2, 3, 5, 31, 64, 72, 127, 140, 259, 601, 2104])
    a, b = (
        values((r, s)[:: -1 if f else 1], t, rng) for (r, s), t, f in zip(((m, k), (k, n)), types, flips, strict=False)
    )
    clear = choose.choice([False, True, "runtime"])
    c = values((m, n), types[2], rng)
    flag = choose.choice([0, 1])
    cleared = clear is True or (clear == "runtime" and flag == 1)
    expected = product(a, b, flips, 0 if cleared else c.astype("int64" if "int" in types[2] else "float64"))
    if cleared and "float" in types[2]:
        c[...] = np.nan
    run(whole(m, n, k, types, flips, clear), types, a, b, c, flag, poison=True)
    np.testing.assert_array_equal(c, expected.astype(c.dtype), err_msg=str((m, n, k, clear)))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "uint8"])
@pytest.mark.parametrize("flips", FLIPS)
def test_operands_read_in_place(dtype: str, flips: tuple[bool, bool], seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    m, n, k = (choose.choice(sizes) for sizes in ((32, 61, 97), (32, 67, 128), (64, 96, 127, 300, 520)))
    block = choose.choice([(16, 32, 32), (32, 64, 16), (8, 16, 64)])
    a, b = (values((r, s)[:: -1 if f else 1], dtype, rng) for (r, s), f in zip(((m, k), (k, n)), flips, strict=True))
    acc = "int32" if "int" in dtype else "float32"
    c = np.full((m, n), 77, acc)
    types = (dtype, dtype, acc)
    report = run(tiled(m, n, k, dtype, flips, block), types, a, b, c)
    assert ("in place" in report) == (chosen(types) != "")
    np.testing.assert_array_equal(c, product(a, b, flips).astype(acc), err_msg=str((m, n, k, block)))


@pytest.mark.parametrize(("m", "k"), [(9, 37), (9, 264), (48, 256), (80, 40)])
@pytest.mark.parametrize("flips", FLIPS)
def test_tiny_numbers_count(flips: tuple[bool, bool], m: int, k: int, seed: int) -> None:
    """Subnormal elements, products and totals are exact, which the instruction alone would flush."""
    rng = np.random.default_rng(seed)
    n = 33
    types = ("bfloat16", "bfloat16", "float32")
    program = tile.compile(whole(m, n, k, types, flips), target="cpu")
    for left, right in ((-133, 100), (-70, -70), (-57, -57), (-55, -56), (-20, -110), (-130, 0)):
        a = (values((m, k), "bfloat16", rng).astype("float64") * 2.0**left).astype(ml_dtypes.bfloat16)
        b = (values((k, n), "bfloat16", rng).astype("float64") * 2.0**right).astype(ml_dtypes.bfloat16)
        stored = [np.ascontiguousarray(x.T if flip else x) for x, flip in zip((a, b), flips, strict=True)]
        c = (rng.integers(-3, 4, (m, n)) * 2.0 ** max(left + right, -149)).astype("float32")
        expected = product(*stored, flips, c.astype("float64")).astype("float32")
        program(*stored, c, 0)
        np.testing.assert_array_equal(c, expected, err_msg=str((left, right)))


def test_tiny_numbers_do_not_change_other_strips(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = 6, 144, 20
    types = ("bfloat16", "bfloat16", "float32")
    a, b = values((m, k), "bfloat16", rng), values((k, n), "bfloat16", rng)
    b[3, 130] = ml_dtypes.bfloat16(2.0**-133)
    c = np.zeros((m, n), "float32")
    run(whole(m, n, k, types, (False, False)), types, a, b, c, 0)
    a[a == 0], b[b == 0] = 0, 0
    np.testing.assert_array_equal(c, product(a, b, (False, False)).astype("float32"))


def test_special_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = 8, 32, 3
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 2.0**-60, 2.0**-130], "float32")
    a, b = (rng.choice(special, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), -0.0, "float32")
    with np.errstate(all="ignore"):
        expected = c + sum((a[:, i : i + 1].astype("float32") * b[i : i + 1].astype("float32") for i in range(k)), c)
    types = ("bfloat16", "bfloat16", "float32")
    run(whole(m, n, k, types, (False, False)), types, a, b, c, 0)
    np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(c[real], expected[real])


@pytest.mark.parametrize(("k", "flips"), [(2, FLIPS[0]), (3, FLIPS[0]), (264, FLIPS[1])])
def test_negative_zero_totals(k: int, flips: tuple[bool, bool]) -> None:
    a, b = np.full((5, k), -1.0, ml_dtypes.bfloat16), np.zeros((16, k) if flips[1] else (k, 16), ml_dtypes.bfloat16)
    c = np.full((5, 16), -0.0, "float32")
    types = ("bfloat16", "bfloat16", "float32")
    run(whole(5, 16, k, types, flips), types, a, b, c, 0)
    # Totals of tiles begin at +0.
    assert np.signbit(c).all() == (chosen(types) != "tiles")
    run(whole(5, 16, k, types, flips, True), types, a, b, c, 0)
    assert not np.signbit(c).any()


def test_strict_products_add_in_order() -> None:
    program = whole(8, 16, 4, ("bfloat16", "bfloat16", "float32"), (False, False))
    kernel = tile.compile(program, target="cpu", options={"numerics": "strict"})
    assert "cpu.gemm.loops " in str(kernel.explain())


def test_level_fast_needs_no_check() -> None:
    for choose in (dot_of, tiles_of):
        found = choose(isa(), "bfloat16", "bfloat16", "float32", flush=True)
        assert found is None or not found.checked


def test_a_module_without_the_instruction_computes_the_same(kept: list[Any], seed: int) -> None:
    """``build`` disables features for some forms; a dot product that needs one becomes float32."""
    types = ("bfloat16", "bfloat16", "float32")
    if chosen(types) != "dots":
        pytest.skip("no such instruction here")
    rng = np.random.default_rng(seed)
    a, b = values((8, 37), "bfloat16", rng), values((37, 48), "bfloat16", rng)
    tile.compile(whole(8, 48, 37, types, (False, False), True), target="cpu")
    for one, count in ((detect(), True), (without(detect(), ["-avx512bw"]), False)):
        module = build(kept[0], one)
        assert ("vdpbf16ps" in module.inspect_source("asm")) == count
        c = np.full((8, 48), 5, "float32")
        module["main"](*(tvm.runtime.tensor(x.view("uint16")) for x in (a, b)), found := tvm.runtime.tensor(c), 0)
        np.testing.assert_array_equal(found.numpy(), product(a, b, (False, False)).astype("float32"))


@pytest.mark.skipif(not HAS_TILES, reason="no tile instructions here")
def test_tile_registers_are_released() -> None:
    module = build(dot_texts.product(TYPES[3], detect(), 33, 65, 70), detect())
    text = module.inspect_source("asm")
    assert text.count("\tldtilecfg\t") == text.count("\ttilerelease") == 1


@pytest.mark.parametrize("refused", ["system", "flags"])
def test_a_process_without_permission_uses_no_tiles(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = processor._features()
    if refused == "flags":
        off = {name for name in shown if name.startswith("amx")}
        monkeypatch.setattr(processor, "_features", lambda: shown - off)
    else:
        monkeypatch.setattr(processor, "_permitted", lambda: False)
    found = detect.__wrapped__()
    assert not MATRICES & {*found.features}
    assert tiles_of(found, *TYPES[3]) is None
    assert "amx" not in " ".join(found.mattr)
    needs = {NEEDS: "amx-tile amx-int8"}
    refusal = make("cpu").refuses(Built("library", KIND, b"", make("cpu").platform, needs))
    assert refusal == "its processor may lack amx-int8, amx-tile"


@pytest.mark.skipif(not HAS_TILES, reason="no tile instructions here")
def test_kernels_with_tiles_are_refused_without_them(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = whole(8, 16, 32, TYPES[3], (False, False))
    c = np.zeros((8, 16), "int32")
    arrays = values((8, 32), "int8", np.random.default_rng(0)), values((32, 16), "int8", np.random.default_rng(1)), c, 0
    monkeypatch.setattr(processor, "_permitted", lambda: False)
    kernel = tile.compile(program, target="cpu")
    if kind == "dots":
        kernel(*arrays)
    else:
        with pytest.raises(tile.TileError, match="amx-int8, amx-tile"):
            kernel(*arrays)


@pytest.mark.skipif(not HAS_TILES, reason="no tile instructions here")
def test_exports_state_the_tile_instructions(kind: str, kept: list[Any]) -> None:
    tile.compile(whole(8, 16, 32, TYPES[3], (False, False)), target="cpu")
    text = HostAdapter(cpu_target.make_target("")).exported(kept[0], {})
    assert text is not None
    assert text.built is not None
    needs = str(text.built.facts[NEEDS]).split()
    assert {"amx-int8", "amx-tile"}.issubset(needs) == (kind == "tiles")


def test_machine_code_of_each_instruction() -> None:
    script = Path(__file__).with_name("dot_texts.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert [name for _, name, *_ in found] == [dot.name for dot in (*DOTS, *TILES) for _ in range(2)]
    assert all(count >= 3 for *_, count in found), found


@pytest.mark.sweep(2)
@pytest.mark.skipif(not {"avx512vnni", "avx512vl"} <= features_of(detect().mcpu), reason="no such instruction here")
@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("types", TYPES[3:], ids="-".join)
def test_vectors_of_other_processors(
    bits: int, types: tuple[str, str, str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products along the rows of B have more accumulators than a short vector has lanes."""
    whole = next(dot for dot in DOTS if "avx512vnni" in dot.features)
    short = replace(whole, vector_bits=bits, intrinsic=whole.intrinsic.replace(".512", f".{bits}"))
    monkeypatch.setattr("tile_core.cpu.dots.DOTS", (short,))
    processor = replace(detect(), vector_bits=bits, registers=4096 // bits, features=("avx512vnni",))
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    m, n, k = choose.choice([5, 12, 15]), choose.choice([16, 21]), choose.choice([32, 68, 2052])
    a, b = values((m, k), types[0], rng), values((n, k), types[1], rng)
    c = np.full((m, n), 77, types[2])
    module = build(dot_texts.product(types, processor, m, n, k, flipped=True), processor)
    module["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), found := tvm.runtime.tensor(c))
    np.testing.assert_array_equal(found.numpy(), product(a, b, (False, True)).astype(types[2]), err_msg=str((m, n, k)))


@pytest.fixture
def multiplied(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return the types of the products by such instructions from here on."""
    found: set[tuple[str, str]] = set()

    def recording(product: Any) -> Any:
        def recorded(a: Any, b: Any, *rest: Any, **options: Any) -> Any:
            found.add((a.dtype, b.dtype))
            return product(a, b, *rest, **options)

        return recorded

    for product in (micro_dots, micro_tiles):
        monkeypatch.setattr(f"tile_core.cpu.ops.gemm.{product.__name__}", recording(product))
    return found


@pytest.mark.sweep(1)
@pytest.mark.skipif(not chosen(TYPES[3]), reason="no such instructions here")
def test_the_conformance_suite_reaches_dot_products(multiplied: set[tuple[str, str]]) -> None:
    session = Session(options={"numerics": "standard"})
    types = [t for t in (TYPES[0], TYPES[3], TYPES[4]) if chosen(t)]
    for row in types:
        case = next(c for c in cases() if c.unit.name.startswith(f"tall-{'-'.join(row)}"))
        assert session.run(case).kind == "right"
    assert multiplied == {row[:2] for row in types}


@pytest.mark.sweep(0.5)
@pytest.mark.skipif(not chosen(TYPES[3]), reason="no such instruction here")
def test_the_fuzzer_reaches_dot_products(multiplied: set[tuple[str, str]]) -> None:
    for start in range(20):
        if not multiplied:
            fuzz(2, seed=start, only="tall-products", mutated=0)
    assert multiplied
