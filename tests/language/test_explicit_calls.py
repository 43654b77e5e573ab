"""Calls that demand an instruction, before products and others, on targets without it: refused by the catalogue."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T

pytest.importorskip("tile_cuda")


COPIES = {
    "tma_copy": lambda x, s, full: T.tma_copy(x, s),
    "tma_copy of a barrier": lambda x, s, full: T.tma_copy(x, s, barrier=full),
    "async_copy": lambda x, s, full: T.async_copy(x, s),
    "a variant": lambda x, s, full: T.copy(x, s, variant="cuda.copy.bulk"),
    "copy": lambda x, s, full: T.copy(x, s),
}
PACKAGES = {"cpu": "tile_core", "metal": "tile_metal", "rocm": "tile_rocm_stub", "cuda": "tile_cuda"}
USES = {
    "gemm": lambda s, r, c: T.gemm(s, r, c),
    "a variant": lambda s, r, c: T.gemm(s, r, c, variant="cuda.wgmma"),
    "wgmma_gemm": lambda s, r, c: T.wgmma_gemm(s, r, c),
    "tcgen05_gemm": lambda s, r, c: T.tcgen05_gemm(s, r, c),
    "no product": lambda s, r, c: T.copy(s[0:4, 0:16], c),
}


def kernel(copied, used, loop):
    """Copies with an operand more than others have, which a product or another copy reads."""
    copy, use, counted = COPIES[copied], USES[used], copied == "tma_copy of a barrier"

    @T.prim_func
    def explicit(A: T.Tensor((4, 48), "float16"), B: T.Tensor((48, 16), "float16"), C: T.Tensor((4, 16), "float32")):
        with T.Kernel(1, threads=128):
            s, r = T.alloc_shared((4, 16), "float16"), T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((4, 16), "float32")
            full = T.alloc_barrier(128) if counted else None
            T.clear(c)
            for i in T.Pipelined(3, num_stages=2) if loop == "pipelined" else T.serial(3):
                T.copy(A[0:4, i * 16 : i * 16 + 16], s)
                copy(B[i * 16 : i * 16 + 16, 0:16], r, full)
                if counted:
                    T.barrier_arrive(full)
                    T.barrier_wait(full, i % 2)
                if copied == "async_copy":
                    T.ptx_wait_group(0)
                use(s, r, c)
            T.copy(c, C)

    return explicit


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", ["cpu", "metal", "rocm:gfx942", "cuda:sm_80"])
@pytest.mark.parametrize("loop", ["serial", "pipelined"])
@pytest.mark.parametrize("used", USES)
@pytest.mark.parametrize("copied", COPIES)
def test_only_the_catalogue(copied, used, loop, target):
    pytest.importorskip(PACKAGES[target.split(":")[0]])
    known = {"copy", *({"async_copy"} if target == "cuda:sm_80" else ())}
    plain = copied in known and used in ("gemm", "no product")
    how = {} if target == "cpu" else {"runtime": "emulator"}
    if plain and not (copied == "async_copy" and loop == "pipelined"):
        tile.compile(kernel(copied, used, loop), target, **how)
        return
    with pytest.raises(tile.TileError) as info:
        tile.compile(kernel(copied, used, loop), target, **how)
    counted = copied == "tma_copy of a barrier"
    expected = {
        "U103",
        *(("K232",) if loop == "pipelined" else ()),
        *(("U118",) if counted and target != "cpu" else ()),
    }
    assert info.value.code in expected, info.value


@pytest.mark.parametrize("copied", [c for c in COPIES if c != "copy"])
def test_a_copy_that_a_product_would_read_through_is_refused_as_one_alone(copied):
    """The CPU reads B in place where it can, but not past a copy that demands an instruction."""
    refused = []
    for used in ("gemm", "no product"):
        with pytest.raises(tile.TileError) as info:
            tile.compile(kernel(copied, used, "serial"), "cpu")
        refused.append((info.value.code, info.value.message))
    assert refused[0] == refused[1]
    assert refused[0][0] == "U103"
