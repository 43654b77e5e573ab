"""Names that backends add to T: drawn by a strategy, or listed with a reason."""

from __future__ import annotations

from tile_core.plugins.manager import installed
from tile_core.testing.coverage import emitted

_EXPERT = "expert level: legal only in layouts of one instruction; cases and programs of the backend's own tests"
_NAMES = """
cooperative_tensor_gemm cooperative_tensor_gemm_sp simdgroup_fill simdgroup_gemm simdgroup_gemm_sp simdgroup_load
simdgroup_multiply_accumulate simdgroup_store wait_wgmma wgmma_gemm wgmma_gemm_sp
"""
_STEPS = "changes nothing that a program computes; test_registers and test_wait_wgmma of tile-cuda have it"
_COPIES = "computes what T.copy computes; test_explicit_copies of tile-cuda has it"
_ORDER = "changes nothing that a program computes; test_launch_order of tile-cuda has it"
_NO_MEANING = "changes nothing that a program computes; tests/barriers of tile-cuda have it"
#: Name -> why no strategy draws it.
UNDRAWN = (
    dict.fromkeys(_NAMES.split(), _EXPERT)
    | dict.fromkeys(("fence_barrier_init", "fence_proxy_async"), _NO_MEANING)
    | dict.fromkeys(("set_max_nreg", "warpgroup_arrive", "warpgroup_commit_batch"), _STEPS)
    | dict.fromkeys(("warpgroup_fence_operand", "warpgroup_wait"), _STEPS)
    | dict.fromkeys(("async_copy", "ptx_commit_group", "ptx_wait_group", "tma_store_wait"), _COPIES)
    | dict.fromkeys(("pdl_sync", "pdl_trigger"), _ORDER)
)


def test_names_of_backends_are_drawn_or_have_a_reason():
    names = set(installed().language_names())
    target = installed().resolve_target("cuda:sm_100a")  # the one whose backend adds most strategies
    only = ("barriers", "clusters", "exchanges", "multicast", "four-rows", "tensor-memory")
    drawn = {n for found in emitted(60, only, target=target).values() for n in found} & names
    assert names - drawn - set(UNDRAWN) == set(), "draw these names in tile_core.testing.strategies, or give a reason"
    assert set(UNDRAWN) - names == set()
    assert drawn & set(UNDRAWN) == set()
