"""Clusters with tensor-memory accumulators: occupancy is limited by tensor-memory columns."""

from __future__ import annotations

import re

import pytest

import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.occupancy import blocks_that_fit, bytes_of_share
from tile_cuda_runtime.architectures import RECORDS

from .test_multicast_loops import gemm
from .test_pairs import asked

TARGET = "cuda:sm_100a"
MULTICAST = {"tcgen05": "always", "tma": "always", "clusters": "always"}
PAIRS = {**MULTICAST, "clusters": "pairs"}


def lowered(program, options):
    return lower(program, make_context(TARGET, options), installed()).lowered


def sparse_gemm():
    m, n, k, (bm, bn, bk) = 256, 256, 256, (256, 128, 64)

    @T.prim_func
    def main(
        A: T.Tensor((m, k // 2), "float16"), E: T.Tensor((m, k // 16), "int16"), B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(n // bn, m // bm, threads=128) as (bx, by):
            A_s, E_s = T.alloc_shared((bm, bk // 2), "float16"), T.alloc_shared((bm, bk // 16), "int16")
            B_s, C_l = T.alloc_shared((bk, bn), "float16"), T.alloc_fragment((bm, bn), "float32")
            T.clear(C_l)
            for t in T.Pipelined(k // bk, num_stages=2):
                T.copy(A[by * bm, t * bk // 2], A_s)
                T.copy(E[by * bm, t * bk // 16], E_s)
                T.copy(B[t * bk, bx * bn], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_l)
            T.copy(C_l, C[by * bm, bx * bn])

    return main


WIDE = {"sizes": (512, 512, 96), "block": (256, 256, 32), "stages": 2}
CASES = {
    "dense, all columns": (lambda: gemm(**WIDE), MULTICAST, 512, True),
    "dense, some": (lambda: gemm((256, 160, 96), (128, 80, 32)), MULTICAST, 128, True),
    "sparse": (sparse_gemm, MULTICAST, 512, True),
    "pairs": (lambda: gemm(**WIDE), PAIRS, 512, True),
    "pairs, the least": (lambda: gemm((256, 64, 96), (128, 32, 32), stages=2), PAIRS, 32, False),
    "a cluster of the program": (lambda: asked(256, 128, 64, group=1, where="alone", cluster=2), {}, 64, True),
    "a pair of the program": (lambda: asked(256, 128, 256), {"tma": "always"}, 64, False),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", CASES)
def test_no_more_blocks_fit_than_have_columns(name):
    make, options, columns, raised = CASES[name]
    kernel = lowered(make(), options)
    facts, record = kernel.facts, RECORDS["sm_100a"]
    assert "__cluster_dims__(" in kernel.text
    (found,) = re.findall(r"tcgen05_alloc_\w+\(.*?, (\d+)\);", kernel.text)
    assert int(found) == columns
    assert facts.shared_bytes <= record.shared_bytes
    assert blocks_that_fit(record, 128, 32, facts.shared_bytes)["blocks_by_shared_memory"] <= 512 // columns
    # Most alone allocate fewer columns, with which more of them would fit; others allocate the same.
    own = max(a.offset + a.bytes for a in facts.shared)
    assert (blocks_that_fit(record, 128, 32, own)["blocks_by_shared_memory"] > 512 // columns) == raised
    assert facts.shared_bytes == own or raised


def test_single_blocks_allocate_only_required_columns():
    kernel = lowered(gemm(**WIDE), {**MULTICAST, "clusters": "never", "persistent": "never"})
    assert kernel.facts.shared_bytes < bytes_of_share(RECORDS["sm_100a"], 2)


@pytest.mark.parametrize("blocks", [1, 2, 4, 8, 16])
def test_shares(blocks):
    record = RECORDS["sm_100a"]
    size = bytes_of_share(record, blocks)
    assert size <= record.shared_bytes
    assert blocks_that_fit(record, 128, 32, size)["blocks_by_shared_memory"] == blocks
