"""A variant that crashes is named, with the user's line, whichever of its methods crashes."""

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantCrashed
from tile_core.simt.ops.atomics import AtomicElement
from tile_cuda.ops.gemm_mma import MmaVariant


@T.prim_func
def tickets(counter: T.Tensor((1,), "int32"), out: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            out[i] = T.atomic_add(counter[0], 1, return_prev=True)


@T.prim_func
def product(a: T.Tensor((64, 64), "float16"), b: T.Tensor((64, 64), "float16"), c: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a_s, b_s = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
        total = T.alloc_fragment((64, 64), "float32")
        T.copy(a, a_s)
        T.copy(b, b_s)
        T.gemm(a_s, b_s, total, clear_accum=True)
        T.copy(total, c)


@pytest.mark.parametrize(
    ("owner", "method", "kernel", "line"),
    [(AtomicElement, "lower_value", tickets, 16), (MmaVariant, "layouts", product, 26)],
)
def test_a_crash_is_named(monkeypatch, tmp_path, owner, method, kernel, line):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))

    def crash(*_):
        raise ZeroDivisionError("asked")

    monkeypatch.setattr(owner, method, crash)
    with pytest.raises(VariantCrashed, match=r"variant cuda\.\S+ raised ZeroDivisionError: asked") as caught:
        tile.compile(kernel, target="cuda:sm_80")
    assert caught.value.where.line == line


def test_a_variant_without_the_result_that_the_program_takes(monkeypatch, tmp_path):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    monkeypatch.delattr(AtomicElement, "lower_value")
    with pytest.raises(VariantCrashed, match="it has no lower_value, but the program takes the result"):
        tile.compile(tickets, target="cuda:sm_80")
