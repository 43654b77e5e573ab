"""Clusters with roles: multicast loads, rejection reasons, results, and mistakes in their texts."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from zoo import programs

import tile_core as tile
import tile_emulator
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import report_json
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble
from . import test_mma_warp as mma_warp
from . import test_persistent as persistent

HOPPER, BLACKWELL = "cuda:sm_90a", "cuda:sm_100a"
STAYS = {"wgmma": "always", "persistent": 4, "clusters": 2, "numerics": "fast"}
ISSUES = {"tcgen05": "always", "persistent": 4, "clusters": 2}


def is_both(kernel):
    return persistent.shares(kernel) and "multicast_cluster(&" in kernel.source


CASES = {
    "plain": {},
    "clusters with unequal numbers of tiles": {"sizes": (192, 128, 160)},
    "tiles in part": {"sizes": (250, 120, 96)},
    "one cluster of tiles": {"sizes": (64, 128, 160)},
    "blocks of a column": {"sizes": (250, 64, 152)},
    "two trips": {"sizes": (200, 120, 64), "stages": 2},
    "more trips than slots, no multiple": {"sizes": (200, 120, 224), "stages": 4},
    "B as it is": {"turned": False, "sizes": (200, 128, 160)},
    "two groups": {"block": (128, 64, 32), "threads": 256, "sizes": (200, 128, 160)},
    "panels": {"panel": 2, "sizes": (384, 256, 64)},
    "a batch": {"batch": 3, "sizes": (64, 128, 96)},
    "an odd number of blocks": {"options": {**STAYS, "persistent": 5}, "sizes": (192, 128, 96)},
    "as many blocks as the device runs": {"options": {**STAYS, "persistent": "always"}, "sizes": (192, 128, 96)},
    "four": {"options": {**STAYS, "clusters": 4}},
    "four, unequal numbers of tiles": {"options": {**STAYS, "clusters": 4, "persistent": 8}, "sizes": (384, 120, 96)},
    "8-bit floats": {
        "types": ("float8_e4m3fn", "bfloat16"), "block": (64, 64, 64), "sizes": (200, 128, 192),
    },
    "8-bit floats, promoted": {
        "types": ("float8_e4m3fn", "bfloat16"), "block": (128, 64, 128), "sizes": (200, 128, 256), "threads": 256,
        "options": {**STAYS, "numerics": "standard"},
    },
    "results by way of its own tile": {"where": "staged"},
    "a tile of its own": {"where": "shared"},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(8)
def test_blocks_that_compute_are_right(name):
    kernel = persistent.check(**{"options": STAYS, "sizes": (250, 128, 160), **CASES[name]})
    assert is_both(kernel), kernel.explain()


OF_ISSUERS = {
    "plain": {},
    "clusters with unequal numbers of tiles": {"sizes": (384, 120, 160)},
    "blocks of a column": {"sizes": (250, 64, 152)},
    "two trips": {"sizes": (250, 128, 64), "stages": 2},
    "fewer trips than slots": {"sizes": (250, 128, 64), "stages": 4},
    "more trips than slots, no multiple": {"sizes": (250, 128, 224), "stages": 4},
    "B as it is": {"turned": False},
    "panels": {"panel": 2, "sizes": (500, 256, 64)},
    "a batch": {"batch": 2, "sizes": (100, 120, 96)},
    "four": {"options": {**ISSUES, "clusters": 4}},
    "four, unequal numbers of tiles": {"options": {**ISSUES, "clusters": 4, "persistent": 8}, "sizes": (768, 120, 64)},
    "8-bit floats": {"types": ("float8_e4m3fn", "bfloat16"), "block": (128, 64, 64), "sizes": (250, 128, 192)},
    "all columns": {"block": (256, 256, 32), "sizes": (300, 500, 64), "stages": 2},
    "results by way of their own tile": {"where": "staged"},
    "the default": {"options": {"tcgen05": "always"}},
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ISSUERS)
@pytest.mark.sweep(8)
def test_blocks_with_an_mma_warp_are_right(name):
    kernel = mma_warp.check(**{"options": ISSUES, "sizes": (250, 128, 160), **OF_ISSUERS[name]})
    assert mma_warp.is_split(kernel)
    assert is_both(kernel), kernel.explain()
    for arch in ("sm_100a", "sm_103a"):
        assert "C7" not in assemble(kernel.source, arch)


def said(program, target, options):
    return " ".join(map(str, report_json(program, target, options=options)["block"]["loops"]))


def test_the_report_lists_loads_of_a_block():
    text = said(persistent.gemm((256, 128, 160)), HOPPER, STAYS)
    assert "4 persistent blocks process 8 tiles" in text
    assert "clusters of 2 x 1 blocks, each of which loads 6,144 of 8,192 bytes an iteration" in text
    assert "A_s_stages: blocks 0, 1 of a cluster multicast it" in text
    assert "the producer, each iteration: wait for t_free, 1 phase earlier; expect 8192 bytes at t_arrived" in text
    assert "arrive at t_free in all blocks that fill slots here of iteration -1, one a warp" in text
    assert text.count("meet the other blocks") == 4
    text = said(mma_warp.gemm((256, 128, 160)), BLACKWELL, {**ISSUES, "clusters": 4})
    assert "clusters of 2 x 2 blocks, each of which loads 6,144 of 12,288 bytes an iteration" in text
    assert "arrive at t_free in all blocks that fill slots here when these uses are complete" in text


#: Why persistent blocks are no clusters.
ALONE = {
    "the option": ((256, 128, 160), {"clusters": "never"}, 'the option clusters is "never"'),
    "not by default": ((256, 128, 192), {"clusters": "auto"}, 'the option clusters="always" enforces it'),
    "an odd grid": ((192, 192, 160), {}, "3 blocks along an axis of the grid are not a multiple of 2"),
    "no four": ((64, 128, 160), {"clusters": 4}, "no cluster of 4 blocks"),
    "one block": ((256, 128, 160), {"persistent": 1}, "1 persistent block, fewer than a cluster of 2"),
    "pairs": ((256, 128, 160), {"clusters": "pairs"}, "pairs of blocks compute products on tcgen05 only"),
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ALONE)
def test_rejected_multicast_is_reported(name):
    sizes, options, reason = ALONE[name]
    text = said(persistent.gemm(sizes), HOPPER, {**STAYS, **options})
    assert "persistent blocks process" in text
    assert "no multicast" in text
    assert reason in text


def test_blocks_that_compute_a_product_in_pairs_have_no_roles():
    program, options = mma_warp.gemm((512, 128, 160)), {"tcgen05": "always", "tma": "always"}
    text = said(program, BLACKWELL, {**options, "clusters": "pairs"})
    assert "pairs of blocks compute a product together" in text
    assert "blocks with roles compute no product in pairs" in text
    text = said(program, BLACKWELL, {**options, "clusters": "pairs", "persistent": "always"})
    assert "persistent blocks process" in text
    assert "no multicast: blocks with roles compute no product in pairs" in text


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("block", "loads"),
    [((256, 256, 64), "loads 49,152 of 65,536"), ((128, 256, 64), "loads 32,768 of 49,152")],
)
def test_the_default_is_both_where_loads_take_longer_than_the_product(block, loads):
    text = said(mma_warp.gemm((1024, 1024, 512), block), BLACKWELL, {"tcgen05": "always"})
    assert "16 persistent blocks process 16 tiles" in text or "32 persistent blocks process 32 tiles" in text
    assert "clusters of 2 x 1" in text or "clusters of 1 x 2" in text
    assert loads in text


@pytest.mark.parametrize(
    ("options", "blocks"), [({"clusters": 2}, 148), ({"clusters": 4}, 128), ({"clusters": 4, "persistent": 148}, 148)]
)
def test_persistent_clusters_are_all_resident(options, blocks):
    program = mma_warp.gemm((256 * 16, 256 * 16, 64), (256, 256, 32), stages=2)
    made = lower(program, make_context(BLACKWELL, {"tcgen05": "always", **options}), installed()).lowered
    assert made.facts.grid == (blocks, 1, 1)


@pytest.mark.parametrize("k", [128, 320])
@pytest.mark.sweep(4)
def test_sparse_products(k):
    case = programs.gemm_sp_turned_case(136, 200, k, (64, 64, 64))
    kernel = tile.compile(case.program, HOPPER, runtime="emulator", options=STAYS)
    assert is_both(kernel)
    args = [a.copy() for a in case.args]
    kernel(*args)
    assert all(w.holds(args[w.index]) for w in case.wanted)


def lowered_of(target):
    if target == HOPPER:
        program, options = persistent.gemm((192, 128, 128), types=("float16", "float32")), STAYS
    else:
        program, options = mma_warp.gemm((384, 128, 128), types=("float16", "float32")), ISSUES
    return lower(program, make_context(target, options), installed()).lowered


@functools.lru_cache
def made(target):
    return lowered_of(target)


def found(text, target):
    """Whether the emulator reports a fault of a text, or results differ."""
    m = 192 if target == HOPPER else 384
    a, b, s, c = mma_warp.operands((m, 128, 128), ("float16", "float32"))
    want = a.astype("float64") @ b.T.astype("float64")
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        facts = made(target).facts
        given = {p.name: {"A": a, "B": b, "S": s, "C": c}[p.name] for p in facts.given}
        result = tile_emulator.run(text, facts, given, dialect_of(Arch.of(target.partition(":")[2])), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), want):
            return True
    return False


_MEET = r"\n +barrier_cluster_arrive_release\(\);\n +barrier_cluster_wait_acquire\(\);"
_COMMIT = r"(multicast_cluster_b64\(&t_free\[\w+\], )3"
_CAST = r"(_multicast_cluster\(.*, )3\);"
#: Of both: a pattern and its replacement, once.
MISTAKES = {
    "objects are used before the blocks have met": (_MEET, "\n  __syncthreads();"),
    "objects are not visible to others": (r"\n +fence_mbarrier_init_release_cluster\(\);", ""),
    "a share is for its own block only": (_CAST, r"\g<1>1);"),
    "a share is for the other block only": (_CAST, r"\g<1>2);"),
    "a share is for a block that is none": (_CAST, r"\g<1>7);"),
    "a share is left out": (r"if \(\(worker & 1\) == 0\)", "if (false)"),
    "both blocks copy a share": (r"if \(\(worker & 1\) == 0\)", "if (true)"),
    "too few bytes are announced": (r"(arrive_expect_tx\w+\(&t_arrived\[slot\], )(\d+)", r"\1\2 / 2"),
    "a slot is filled early": (r"\n +mbarrier_wait_parity\(&t_free\[slot\][^;]*;", ""),
    "a slot is read early": (r"\n +mbarrier_wait_parity\(&t_arrived\[[^;]*;", ""),
    "the wait for a slot is for another phase": (r"(mbarrier_wait_parity\(&t_free\[slot\], )(.*)\);", r"\1(\2) ^ 1);"),
    "blocks of a cluster take other tiles": (r"const int tile = \(worker >> 1\)", "const int tile = worker"),
    "one block of a cluster takes a tile less": (r"(for \(int turn = 0; turn < )([^;]*);", r"\1(\2) - (worker & 1);"),
    "slots are counted anew for each tile": (r"slot = \(unsigned\)\(turn \* 4 \+ (\w+)\)", r"slot = (unsigned)(\1)"),
}  # fmt: skip
OF_WRITERS = {
    HOPPER: {
        "slots are free in their own block only": (r"\(worker & 1\) \^ \(number & 31\)\)", "(worker & 1))"),
        "slots are free in the other block only": (r"\(number & 31\) < 2", "(number & 31) == 1"),
        "the arrivals of one block free a slot": (r"(mbarrier_init\w+\(&t_free\[0\], )8", r"\g<1>4"),
        "all threads arrive": (r"\(number & 31\) < 2", "true"),
        "a slot is free before its product": (r"\n +wgmma_wait_group_sync_aligned_1\(\);", ""),
        "the last slot of a tile is never free": (
            r"(keep_f32_32\(&C_l\[0\]\);\n +if \(\(number & 31\) < )2(\) \{\n +mbarrier_arrive_shared_cluster)",
            r"\g<1>0\2"
        ),
        "a block ends while others arrive there": (rf"{_MEET}\n\}}", "\n}"),
    },
    BLACKWELL: {
        "slots are free in their own block only": (_COMMIT, r"\g<1>1u << (worker & 1)"),
        "slots are free in the other block only": (_COMMIT, r"\g<1>2u >> (worker & 1)"),
        "slots are free in a block that is none": (_COMMIT, r"\g<1>7"),
        "the product of one block frees a slot": (r"(mbarrier_init\w+\(&t_free\[0\], )2", r"\g<1>1"),
        "a slot is free before its product": (
            r"((?:\n +tcgen05_mma[^;]*;)+)(\n +tcgen05_commit\w+\(&t_free[^;]*;)", r"\2\1"
        ),
        "the issuer takes a tile less": (r"(for \(int turn_1 = 0; turn_1 < )([^;]*);", r"\1(\2) - (worker & 1);"),
    },
}  # fmt: skip
ALL = [(target, name) for target, own in OF_WRITERS.items() for name in (None, *MISTAKES, *own)]


@pytest.mark.parametrize(("target", "mistake"), ALL)
@pytest.mark.sweep(8)
def test_mistakes_are_found(target, mistake):
    text = made(target).text
    cut = text.index('extern "C"')
    head, body = text[:cut], text[cut:]
    if mistake is not None:
        pattern, new = {**MISTAKES, **OF_WRITERS[target]}[mistake]
        body, count = re.subn(pattern, new, body, count=1)
        assert count, body
    assert found(head + body, target) == (mistake is not None)
