"""Every line of the version table, tested at its version and just before."""

import dataclasses
import platform
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_metal import target, versions
from tile_metal.ops.atoms import TENSOR
from tile_metal.ops.fragments import accumulator, operand_a, operand_b
from tile_metal.runtime import libraries
from tile_metal.runtime.machine import machine_of
from tile_metal.runtime.probe import COLUMNS, DEPTH, LANES, ROWS, held
from tile_metal.versions import MACS, MATH_MODE, MATRICES, PHONES, SYSTEM, TENSORS

from .fake_mlx import Mlx
from .fake_torch import Torch
from .test_adapter import ramp
from .texts import adapter, add_some, kernel, scale, scale_params, tensor

pytestmark = pytest.mark.sweep(4)

M5 = {"architecture": "applegpu_g17s", "system": (26, 2)}


@T.prim_func
def product(A: T.Tensor((20, 24), "float16"), B: T.Tensor((24, 40), "float16"), C: T.Tensor((20, 40), "float32")):
    with T.Kernel(1, threads=32):
        a, b = T.alloc_shared((20, 24), "float16"), T.alloc_shared((24, 40), "float16")
        c = T.alloc_fragment((20, 40), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)


@pytest.fixture
def launch(monkeypatch):
    """A function that compiles the product for a family and launches it through a double."""

    def through(module, family="metal4"):
        text = target.make_target(family).text
        name = "mlx" if isinstance(module, Mlx) else "torch"
        monkeypatch.setitem(sys.modules, "torch", module if name == "torch" else None)
        monkeypatch.setitem(libraries.FIND, name, lambda: module)
        monkeypatch.setattr(versions, "system_version", lambda: module.system)
        there = module.array if name == "mlx" else module.tensor
        a, b = (np.random.default_rng(7).integers(-9, 9, shape).astype(np.float16) for shape in ((20, 24), (24, 40)))
        out = tile.compile(product, target=text, out_idx=-1)(there(a), there(b))
        out = np.array(out) if name == "mlx" else out.cpu().numpy()
        np.testing.assert_array_equal(out, a.astype("float32") @ b.astype("float32"))
        return True

    return through


@pytest.fixture
def refused(launch):
    """A function that returns the text with which a launch is refused."""

    def through(module, family="metal4"):
        with pytest.raises(TileError) as found:
            launch(module, family)
        assert found.value.code in ("U808", "S802"), found.value
        assert not module.launches
        return str(found.value)

    return through


def in_place(mx):
    """Update arrays in place in one graph, three types, few elements: only order counts."""
    for dtype, count in (("float32", 40), ("float16", 40), ("float32", 5)):
        runtime = adapter(mx)
        params = [tensor("a", "n", dtype=dtype), tensor("c", "n", dtype=dtype, access="readwrite")]
        array = mx.array(np.arange(count).astype(dtype))
        made = add_some() if dtype == "float32" else half_of()
        kernel(made, params, runtime, hidden=("n",))(mx.array(np.arange(count).astype(dtype)), array)
        expected = np.arange(count) * np.where(np.arange(count) % 2, 1, 2)
        np.testing.assert_array_equal(np.array(array), expected.astype(dtype))


def half_of():
    made = add_some()
    return dataclasses.replace(made, text=made.text.replace("float*", "half*"), facts=dataclasses.replace(
        made.facts, params=tuple(dataclasses.replace(p, dtype="float16") if p.kind == "pointer" else p
                                 for p in made.facts.params)))  # fmt: skip


# What is refused just before the version of a line, and works from it on. Macs are doubles of one version each.


def system_compiles(launch, refused, language, system):
    family = "metal3" if language < (4, 0) else "metal4"
    before = (system[0] - 1, 6)
    assert versions.language_of(SYSTEM, before) < language == versions.language_of(SYSTEM, system)
    newest = {"architecture": "applegpu_g17s", "version": "0.32.4"}
    if language == (3, 1):
        assert "macOS 14" in refused(Mlx(**newest, system=before), family)
        assert launch(Mlx(**newest, system=system), family)
    if language == (4, 0):
        assert "MSL 4.0, that is macOS 26" in refused(Mlx(**newest, system=before))
    if language == (4, 1):  # where types of variables have their address spaces
        assert launch(Mlx(**newest, system=system))


def tensors_of_the_system(launch, refused):
    for make in (lambda s: Mlx(architecture="applegpu_g17s", system=s), lambda s: Torch(chip="Apple M5", system=s)):
        for old in ((26, 0), (26, 1)):
            assert f"this machine has macOS 26.{old[1]} and a GPU of generation 17" in refused(make(old))
        for new in ((26, 2), (27, 0)):
            assert launch(make(new))


def tensors_of_macs(launch, refused):
    for old in range(13, 17):
        text = refused(Mlx(architecture=f"applegpu_g{old}s", system=(26, 2)))
        assert f"a GPU of generation {old}" in text
        assert 'use target="metal", which this machine runs' in text
        assert "generation" in refused(Torch(chip=f"Apple M{old - 12} Max", system=(26, 2)))
        assert launch(Mlx(architecture=f"applegpu_g{old}s", system=(26, 2)), "metal3")
    assert launch(Mlx(architecture="applegpu_g17d", system=(26, 2)))


