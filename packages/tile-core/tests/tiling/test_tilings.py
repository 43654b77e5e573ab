"""``tile.tilings``: parameters of any factory are recognized by tracing; a model only proposes and estimates."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.language import BadArgument, BadReturn
from tile_core.errors.launch import BadSetting, NoProducts, NoTileParameters, NoWorkingConfig, UnboundParameter
from tile_core.lowering.tilings import TileShape, TilingEstimate, Workload
from tile_core.lowering.variant import Reject
from tile_core.plugins.manager import Plugins
from tile_core.tiling.api import Tiling

SIZES = {"M": 256, "N": 192, "K": 128}


class Model:
    """Larger tiles are faster, and more stages; 48 rows are illegal."""

    def __init__(self) -> None:
        self.fixed: Mapping[str, int] = {}
        self.seen: list[Workload] = []

    def shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Any) -> Sequence[TileShape]:
        self.fixed = fixed
        return [
            TileShape(m, n, k, threads, stages, splits)
            for m in (32, 48, 64) for n in (32, 64) for k in (16, 32) for threads in (64, 128) for stages in (2, 3)
            for splits in (1, 2)
        ]  # fmt: skip

    def estimate(self, workload: Workload, ctx: Any) -> TilingEstimate | Reject:
        self.seen.append(workload)
        p = workload.first
        if p.m == 48:
            return Reject("48 rows")
        return TilingEstimate(1e6 / (p.m * p.n * p.k + p.stages + workload.threads), "limited by a model")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    made = Model()
    monkeypatch.setattr(Plugins, "tilings", lambda self, target: made)
    return made


def product(
    M: Any, N: int, K: int, bm: int, bn: int, bk: int, threads: int = 128, stages: int = 2, splits: int = 1
) -> Any:
    steps = -(-K // (bk * splits))

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float32"), B: T.Tensor((N, K), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), splits, threads=threads) as (bx, by, bz):
            A_s, B_s = T.alloc_shared((bm, bk), "float32"), T.alloc_shared((bn, bk), "float32")
            C_f = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_f)
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, (bz * steps + k) * bk], A_s)
                T.copy(B[bx * bn, (bz * steps + k) * bk], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            if splits == 1:
                T.copy(C_f, C[by * bm, bx * bn])
            else:
                T.atomic_add(C[by * bm, bx * bn], C_f)

    return gemm


def usual(M: int, N: int, K: int, block_M: int = 16, block_N: int = 16, block_K: int = 16, threads: int = 64,
          num_stages: int = 1) -> Any:  # fmt: skip
    return product(M, N, K, block_M, block_N, block_K, threads, num_stages)


def without_defaults(M: int, N: int, K: int, BM: int, BN: int, BK: int, num_threads: int, stages: int) -> Any:
    return product(M, N, K, BM, BN, BK, num_threads, stages)


def odd_names(M: int, N: int, K: int, *, rows: int = 16, columns: int = 16, depth: int = 16, lanes: int = 64) -> Any:
    return product(M, N, K, rows, columns, depth, lanes)


def tuple_of(M: int, N: int, K: int, tile: tuple[int, int, int] = (16, 16, 16), warps: int = 2) -> Any:
    return product(M, N, K, *tile, threads=32 * warps)


def list_and_dict(M: int, N: int, K: int, tile: Any = (16, 16), more: Any = None) -> Any:
    return product(M, N, K, *tile, more["depth"])


class Tile(NamedTuple):
    m: int = 16
    n: int = 16


_TILE = Tile()


@dataclass(frozen=True)
class Config:
    tile: int = 16
    depth: int = 16
    name: str = "small"
    threads: int = 64


def dataclass_of(M: int, N: int, K: int, config: Config = Config()) -> Any:
    return product(M, N, K, config.tile, config.tile, config.depth, config.threads)


def named_tuple(M: int, N: int, K: int, tile: Tile = _TILE) -> Any:
    return product(M, N, K, tile.m, tile.n, 16)


def factored(M: int, N: int, K: int, warps_m: int = 2, warp_rows: int = 8, block_N: int = 16) -> Any:
    return product(M, N, K, warps_m * warp_rows, block_N, 16, 32 * warps_m)


def closure(M: int, N: int, K: int) -> Any:
    def factory(block_M: int = 16, block_N: int = 16) -> Any:
        return product(M, N, K, block_M, block_N, 16)

    return factory


def split(M: int, N: int, K: int, block_M: int = 16, splits: int = 1) -> Any:
    return product(M, N, K, block_M, 16, 16, splits=splits)


@tile.jit(target="cpu")
def jitted(M: int, N: int, K: int, block_M: int = 16, block_N: int = 16) -> Any:
    return product(M, N, K, block_M, block_N, 16)


FORMS = [
    (usual, SIZES, {"block_M": 64, "block_N": 64, "block_K": 32, "threads": 128, "num_stages": 3}),
    (without_defaults, SIZES, {"BM": 64, "BN": 64, "BK": 64, "num_threads": 128, "stages": 2}),  # the starting values
    (odd_names, SIZES, {"rows": 64, "columns": 64, "depth": 32, "lanes": 128}),
    (tuple_of, SIZES, {"tile": (64, 64, 32), "warps": 4}),
    (list_and_dict, SIZES | {"more": {"depth": 16}}, {"tile": (64, 64)}),
    (functools.partial(list_and_dict, tile=[16, 16], more={"depth": 16}), SIZES, {
        "tile": [64, 64], "more": {"depth": 32}}),
    (dataclass_of, SIZES, {"config": Config(64, 32, "small", 128)}),
    (named_tuple, SIZES, {"tile": Tile(64, 64)}),
    (factored, SIZES, {"warps_m": 8, "block_N": 64}),
    (closure(**SIZES), {}, {"block_M": 64, "block_N": 64}),
    (functools.partial(usual, **SIZES, block_K=16), SIZES | {"block_K": 16}, {
        "block_M": 64, "block_N": 64, "threads": 128, "num_stages": 3}),
    (jitted, SIZES, {"block_M": 64, "block_N": 64}),
    (tile.autotune([{"block_M": 16}])(jitted), SIZES, {"block_M": 64, "block_N": 64}),
]  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("factory", "shapes", "expected"), FORMS)
def test_parameters_of_any_form_are_recognized(model, factory, shapes, expected):
    found = tile.tilings(factory, shapes, target="cpu", most=1)
    assert found == [expected]
    (first,) = found
    assert first.microseconds > 0
    assert first.reason == "limited by a model"
    own = factory if callable(factory) and not hasattr(factory, "compile") else factory.function
    own = getattr(own, "function", own)
    program = own(**{**shapes, **first})
    assert program.name == "gemm"


@pytest.mark.sweep(0.25)
def test_the_list_has_each_tile_once_and_is_sorted(model):
    found = tile.tilings(usual, SIZES, target="cpu", most=50)
    assert len({(t["block_M"], t["block_N"], t["threads"]) for t in found}) == len(found) == 9  # 8, and the defaults
    times = [t.microseconds for t in found]
    assert times == sorted(times)
    assert all(t["block_M"] != 48 for t in found)
    assert found[-1] == {"block_M": 16, "block_N": 16, "block_K": 16, "threads": 64, "num_stages": 1}


def test_given_arguments_are_never_changed(model):
    found = tile.tilings(usual, SIZES, block_M=32, threads=128, target="cpu")
    assert all(set(t) == {"block_N", "block_K", "num_stages"} for t in found)
    assert model.fixed == {"m": 32, "threads": 128, "splits": 1}


def test_arguments_of_the_interface_are_no_tile_parameters(model):
    def factory(M: int = 256, N: int = 192, K: int = 128, rows: int = 16, unused: int = 7) -> Any:
        return product(M, N, K, rows, 16, 16)

    assert tile.tilings(factory, target="cpu", most=1) == [{"rows": 64}]


def test_splits_are_recognized(model):
    found = tile.tilings(split, SIZES, target="cpu", most=50)
    assert {t["splits"] for t in found} == {1, 2}
    assert {w.first.trips for w in model.seen if w.first.m == 64} == {8, 4}


def test_facts_come_from_the_program(model):
    @T.macro
    def nothing() -> None:
        pass

    def batched(block_M: int = 16) -> Any:
        M, N, K = 64, 48, 32

        @T.prim_func
        def gemm(
            A: T.Tensor((5, K, M), "float16"), B: T.Tensor((5, N, K), "float16"), C: T.Tensor((5, M, N), "float32")
        ):
            with T.Kernel(T.ceildiv(M, block_M), 5, threads=64) as (bx, b):
                A_s, B_s = T.alloc_shared((16, block_M), "float16"), T.alloc_shared((N, 16), "float16")
                C_f = T.alloc_fragment((block_M, N), "float32")
                T.clear(C_f)
                for k in T.Pipelined(K // 16, num_stages=2):
                    T.copy(A[b, k * 16, bx * block_M], A_s)
                    T.copy(B[b, 0, k * 16], B_s)
                    T.gemm(A_s, B_s, C_f, transpose_A=True, transpose_B=True)
                T.copy(C_f, C[b, bx * block_M, 0])

        return gemm

    tile.tilings(batched, target="cpu")
    found = model.seen[-1]  # the defaults
    assert (found.blocks, found.threads) == (20, 64)
    assert found.tensor_bytes == 5 * (64 * 32 * 2 + 48 * 32 * 2 + 64 * 48 * 4)
    p = found.first
    assert (p.m, p.n, p.k, p.trips, p.stages) == (16, 48, 16, 2, 2)
    assert (p.types, p.transposed, p.pitches) == (("float16", "float16", "float32"), (True, True), (128, 64))


def test_dynamic_sizes_take_typical_values(model):
    def factory(N: int, K: int, block_M: int = 16) -> Any:
        return product(T.dynamic("m"), N, K, block_M, 16, 16)

    tile.tilings(factory, {"N": 32, "K": 32}, sizes={"m": 160}, target="cpu", most=1)
    assert {w.blocks * w.first.m for w in model.seen if w.first.m < 48} == {320}
    model.seen.clear()
    tile.tilings(usual, {"M": T.dynamic("m"), "N": 16, "K": 32}, target="cpu", most=1)
    assert max(w.blocks for w in model.seen) == 4096 // 16


def test_configurations_that_a_target_refuses_are_dropped(model, monkeypatch):
    import tile_core.compiler as compiler

    lower = compiler.lower

    def refusing(program, ctx, plugins, dump=None):
        if "(64, 64)" in str(program.func.script()):
            raise NoProducts(function="too large")
        return lower(program, ctx, plugins, dump)

    monkeypatch.setattr(compiler, "lower", refusing)
    first = tile.tilings(usual, SIZES, target="cpu", most=1)[0]
    assert (first["block_M"], first["block_N"]) == (32, 64)

    def never(program, ctx, plugins, dump=None):
        raise NoProducts(function="too large")

    monkeypatch.setattr(compiler, "lower", never)
    with pytest.raises(
        NoWorkingConfig, match=r"K433.*configurations of usual works:\n  block_M=64.*\[K446\] too large"
    ):
        tile.tilings(usual, SIZES, target="cpu")


def test_a_target_without_a_model_returns_the_defaults():
    (found,) = tile.tilings(usual, SIZES, target="cpu")
    assert found == {"block_M": 16, "block_N": 16, "block_K": 16, "threads": 64, "num_stages": 1}
    assert found.microseconds is None
    assert found.reason == "the factory's defaults: backend 'cpu' has no estimate of tile shapes"


def test_defaults_that_do_not_fit_become_smaller():
    def large(M: int, N: int, K: int, depth: int = 64) -> Any:
        return usual(M, N, K, block_M=128, block_N=128, block_K=depth)

    with pytest.raises(TileError, match="U301"):
        tile.explain(large(**SIZES), "metal")
    (found,) = tile.tilings(large, SIZES, target="metal")
    assert found == {"depth": 32}
    # 128 accumulators of a thread leave no registers for others, so that no shape has an estimate.
    assert found.reason.startswith("smaller than the factory's defaults, which the target refuses, without an estimate")


def test_a_program_without_an_estimate_returns_the_defaults(model, monkeypatch):
    monkeypatch.setattr(Model, "estimate", lambda self, workload, ctx: Reject("no rates"))
    (found,) = tile.tilings(usual, SIZES, target="cpu")
    assert found["block_M"] == 16
    assert found.reason == "the factory's defaults, without an estimate: no rates"


def test_a_tiling_is_a_dict_that_can_be_sent():
    one = Tiling({"block_M": 64}, 12.34, "limited by loads")
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.microseconds, again.reason) == (one, 12.34, "limited by loads")
    assert str(one) == "block_M=64: about 12.3 us, limited by loads"
    assert str(Tiling({"m": (1, 2)}, None, "defaults")) == "m=(1, 2): defaults"


@pytest.mark.sweep(0.25)
def test_tilings_are_configurations_of_a_search(model):
    def configs(M: int, N: int, K: int) -> list[Tiling]:
        return tile.tilings(jitted, {"M": M, "N": N, "K": K}, most=2)

    tuned = tile.autotune(configs, warmup=0, repeat=1)(jitted).tune(**SIZES)
    assert [dict(t.config) for t in tuned.trials] == [{"block_M": 64, "block_N": 64}, {"block_M": 32, "block_N": 64}]


# --- refusals ---


def no_product(N: int, block: int = 16) -> Any:
    @T.prim_func
    def copied(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]

    return copied


def constant(M: int, N: int, K: int, blok_M: int = 16) -> Any:
    return product(M, N, K, 16, 16, 16)


def unbound(M: int, N: int, K: int, block_M: int, groups: int) -> Any:
    return product(M, N, K, block_M, 16, 16)


REFUSED = [
    (no_product, {"N": 64}, NoProducts, r"\[K446\] no_product: its program has no product .*T.gemm.*autotune"),
    (constant, SIZES, NoTileParameters, r"\[K447\] constant: no parameter .*vary: blok_M.*'block_m' in its body"),
    (lambda: product(16, 16, 16, 16, 16, 16), {}, NoTileParameters, r"ints to vary: none.*block_m=128 and block_n=128"),
    (unbound, SIZES, UnboundParameter, r"\[K448\] unbound: parameter 'groups' has no value.*block_m.*add it to shapes"),
    (usual, SIZES | {"Q": 3}, BadArgument, r"K.*shapes.*'Q'.*a parameter of usual"),
    (usual, SIZES | {"blockM": 3}, BadArgument, "did you mean 'block_M'"),
    (usual(**SIZES), {}, BadArgument, "pass the factory itself"),
    (7, {}, BadArgument, "an object of type int"),
    (lambda block_M=16: 3, {}, BadReturn, "an object of type int"),
    (usual, [1, 2], BadArgument, "a dict of arguments by name"),
]  # fmt: skip


@pytest.mark.parametrize(("factory", "shapes", "error", "text"), REFUSED)
def test_refusals(factory, shapes, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        tile.tilings(factory, shapes, target="cpu")


def test_the_length_of_the_list_is_checked():
    with pytest.raises(BadSetting, match="most"):
        tile.tilings(usual, SIZES, target="cpu", most=0)


def test_errors_of_the_defaults_are_the_factory_s():
    with pytest.raises(tile.TileError, match="K"):
        tile.tilings(usual, SIZES, block_M=-1, target="cpu")
