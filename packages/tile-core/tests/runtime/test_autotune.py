"""``tile.autotune``: the fastest configuration that is right, with the reasons of those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import NoWorkingConfig


def scaled(n: int, block: int = 64, factor: float = 2.0) -> Any:
    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            s = T.alloc_shared((block,), "float32")
            T.copy(A[bx * block], s)
            for i in T.Parallel(block):
                B[bx * block + i] = s[i] * factor

    return scale


def tuned(configs: Any, **options: Any) -> Any:
    factory = tile.jit(out_idx=[-1], target="cpu")(scaled)
    return tile.autotune(configs=configs, warmup=1, repeat=2, **options)(factory)


def test_one_of_the_working_configurations_is_chosen_and_remembered() -> None:
    function = tuned([{"block": 16}, {"block": -1}, {"block": 32}])
    result = function.tune(100)
    assert result.config in ({"block": 16}, {"block": 32})
    assert [t.seconds is None for t in result.trials] == [False, True, False]
    assert "block=-1: [K1" in str(result.trials[1])
    assert str(result.trials[0]).endswith(" us")
    kernel = function(100)
    assert kernel is result.kernel
    a = np.arange(100, dtype=np.float32)
    assert np.array_equal(kernel(a), 2 * a)


def test_inputs_and_configurations_may_be_functions() -> None:
    function = tuned(lambda n: [{"block": n}], inputs=lambda n: [np.ones(n, np.float32)], check=False)
    assert function.tune(8).config == {"block": 8}


def test_nothing_that_works_says_why_for_each() -> None:
    with pytest.raises(NoWorkingConfig) as refused:
        tuned([{"block": 0}, {"block": "many"}])(64)
    assert refused.value.code == "K433"
    assert "none of the 2 configurations of scaled works" in str(refused.value)
    assert str(refused.value).count("[K1") == 2


@pytest.mark.parametrize("configs", [[], [3], "block"])
def test_configurations_that_are_none_are_refused(configs: Any) -> None:
    with raises_error(BadArgument, name="configs"):
        tuned(configs)(64)


def test_only_factories_are_tuned() -> None:
    with pytest.raises(BadArgument, match=r"a factory or eager kernel of tile\.jit"):
        tile.autotune(configs=[{}])(scaled)  # type: ignore[arg-type]
