"""Automatic multicast in loops: conditions, rejection reasons, results."""

from __future__ import annotations

import contextlib
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products, sparse
from tile_runtime.files.artefact import from_bytes

HOPPER = ("cuda:sm_90a", {"wgmma": "always", "clusters": "always", "persistent": "never"})
BULK = {"tcgen05": "always", "tma": "always"}
CASTS, STAYS = "multicast_cluster(&", "const int worker = blockIdx.x"
#: What texts have, with a target and options: the last ones are of blocks with roles.
REACHED = (
    (*HOPPER, (CASTS,)),
    ("cuda:sm_100a", {**BULK, "clusters": "always", "persistent": "never"}, (CASTS,)),
    ("cuda:sm_100a", {**BULK, "clusters": "pairs"}, ("tcgen05_mma_cta_group_2",)),
    (HOPPER[0], {**HOPPER[1], "persistent": "always"}, (CASTS, STAYS)),
    (HOPPER[0], {"wgmma": "always", "persistent": "always"}, (CASTS, STAYS)),
    ("cuda:sm_100a", {**BULK, "clusters": "always", "persistent": 2}, (CASTS, STAYS, "multicast_cluster_b64(&")),
)
BLACKWELL = ("cuda:sm_100a", {"tcgen05": "always", "tma": "always", "persistent": "never"})


def gemm(sizes, block=(64, 64, 32), *, threads=128, stages=3, turned=True, panel=0, how="", out="float32", apart=0):
    (m, n, k), (bm, bn, bk) = sizes, block
    of_b = (n, k) if turned else (k, n)

    def tensor(rows, columns):
        return T.StridedTensor((rows, columns), (apart or columns, 1), "float16")

    @T.prim_func
    def main(
        A: tensor(m, k),
        B: tensor(*of_b),
        L: T.Tensor((64,), "int32"),
        C: T.Tensor((m, n), out),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bn, bk) if turned else (bk, bn), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            if panel:
                T.use_swizzle(panel)
            T.clear(C_l)
            trips = T.ceildiv(k, bk)
            for t in T.Pipelined(
                L[by] if how == "loaded" else by + 1 if how == "triangle" else trips, num_stages=stages
            ):
                T.copy(A[L[by] * bm if how == "gathered" else by * bm, t * bk], A_s)
                if turned:
                    T.copy(B[bx * bn, t * bk], B_s)
                else:
                    T.copy(B[t * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=turned)
            if how == "met":
                T.cluster_sync()
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def run(sizes, target=HOPPER[0], options=HOPPER[1], turned=True, **how):
    kernel = tile.compile(gemm(sizes, turned=turned, **how), target, runtime="emulator", options=options)
    (m, n, k), rng = sizes, np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((m, k), (k, n)))
    c = np.full((m, n), 85, how.get("out", "float32"))
    kernel(a, np.ascontiguousarray(b.T) if turned else b, np.arange(64, dtype="int32"), c)
    np.testing.assert_array_equal(c, (a.astype("float32") @ b.astype("float32")).astype(c.dtype))
    return kernel


def said(sizes, target=HOPPER[0], options=HOPPER[1], **how):
    (loop,) = report_json(gemm(sizes, **how), target, options=options)["block"]["loops"]
    return " ".join(str(loop["notes"]).split())


def casts(kernel):
    return "multicast_cluster(&" in kernel.source


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("sizes", "how"),
    [
        ((200, 250, 160), {}), ((64, 128, 64), {"stages": 2}), ((250, 136, 96), {"turned": False}),
        ((61, 250, 160), {"stages": 4}), ((200, 256, 96), {"panel": 2}), ((100, 120, 328), {"out": "float16"}),
        ((256, 128, 64), {"block": (128, 64, 32), "threads": 256}), ((128, 128, 224), {"stages": 5}),
    ],
)  # fmt: skip
def test_pairs_are_right(sizes, how):
    assert casts(run(sizes, **how))


@pytest.mark.sweep(6)
@pytest.mark.parametrize("sizes", [(128, 128, 96), (120, 250, 160)])
def test_pairs_of_both_axes_are_right(sizes):
    kernel = run(sizes, options={**HOPPER[1], "clusters": 4})
    assert casts(kernel)
    assert "__cluster_dims__(2, 2, 1)" in kernel.source
    assert "clusters of 2 x 2 blocks" in kernel.explain()


@pytest.mark.sweep(8)
@pytest.mark.parametrize("more", [{}, {"clusters": "always"}, {"clusters": 4}])
def test_tensor_memory_of_clusters(more):
    kernel = run((250, 120, 200), *BLACKWELL[:1], {**BLACKWELL[1], **more}, block=(128, 64, 64))
    assert casts(kernel)
    assert "tcgen05_mma" in kernel.source


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("sizes", "how", "reason"),
    [
        ((64, 64, 160), {}, "1 blocks along an axis of the grid are not a multiple of 2"),
        ((192, 192, 160), {}, "3 blocks along an axis of the grid are not a multiple of 2"),
        ((128, 128, 160), {"how": "met"}, "it calls cluster_arrive itself"),
        ((128, 128, 160), {"how": "triangle"}, "blocks may have different trip counts"),
        ((128, 128, 160), {"how": "loaded"}, "blocks may have different trip counts"),
        ((64, 128, 160), {"how": "gathered"}, "no neighboring blocks provably copy the same part of A"),
    ],
)
def test_rejected_multicast_is_reported(sizes, how, reason):
    text = said(sizes, **how)
    assert "no multicast" in text
    assert reason in text


