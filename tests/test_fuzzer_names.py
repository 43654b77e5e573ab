"""Names that backends add to T: drawn by a strategy of the fuzzer, or listed here with a reason."""

from __future__ import annotations

from tile_core.plugins.manager import installed

_EXPERT = "expert level: legal only in layouts of one instruction; cases and programs of the backend's own tests"
_NAMES = """
cooperative_tensor_gemm cooperative_tensor_gemm_sp simdgroup_fill simdgroup_gemm simdgroup_gemm_sp simdgroup_load
simdgroup_multiply_accumulate simdgroup_store tma_copy wgmma_gemm wgmma_gemm_sp fence_barrier_init fence_proxy_async
mbarrier_expect_tx
"""
#: Name -> why no strategy draws it.
UNDRAWN = dict.fromkeys(_NAMES.split(), _EXPERT)


def test_names_of_backends_are_drawn_or_have_a_reason():
    names = set(installed().language_names())
    assert names - set(UNDRAWN) == set(), "draw these names in tile_core.testing.strategies, or say here why not"
    assert set(UNDRAWN) - names == set()
