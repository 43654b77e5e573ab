"""TileLang's parameters: the table of all shared functions, and calls by its names and positions."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.errors import TileError
from tile_tilelang.errors import BadCall
from tile_tilelang.parameters import WITHOUT_EFFECT, matched, signatures

PAGE = Path(__file__).parents[3] / "docs" / "tilelang-parameters.md"
NONE = inspect.Parameter.empty
#: Defaults that are others in tile, and why results are the same.
OTHER_DEFAULTS = {
    ("ClusterKernel", "cluster_dims"): "required there",
    ("Serial", "step"): "1 is meant",
    ("Unroll", "step"): "1 is meant",
    ("assume", "cond"): "required there, too",
    ("cast", "round"): "the same direction",
    ("cast", "sat"): "8-bit floats saturate, no other type does",
    ("gemm_sp", "policy"): "the same member",
    ("make_tensor", "dtype"): "the type of the pointer",
    ("rng_init", "generator"): "the same one",
    ("tcgen05_gemm_sp", "policy"): "the same member",
    ("wgmma_gemm", "policy"): "the same member",
    ("wgmma_gemm_sp", "policy"): "the same member",
    ("thread_binding", "thread"): "required there in kernels",
    **{(name, "width"): "the warp" for name in ("shfl_down", "shfl_sync", "shfl_up", "shfl_xor")},
}


def rows() -> list[str]:
    """Return the rows of the page's table."""
    found = []
    for name, theirs in sorted(signatures().items()):
        own = inspect.signature(getattr(T, name))
        to = matched(name, own)
        ours = []
        for parameter, mine in to.items():
            kind = theirs.parameters[parameter].kind
            if mine is None and kind is not inspect.Parameter.VAR_POSITIONAL:
                several = any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values())
                word = "by position" if several else "its default only"
                ours.append(f"{parameter}: {'no effect' if parameter in WITHOUT_EFFECT else word}")
            elif mine not in (None, parameter):
                ours.append(f"{parameter}: `{mine}`")
        found.append(f"| `T.{name}{str(theirs).replace('|', ',')}` | {', '.join(ours) or 'the same'} |")
    return found


def test_the_table_of_all_shared_functions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [row for row in rows() if row not in text]
    assert not missing, "\n".join(missing)
    assert text.count("| `T.") == len(rows()) >= 200


def test_defaults_that_are_others_have_reasons() -> None:
    found = set()
    for name, theirs in signatures().items():
        own = inspect.signature(getattr(T, name))
        for parameter, mine in matched(name, own).items():
            default = theirs.parameters[parameter].default
            if mine in own.parameters and default is not NONE and own.parameters[mine].default != default:
                found.add((name, parameter))
    assert found <= OTHER_DEFAULTS.keys(), found - OTHER_DEFAULTS.keys()


def test_calls_by_names_and_positions_of_tilelang() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((4, 64), "float32"), Z: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment(shape=(4, 64), dtype="float32")
            S = T.alloc_shared((64,), "float32")
            M = T.alloc_fragment((4,), "float32")
            T.fill(buffer=S, value=2.0)
            T.clear(buffer=F, annotations={"note": 1})
            for i, j in T.Parallel(4, 64):
                F[i, j] = T.if_then_else(cond=X[j] > 0, t=X[j], f=S[j] * -T.shift_left(x=1, y=2))
            T.reduce_max(F, M, 1, True, 1, True)  # the fifth position is ``batch``
            T.copy(src=F, dst=Y, coalesced_width=4)
            for j in T.Parallel(64):
                Z[j] = T.atan2(x1=M[0], x2=T.pow(x=X[j], y=2.0, span=None))

    x = np.random.default_rng().standard_normal(64).astype("float32")
    y, z = tilelang.compile(kernel, out_idx=[1, 2], target="cpu")(x)
    expected = np.where(x > 0, x, -8.0).astype("float32")
    np.testing.assert_array_equal(y, np.tile(expected, (4, 1)))
    np.testing.assert_allclose(z, np.arctan2(expected.max(), x.astype("float64") ** 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: T.match_any_sync(T.get_thread_binding(), 0xFF), "mask"),
        (lambda: T.match_any_sync(T.get_thread_binding(), mask=0), "mask"),
        (lambda: T.shfl_xor(T.get_thread_binding(), 1, 32, 7), "mask"),
    ],
)
def test_values_without_a_counterpart_are_refused(call, name: str) -> None:
    with pytest.raises(BadCall, match=name):

        @T.prim_func
        def kernel(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=64):
                A[T.get_thread_binding()] = T.cast(call(), "int32")


def test_calls_of_neither_form_are_refused_as_by_tile() -> None:
    with pytest.raises(TileError, match="no_such"):

        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.fill(A, no_such=1)
