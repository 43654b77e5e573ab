"""The table of warp operations: every function of the language is in it, and nothing else."""

from __future__ import annotations

import inspect

import pytest

import tile_core.language as T
from tile_core.ir import nodes
from tile_core.ir.warp import REDUCTIONS, SHUFFLES, UNIFORM_CALLS, VOTES, WARP_CALLS, warp_call
from tile_core.language import threads


def test_the_language_has_them_all() -> None:
    others = {"get_thread_binding", "get_thread_bindings", "get_block_binding", "get_block_bindings", "get_lane_idx",
              "get_warp_idx", "sync_threads", "sync_warp", "register", "thread_builder"}  # fmt: skip
    functions = {
        name for name, f in vars(threads).items() if inspect.isfunction(f) and f.__module__ == threads.__name__
    }
    assert {name for name in functions if not name.startswith("_")} - others == WARP_CALLS
    assert all(hasattr(T, name) for name in WARP_CALLS)


def test_kinds_do_not_overlap() -> None:
    assert len(SHUFFLES) + len(VOTES) + len(REDUCTIONS) == len(WARP_CALLS)
    assert UNIFORM_CALLS.isdisjoint(SHUFFLES)


@pytest.mark.parametrize("name", sorted(WARP_CALLS))
def test_a_call_is_found_by_its_name(name: str) -> None:
    assert warp_call(nodes.tile_call(name, [nodes.int_const(1)], ret="int32")) == name


def test_other_expressions_are_none() -> None:
    x = nodes.fresh("x")
    for e in (x, x + 1, nodes.tile_call("lane_index", [], ret="int32"), nodes.tile_call("sync_warp", [])):
        assert warp_call(e) == ""