def tensors_of_phones(launch, refused):
    assert "a phone's GPU of generation 17" in refused(Mlx(architecture="applegpu_g17p", system=(26, 2)))
    assert "a phone's GPU of generation 17" in refused(Torch(chip="Apple A18 Pro", system=(26, 2)))
    assert launch(Mlx(architecture="applegpu_g18p", system=(26, 2)))


def matrices_of(launch, refused):
    assert launch(Mlx(architecture="applegpu_g13g"), "metal3")
    assert launch(Torch(chip="Apple Paravirtual device"), "metal3")  # any Mac with Apple silicon has them


def mlx_compiles(launch, refused, version, before):
    assert f"mlx {before} has no compilation as MSL 4.0" in refused(Mlx(**M5, version=before))
    assert launch(Mlx(**M5, version=version))


def mlx_of_msl_4_1(launch, refused):
    assert versions.compiled_language("mlx", (0, 32, 0), (27, 0)) == (4, 0)
    assert versions.compiled_language("mlx", (0, 32, 1), (27, 0)) == (4, 1)
    assert versions.compiled_language("mlx", (0, 32, 1), (26, 4)) == (4, 0)
    for version in ("0.32.0", "0.32.1"):
        assert launch(Mlx(architecture="applegpu_g17s", system=(27, 0), version=version))


def mlx_before_4(launch, refused):
    assert versions.compiled_language("mlx", (0, 29, 3), (26, 2)) == (3, 2)
    assert versions.compiled_language("mlx", (0, 29), (14, 0)) == (3, 1)
    assert "has no compilation as MSL 3.1" in refused(Mlx(version="0.28.0"), "metal3")
    assert launch(Mlx(version="0.29.0"), "metal3")


def math_mode(launch, refused):
    for version, modes in (("0.31.2", False), ("0.32.0", True)):
        mx = Mlx(version=version)
        call = kernel(scale(fast=True), scale_params(), adapter(mx), hidden=("n",), out_idx=(1,))
        np.testing.assert_array_equal(np.array(call(ramp(mx, 40), 1.0)), np.arange(40))
        assert [k.options for k in mx.kernels] == [{"compile_options": {"math_mode": "fast"}} if modes else {}]


def names(launch, refused):
    for version in ("0.29.4", "0.31.2", "0.32.0", "0.32.1"):
        in_place(Mlx(version=version))


def torch_compiles(launch, refused):
    old, new = (Torch(chip="Apple M5 Pro", system=(26, 2), version=v) for v in ("2.10.0", "2.11.0+git1"))
    assert "torch 2.10.0 has no compilation as MSL 4.0" in refused(old)
    assert launch(new)


def torch_launches(launch, refused):
    assert "pip install --upgrade torch" in refused(Torch(version="2.6.0"), "metal3")
    assert launch(Torch(version="2.7.1"), "metal3")


ROWS_TESTED = {
    (SYSTEM, "MSL 3.1"): lambda *f: system_compiles(*f, (3, 1), (14,)),
    (SYSTEM, "MSL 3.2"): lambda *f: system_compiles(*f, (3, 2), (15,)),
    (SYSTEM, "MSL 4.0"): lambda *f: system_compiles(*f, (4, 0), (26,)),
    (SYSTEM, "MSL 4.1"): lambda *f: system_compiles(*f, (4, 1), (27,)),
    (SYSTEM, TENSORS): tensors_of_the_system,
    (MACS, MATRICES): matrices_of,
    (PHONES, MATRICES): lambda launch, refused: launch(Mlx(architecture="applegpu_g14p"), "metal3"),
    (MACS, TENSORS): tensors_of_macs,
    (PHONES, TENSORS): tensors_of_phones,
    ("mlx", "MSL 3.2"): mlx_before_4,
    ("mlx", "MSL 4.0"): lambda *f: mlx_compiles(*f, "0.29.4", "0.29.3"),
    ("mlx", "MSL 4.1"): mlx_of_msl_4_1,
    ("mlx", MATH_MODE): math_mode,
    ("mlx", versions.DTYPES_IN_NAMES): names,
    ("mlx", versions.SOURCES_IN_NAMES): names,
    ("torch", "MSL 3.1"): torch_launches,
    ("torch", "MSL 4.0"): torch_compiles,
}


@pytest.mark.parametrize("row", versions.ROWS, ids=lambda r: f"{r.product} {versions.shown(r.first)} {r.what}")
def test_a_line(row, launch, refused):
    assert row.source
    ROWS_TESTED[row.product, row.what](launch, refused)


def test_every_line_once():
    assert sorted(ROWS_TESTED) == sorted((r.product, r.what) for r in versions.ROWS)


