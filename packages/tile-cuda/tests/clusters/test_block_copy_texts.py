"""Texts of block-to-block copies: mistakes found by the emulator, and machine code."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import tile_core.language as T
import tile_emulator
from tile_core import reference
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.build import build
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .test_block_copies import ORDERS, TARGET, results, turned

MEET = r" *barrier_cluster_(arrive_release|wait_acquire)\(\);\n"
#: The mistake -> the program, a pattern, its replacement, and the index of the match; None: all.
MUTANTS = {
    "no wait for the bytes": ("bulk", r" *mbarrier_wait_parity\(&arrived.*\n", "", None),
    "no arrival there": ("bulk", r" *mbarrier_arrive_expect_tx_shared_cluster.*\n", "", None),
    "other bytes are announced": ("bulk", r"(arrive_expect_tx_shared_cluster_b64\(.*, )512\)", r"\g<1>496)", None),
    "fewer bytes are copied": ("bulk", r"(complete_tx_bytes\(&R\[0\], &S\[0\], )512", r"\g<1>496", None),
    "bytes that are no multiple of 16": ("bulk", r"(complete_tx_bytes\(&R\[0\], &S\[0\], )512", r"\g<1>500", None),
    "a place between chunks": ("bulk", r"(complete_tx_bytes\()&R\[0\]", r"\1&R[1]", None),
    "the block itself": ("bulk", r"\(\(bx & 1\) \+ 1\) & 1", "(bx & 1)", None),
    "a block that is none": ("bulk", r"\(\(bx & 1\) \+ 1\) & 1", "2", None),
    "no clusters": ("bulk", r"__cluster_dims__\(2, 1, 1\) ", "", None),
    "no clusters for stores": ("stores", r"__cluster_dims__\(2, 1, 1\) ", "", None),
    "clusters of other blocks": ("stores", r"__cluster_dims__\(2, 1, 1\)", "__cluster_dims__(4)", None),
    "no fence of the tile": ("bulk", r" *fence_proxy_async_shared_cta\(\);\n", "", None),
    "a block that ends early": ("bulk", MEET, "", range(4, 6)),
    "blocks that have not begun": ("bulk", MEET, "", range(4)),
    "stores without a wait": ("stores", MEET, "", range(4, 6)),
    "stores without a release": ("stores", r"(cluster_arrive)_release\(\)", r"\1_relaxed()", None),
    "stores to another block": ("stores", r"\(\(bx & 1\) \+ 1\) & 1", "(bx & 1)", None),
    "stores while it is in use": ("stores", MEET, "", range(4)),
}  # fmt: skip


@pytest.fixture(scope="module")
def texts():
    made = {"bulk": turned((4, 32), "float32"), "stores": turned((4, 32), "float32", counted=False)}
    return {name: lower(p, make_context(TARGET, {}), installed()).lowered for name, p in made.items()}


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", ["nothing", *MUTANTS])
def test_mistakes_in_the_text_are_found(texts, name):
    which, pattern, new, positions = MUTANTS.get(name, ("bulk", "$^", "", None))
    lowered, seen = texts[which], iter(range(99))
    head, body = re.split(r'(?=extern "C")', lowered.text)
    body = re.sub(pattern, lambda m: m.expand(new) if positions is None or next(seen) in positions else m[0], body)
    text = head + (RELAXED if "relaxed" in new else "") + body
    assert (text != lowered.text) == (name != "nothing")
    edited = dataclasses.replace(lowered, text=text, general=None)
    a = np.random.default_rng(3).standard_normal((4, 4, 32)).astype("float32")
    dialect, wrong = dialect_of(Arch.of("sm_90a")), False
    for how in ORDERS:
        found = tile_emulator.run(edited.text, edited.facts, {"A": a, "B": np.zeros_like(a)}, dialect, **how)
        wrong = wrong or bool(found.reports) or not (found.outputs["B"].reshape(a.shape) == a[[1, 0, 3, 2]]).all()
    assert wrong == (name != "nothing")


RELAXED = (
    '__device__ __forceinline__ void barrier_cluster_arrive_relaxed() '
    '{ asm volatile("barrier.cluster.arrive.relaxed;" : : : "memory"); }\n'
)  # fmt: skip


@pytest.mark.sweep(6)
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float16", "float64"])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
def test_texts_become_machine_code(counted, dtype, arch):
    pytest.importorskip("cuda.bindings.nvrtc")
    program = turned((4, 32), dtype, counted=counted)
    cubin = build(lower(program, make_context(f"cuda:{arch}", {}), installed()).lowered, arch)
    assert cubin.data[:4] == b"\x7fELF"


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("to", ["itself", "the other"])
def test_a_single_thread_fences_its_writes(to):
    @T.prim_func
    def main(A: T.Tensor((4, 16), "float32"), B: T.Tensor((4, 16), "float32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=1) as bx:
            S = T.alloc_shared((16,), "float32")
            R = T.alloc_shared((16,), "float32")
            got = T.alloc_cluster_barrier(1)
            T.clear(R)
            T.copy(A[bx, :], S)
            T.cluster_sync()
            rank = T.block_rank_in_cluster()
            for k in range(3):
                T.copy_cluster(S, R, dst_block=rank if to == "itself" else 1 - rank, remote_barrier=got)
                T.barrier_wait(got, k % 2)
                T.cluster_sync()
                for i in T.Parallel(16):
                    S[i] = S[i] + R[i]
                for i in T.Parallel(16):
                    R[i] = R[i] + 1
                if to != "itself":
                    T.cluster_sync()
            T.copy(S, B[bx, :])

    a = np.random.default_rng().integers(-9, 9, (4, 16)).astype("float32")
    want = np.zeros_like(a)
    reference.execute(main, [a, want])
    for how in ORDERS:
        assert (results(main, how, {"A": a, "B": np.zeros_like(a)}).reshape(a.shape) == want).all()


@pytest.mark.parametrize("counted", [True, False])
def test_copies_of_bytes_are_in_launches_with_clusters(counted):
    """Launch a block that copies to itself as a cluster: else the instruction is illegal."""
    program = turned((4, 32), "float32", blocks=1, by=0, counted=counted)
    text = lower(program, make_context(TARGET, {}), installed()).lowered.text
    assert ("__cluster_dims__(1, 1, 1)" in text) == counted
