"""Loops with the program's own conditions have vector accesses on every target with threads."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T

#: A target, and a 16-byte access in its language.
TARGETS = {"cuda:sm_80": "uint4*)", "cuda:sm_90a": "uint4*)", "metal": "uint4*)", "rocm:gfx942": "v16*)"}


def gated(n, form):
    @T.prim_func
    def kernel(G: T.Tensor((8, 2 * n), "bfloat16"), M: T.Tensor((8, n), "uint8"), Y: T.Tensor((8, n), "bfloat16")):
        with T.Kernel(T.ceildiv(n, 2048), 8, threads=256) as (bx, r):
            for j in T.Parallel(2048):
                c = bx * 2048 + j
                if form == "bound":
                    if c < n:
                        Y[r, c] = T.cast(G[r, c], "float32") * T.cast(G[r, n + c], "float32")
                elif form == "else":
                    if c < n - 8:
                        t = T.cast(G[r, c], "float32")
                        Y[r, c] = t * t
                    else:
                        Y[r, c] = 0
                elif form == "assumed":
                    T.assume(c < n)
                    if c < n:
                        Y[r, c] = G[r, c]
                elif form == "choice":
                    Y[r, c] = T.if_then_else(c < n - 16, G[r, c], T.cast(0, "bfloat16"))
                elif M[r, c] != 0:
                    Y[r, c] = G[r, c] * G[r, n + c]

    return kernel


@pytest.mark.parametrize("target", TARGETS)
def test_guarded_loops_have_vector_accesses(target):
    wide = TARGETS[target]

    def text(n, form):
        return tile.compile(gated(n, form), target=target).source

    always = text(14336, "bound")
    assert always.count(wide) == 6
    assert "< 14336" not in always
    assert text(14344, "bound").count(wide) == 6  # the bound is a multiple of the width: one test for each vector
    split = text(14340, "bound")
    assert "+ 7) < 14340" in split.replace("r_1 + 7", "7")
    assert text(14344, "else").count(wide) >= 5
    assert "< 14344" not in text(14344, "assumed")
    assert text(14344, "choice").count(wide) >= 2
    assert text(14336, "mask").count(wide) >= 6