def test_the_report_lists_loads_of_a_block():
    assert "clusters of 2 x 1 blocks, each of which loads 6,144 of 8,192 bytes an iteration" in said((128, 128, 160))
    assert "clusters of 2 x 2 blocks, each of which loads 4,096 of 8,192 bytes an iteration" in said(
        (128, 128, 160), options={**HOPPER[1], "clusters": 4}
    )
    assert "no cluster of 4 blocks" in said((64, 128, 160), options={**HOPPER[1], "clusters": 4})


def test_defaults():
    never = said((128, 128, 160), options={"wgmma": "always"})
    assert 'the option clusters="always" enforces it' in never
    assert "clusters of 2 x 1 blocks" in said((256, 256, 256), *BLACKWELL, block=(128, 128, 64))
    report = said((256, 256, 256), BLACKWELL[0], {**BLACKWELL[1], "clusters": "never"}, block=(128, 128, 64))
    assert 'the option clusters is "never"' in report


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("persistent", ["always", "never"])
def test_addresses_that_boxes_cannot_copy_from_have_a_text_without_clusters(persistent, tmp_path):
    """Select the version without clusters for unaligned addresses, with the grid as written."""
    program, options = gemm((128, 192, 64)), {**HOPPER[1], "persistent": persistent}
    kernel = tile.compile(program, HOPPER[0], options=options, runtime="emulator")
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype("float16") for shape in ((128, 64), (192, 64)))
    shifted = np.zeros(a.size + 1, "float16")[1:].reshape(a.shape)
    shifted[...] = a
    for given in (a, shifted):
        c = np.full((128, 192), np.nan, "float32")
        kernel(given, b, np.zeros(64, "int32"), c)
        np.testing.assert_allclose(c, a.astype("float64") @ b.astype("float64").T, rtol=1e-5, atol=1e-5)
    file = kernel.export(tmp_path / "pairs.tile")
    text = from_bytes(file.read_bytes(), file).text
    assert text.facts.cluster != (1, 1, 1)
    assert text.general().facts.cluster == (1, 1, 1)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("sizes", "block", "shared"),
    [
        ((256, 256, 192), (128, 128, 64), "takes 545 clocks for its L2 lines and 512 for its product"),
        ((248, 256, 200), (128, 128, 64), "clusters of 2 x 1 blocks"),
        ((256, 120, 200), (128, 128, 64), "clusters of 1 x 2 blocks"),
        ((250, 250, 104), (128, 128, 64), "clusters of 2 x 1 blocks"),
        ((250, 380, 104), (128, 128, 64), "clusters of 1 x 2 blocks"),
        ((380, 380, 104), (128, 128, 64), "3 blocks along an axis of the grid are not a multiple of 2"),
    ],
)
def test_unaligned_rows_are_multicast_by_default(sizes, block, shared):
    """Multicast in persistent kernels by default; results are the same."""
    more = {"wgmma": "always", "persistent": "always"}
    assert shared in said(sizes, options=more, block=block, threads=256)
    assert casts(run(sizes, options=more, block=block, threads=256)) == shared.startswith("clusters")
    assert (
        'the option clusters="always" enforces it'
        in said(sizes[:2] + (200,), options={**more, "persistent": "never"}, block=block, threads=256)
        or "not a multiple" in shared
    )


@pytest.mark.parametrize(("k", "apart", "shared"), [(192, 200, True), (200, 256, False)])
def test_the_row_stride_decides(k, apart, shared):
    """Decide by the row stride, not the row length: strided tensors have gaps."""
    options = {"wgmma": "always", "persistent": "always"}
    text = said((256, 256, k), options=options, block=(128, 128, 64), threads=256, apart=apart)
    assert ("clusters of 2 x 1 blocks" in text) == shared
    assert ("takes 545 clocks for its L2 lines" in text) != shared


def test_a_grid_of_symbolic_extents_is_not_shared():
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, n), "float16"), C: T.Tensor((64, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=128) as bx:
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for t in T.Pipelined(2, num_stages=2):
                T.copy(A[0, t * 32], A_s)
                T.copy(B[t * 32, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[0, bx * 64])

    (loop,) = report_json(main, HOPPER[0], options=HOPPER[1])["block"]["loops"]
    assert "the number of blocks is not known at compile time" in str(loop["notes"])


def texts(units, target, options):
    for unit in units:
        with contextlib.suppress(TileError):
            text = lowered(load(unit.text()), make_context(target, options)).text
            yield text[text.index('extern "C"') :]


@pytest.mark.sweep(6)
@pytest.mark.parametrize(("target", "options", "shown"), REACHED)
def test_the_kit_reaches_them(target, options, shown):
    units = [u for table in (products, sparse) for u in table.units() if "constant" in u.name or "x128-" in u.name]
    assert any(all(x in t for x in shown) for t in texts(units, target, options))


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("target", "options", "shown"), REACHED)
def test_the_fuzzer_reaches_them(target, options, shown):
    units: list[Any] = []

    @hypothesis.seed(1)
    @settings(max_examples=150, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit) -> None:
        units.append(unit)

    draw()
    assert any(all(x in t for x in shown) for t in texts(units, target, options))
