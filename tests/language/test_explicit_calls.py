"""Calls that require an instruction, on targets without it: rejected by the catalogue."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantMissing, VariantRefused

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
    """The CPU reads B in place where possible, but not past an explicit copy."""
    refused = []
    for used in ("gemm", "no product"):
        with pytest.raises(tile.TileError) as info:
            tile.compile(kernel(copied, used, "serial"), "cpu")
        refused.append((info.value.code, info.value.message))
    assert refused[0] == refused[1]
    assert refused[0][0] == "U103"


@T.prim_func
def registers(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=384):
        with T.ws(0):
            T.set_max_nreg(40, 0)
            for i in T.Parallel(64):
                A[i] += 1
        with T.ws(1, 2):
            T.set_max_nreg(256, 1)
            for i in T.Parallel(64):
                B[i] += 1


@T.prim_func
def unaligned(A: T.Tensor((5, 3), "int8"), B: T.Tensor((5, 3), "int8")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((5, 3), "int8")
        T.async_copy(A, s)
        T.ptx_wait_group(0)
        T.copy(s, B)


def product(multiply):
    @T.prim_func
    def multiplied(
        A: T.Tensor((24, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((24, 16), "float32")
    ):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((24, 16), "float16"), T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((24, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            multiply(a, b, c)
            T.copy(c, C)

    return multiplied


CLEARED = {"clear_accum": True}
WRITTEN = {
    "T.wgmma_gemm": (product(lambda a, b, c: T.wgmma_gemm(a, b, c, **CLEARED)), "cuda:sm_90a", "write T.gemm"),
    "T.tcgen05_gemm": (product(lambda a, b, c: T.tcgen05_gemm(a, b, c, **CLEARED)), "cuda:sm_100a", "write T.gemm"),
    "T.async_copy": (unaligned, "cuda:sm_80", "write T.copy"),
    "T.tma_copy": (kernel("tma_copy", "gemm", "serial"), None, "write T.copy"),
    "T.set_max_nreg": (registers, "cuda:sm_90a", "leave it out"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_refused_is_the_call_that_was_written(name):
    program, near, instead = WRITTEN[name]
    with pytest.raises(VariantMissing, match=r"\[U103\]") as info:
        tile.compile(program, "cpu")
    assert f" has no {name} (cuda." in info.value.message
    assert info.value.help.startswith(instead), info.value.help
    if near is not None:
        with pytest.raises(VariantRefused, match=r"\[U104\]") as refusal:
            tile.compile(program, near, runtime="emulator")
        assert refusal.value.message.startswith(f"{name} (cuda.")
        assert refusal.value.help == f"change the call, or {instead}"


def test_names_of_another_package():
    pytest.importorskip("tile_metal")
    with pytest.raises(VariantMissing, match=r"has no T.simdgroup_gemm \(metal.simdgroup\)") as info:
        tile.compile(product(lambda a, b, c: T.simdgroup_gemm(a, b, c, **CLEARED)), "cpu")
    assert info.value.help == "write T.gemm, which every target has"


@pytest.mark.parametrize("name", ["gemm", "wgmma_gemm", "tcgen05_gemm"])
def test_accumulators_that_nothing_wrote(name):
    with pytest.raises(tile.TileError, match=rf"\[K225\] T.{name} adds to c, which has not been written"):
        tile.compile(product(lambda a, b, c: getattr(T, name)(a, b, c)), "cpu")
