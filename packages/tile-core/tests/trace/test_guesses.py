"""Misspelt names: a guess is the name that was meant, or there is none."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.language import UnknownName
from tile_runtime.errors.guess import hint, nearest

MEANT = {
    "gem": "gemm",
    "copyy": "copy",
    "parallel": "Parallel",
    "Serial": "serial",
    "alloc_fragmnt": "alloc_fragment",
    "atomicAdd": "atomic_add",
    "ceil_div": "ceildiv",
    "isfinit": "isfinite",
    "bflaot16": "bfloat16",
    "rsqr": "rsqrt",
}
#: Each is near to a name that computes something else.
NEIGHBOURS = ("sqr expm exp3 log11p float15 int7 reduce_mix reduce_sun cummin shfl_dwon2 atomic_addx3").split()


@pytest.mark.parametrize("name", MEANT)
def test_slips_are_understood(name):
    with pytest.raises(UnknownName) as caught:
        getattr(T, name)
    assert caught.value.help == f"did you mean T.{MEANT[name]}?"


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_are_not_suggested(name):
    with pytest.raises(UnknownName) as caught:
        getattr(T, name)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("sum", "T.reduce_sum"),
        ("matmul", "T.gemm"),
        ("argsort", "T.topk"),
        ("rand", "T.philox"),
        ("maximum", "T.max"),
        ("add", "T.Parallel"),
        ("threadIdx", "T.get_thread_binding"),
        ("shfl_xor_sync", "T.shfl_xor("),
        ("atomic_cas", "T.atomic_add"),
        ("to", "astype"),
    ],
)
def test_names_of_other_libraries(name, instead):
    with pytest.raises(UnknownName) as caught:
        getattr(T, name)
    assert instead in caught.value.help


def test_case_decides_between_arguments():
    @T.macro
    def multiply(a, b, c):
        T.gemm(a, b, c, transpose_a=True)

    def build():
        @T.prim_func
        def k(A: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                a = T.alloc_shared((16, 16), "float16")
                c = T.alloc_fragment((16, 16), "float32")
                multiply(a, a, c)

        return k

    with pytest.raises(TileError, match=r"did you mean transpose_A=\?"):
        build()


def test_targets_and_languages():
    assert nearest("gpu", ["cpu", "cuda", "metal"]) == []
    assert nearest("cpuu", ["cpu", "cuda"]) == ["cpu"]
    assert nearest("atan", ["tan", "tanh"]) == []
    assert nearest("sin", ["sinh", "asin"]) == []
    with pytest.raises(TileError) as caught:
        tile.compile(_copy(), target="gpu")
    assert "did you mean" not in str(caught.value)
    assert "cpu" in str(caught.value)


def test_equals_are_no_guess():
    assert nearest("block_N", ["block_n", "BLOCK_N"]) == []
    assert hint("one", ["two"], "leave it out") == "leave it out"


def _copy():
    @T.prim_func
    def k(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    return k


@pytest.mark.parametrize(
    ("statement", "code", "text"),
    [
        (lambda x: T.cast(x), "K126", "cast.*missing a required argument: 'dtype'"),  # type: ignore[call-arg]
        (lambda x: T.clamp(x, low=0), "K137", r"did you mean min_val=\?"),  # type: ignore[call-arg]
        (lambda x: T.exp(x, 3), "K126", "exp.*too many positional arguments"),  # type: ignore[call-arg]
        (lambda x: x << 1, "K103", "T.reinterpret for the bits"),
        (lambda x: x[x > 0], "K103", r"T.where\(condition, a, b\)"),
        (lambda x: x.to("float16"), "K140", "astype"),
    ],
)
def test_mistakes_with_whole_tiles(statement, code, text):
    with pytest.raises(TileError, match=rf"(?s){code}.*{text}"):

        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                x = T.alloc_fragment((16, 16), "float32")
                T.copy(A, x)
                y = statement(x)
                T.copy(y, A)