def test_the_page_has_the_table():
    page = Path(__file__).parents[4] / "docs" / "metal.md"
    if not page.is_file():
        pytest.skip("the pages are not here")
    assert f"<!-- versions -->\n{versions.page()}<!-- end -->" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [
    lambda: Mlx(architecture="applegpu_g19s", system=(28, 0), actual=16),
    lambda: Torch(chip="Apple M5", system=(26, 3), actual=15),
], ids=["mlx", "torch"])  # fmt: skip
def test_a_machine_that_holds_elements_elsewhere_is_refused_whatever_it_is_called(make, launch):
    module = make()
    with pytest.raises(TileError, match=r"U808.*another one: \d+ elements of a product of 16 x 32 came out wrong"):
        launch(module)
    launched = [getattr(x, "kernel", x) for x in module.launches]
    assert not any("product" in getattr(x, "name", getattr(x, "entry", "")) for x in launched)
    assert launch(module, "metal3")


@pytest.mark.sweep(0.25)
def test_a_probe_is_launched_once_for_each_type(launch):
    mx = Mlx(**M5)
    assert launch(mx)
    probes = [x.kernel.name for x in mx.launches if "tile_probe" in x.kernel.name]
    assert len(probes) == 1


def test_the_lanes_of_a_probe_are_those_of_kernels():
    split = WarpPartition(1, 1, 1, 1)
    layouts = (accumulator(ROWS, COLUMNS, split, TENSOR, LANES), operand_a(ROWS, DEPTH, split, TENSOR, LANES),
               operand_b(DEPTH, COLUMNS, split, TENSOR, LANES))  # fmt: skip
    for layout in layouts:
        matrix = np.arange(layout.shape[0] * layout.shape[1]).reshape(layout.shape)
        expected = np.zeros((LANES, layout.registers), int)
        expected[layout.thread_table[:, 0], layout.register_table] = matrix.reshape(-1)
        np.testing.assert_array_equal(held(matrix), expected)


@pytest.mark.parametrize(
    ("reported", "kernel_release", "found"),
    [("15.1", "24.1.0", (15, 1)), ("26.2", "25.2.0", (26, 2)), ("16.0", "25.2.0", (26, 2)), ("16.0", "25.0.0", (26, 0)),
     ("14", "23.0.0", (14,)), ("27.0.1", "26.0.0", (27, 0)), ("", "", ())],
)  # fmt: skip
def test_the_system(monkeypatch, reported, kernel_release, found):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: (reported, ("", "", ""), "arm64"))
    monkeypatch.setattr(versions.os, "uname", lambda: types.SimpleNamespace(release=kernel_release))
    assert versions.system_version() == found


def test_no_system_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert (versions.system_version(), versions.chip()) == ((), "")


@pytest.mark.parametrize(
    ("chip", "generation", "phone"),
    [("Apple M1", 13, False), ("Apple M3 Max", 15, False), ("Apple M5", 17, False), ("Apple M2 Ultra", 14, False),
     ("Apple A18 Pro", 17, True), ("Apple M1 (Virtual)", 0, False), ("Apple Paravirtual device", 0, False),
     ("", 0, False)],
)  # fmt: skip
def test_chips(chip, generation, phone):
    assert versions.machine_with(chip, (26, 2)) == versions.Machine((26, 2), generation, phone)


def test_without_a_name_of_the_gpu_the_chip_says_it(monkeypatch):
    monkeypatch.setattr(versions, "chip", lambda: "Apple M5 Max")
    silent = Torch(system=(26, 2))
    del silent.backends.mps.get_name
    assert machine_of("torch", silent, (26, 2)).generation == 17
    assert machine_of("mlx", types.SimpleNamespace(), (26, 2)).generation == 17
    old = types.SimpleNamespace(metal=types.SimpleNamespace(device_info=lambda: {"architecture": "applegpu_g14s"}))
    assert machine_of("mlx", old, (26, 2)).generation == 14


@pytest.mark.parametrize(
    ("chip", "system", "libraries_there", "family"),
    [("Apple M5", (26, 2), {"mlx": "0.32.4"}, "metal4"), ("Apple M5", (26, 1), {"mlx": "0.32.4"}, "metal3"),
     ("Apple M4 Max", (26, 4), {"mlx": "0.32.4"}, "metal3"), ("Apple M5", (26, 2), {"mlx": "0.29.3"}, "metal3"),
     ("Apple M5", (26, 2), {"mlx": "0.32.4", "torch": "2.10.0"}, "metal3"), ("Apple A18 Pro", (26, 2), {}, "metal3"),
     ("Apple M5", (27, 0), {"torch": "2.12.1", "mlx": "0.32.1"}, "metal4"), ("Apple M1", (14, 0), {}, "metal3")],
)  # fmt: skip
def test_auto_chooses_nothing_that_a_launch_would_refuse(monkeypatch, chip, system, libraries_there, family):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(versions, "system_version", lambda: system)
    monkeypatch.setattr(versions, "chip", lambda: chip)
    found = {k: (k, versions.version_of(v)) for k, v in libraries_there.items()}
    monkeypatch.setattr(target, "_installed", found.get)
    assert target.detect() == target.make_target(family)
