"""Exported kernels with tensor maps: fields in a file, maps made by each launch."""

import struct

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.abi.adapter import Location
from tile_core.errors import TileError
from tile_core.runtime import cache
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_runtime.files.artefact import from_bytes

from .fake import FakeDriver

TARGET = "cuda:sm_90a"
HERE = Location((2, 0), "some")


@T.prim_func
def moves(A: T.Tensor((T.dynamic("n"), T.dynamic("m")), "float16"),
          B: T.Tensor((T.dynamic("n"), T.dynamic("m")), "float16")):  # fmt: skip
    n, m = A.shape
    with T.Kernel(T.ceildiv(m, 64), T.ceildiv(n, 8), threads=64) as (x, y):
        S = T.alloc_shared((8, 64), "float16")
        T.tma_copy(A[y * 8, x * 64], S)
        T.tma_copy(S, B[y * 8, x * 64])


@T.prim_func
def leaves(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, T.dynamic("m")), "float16")):
    with T.Kernel(8, threads=64) as t:
        S = T.alloc_shared((8, 64), "float16")
        T.tma_copy(A[t * 8, 0], S)
        T.copy(S, B[t * 8, 0])


@T.prim_func
def rows(A: T.Tensor((64, 64), "float16"), B: T.Tensor((4, 64), "float16")):
    with T.Kernel(1, threads=64):
        S = T.alloc_shared((4, 64), "float16")
        T.tma_gather4(A, S, 0, (3, 60, 3, 70))
        T.copy(S, B)


@T.prim_func
def twice(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
    with T.Kernel(8, threads=64) as t:
        S = T.alloc_shared((8, 64), "float16")
        T.tma_copy(A[t * 8, 0], S)
        T.tma_copy(S, B[t * 8, 0])
    with T.Kernel(4, threads=64) as t:
        S = T.alloc_shared((16, 64), "float16")
        T.tma_copy(B[t * 16, 0], S)
        T.tma_copy(S, C[t * 16, 0])


def values(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype("float16")


def off(array, elements=1):
    """Return a copy whose address is not a multiple of 16."""
    memory = np.zeros(array.size + 8 + elements, array.dtype)
    begin = (-memory.ctypes.data // array.itemsize) % 8 + elements
    placed = memory[begin : begin + array.size].reshape(array.shape)
    placed[...] = array
    assert placed.ctypes.data % 16
    return placed


@pytest.fixture
def exported(tmp_path):
    def export(program, target=TARGET):
        return tile.compile(program, target, runtime="emulator").export(tmp_path / "kernel.tile")

    return export


def test_a_loaded_kernel_makes_maps_of_its_arguments(exported):
    kernel = tile.load(exported(moves), runtime="emulator")
    for n, m in ((8, 64), (17, 72), (1, 8), (64, 136), (0, 64)):
        a, b = values(n, m), np.full((n, m), 77, "float16")
        kernel(a, b)
        np.testing.assert_array_equal(b, a)


def test_rows_by_number(exported):
    a, b = values(64, 64), np.full((4, 64), 77, "float16")
    tile.load(exported(rows, "cuda:sm_100a"), runtime="emulator")(a, b)
    np.testing.assert_array_equal(b, np.stack([a[3], a[60], a[3], np.zeros(64, "float16")]))


def test_several_launches(exported):
    a, b, c = values(64, 64), np.zeros((64, 64), "float16"), np.zeros((64, 64), "float16")
    tile.load(exported(twice), runtime="emulator")(a, b, c)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(c, a)


def test_the_driver_makes_the_maps_of_a_file(exported):
    artefact = from_bytes(exported(moves).read_bytes(), "kernel.tile")
    driver = FakeDriver(parameters=4, maps=2)
    launch = CudaAdapter(make_target("sm_90a"), lambda: driver).load(artefact.text)
    assert artefact.hidden == ("n", "m")
    for given in ((4096, 8192, 17, 72), (4096, 8192, 17, 72), (4096, 12288, 17, 72), (4096, 8192, 16, 80)):
        launch(given, HERE)
        held = driver.launches[-1].values
        starts = [held.find(struct.pack("<QQ", address, given[2]), 24) for address in given[:2]]
        assert min(starts) >= 24
    made = [fields for call, *rest in driver.calls if call == "encode_map" for fields in rest]
    assert [(f.address, f.extents, f.strides, f.box) for f in made] == [
        (address, (m, n), (2 * m,), (64, 8))
        for address, n, m in ((4096, 17, 72), (8192, 17, 72), (12288, 17, 72), (4096, 16, 80), (8192, 16, 80))
    ]


@pytest.mark.parametrize("loaded", [False, True], ids=["compiled", "loaded"])
def test_arguments_without_a_map_are_refused_by_name(exported, loaded):
    kernel = (
        tile.load(exported(moves), runtime="emulator") if loaded else tile.compile(moves, TARGET, runtime="emulator")
    )
    a = values(16, 64)
    for wrong, right, named in (
        ((off(a), a.copy()), (a, a.copy()), "'A' is the address 0x"),
        ((a, off(a)), (a, a.copy()), "'B' is the address 0x"),
        ((values(16, 60), values(16, 60)), (values(16, 56), values(16, 56)), "'m' is 60"),
    ):
        with pytest.raises(TileError) as caught:
            kernel(*wrong)
        assert caught.value.code == "K435"
        assert named in str(caught.value)
        kernel(*right)
        np.testing.assert_array_equal(right[1], right[0])


@pytest.mark.parametrize("loaded", [False, True], ids=["compiled", "loaded"])
def test_only_demanded_assumptions_are_kept(exported, loaded):
    file = exported(leaves)
    kernel = tile.load(file, runtime="emulator") if loaded else tile.compile(leaves, TARGET, runtime="emulator")
    a = values(64, 64)
    for columns, elements in ((64, 1), (61, 0), (61, 3), (64, 4)):
        b = np.full((64, columns), 77, "float16")
        b = off(b, elements) if elements else b
        kernel(a, b)
        np.testing.assert_array_equal(b, a[:, :columns])
    with pytest.raises(TileError) as caught:
        kernel(off(a), np.zeros((64, 61), "float16"))
    assert caught.value.code == "K435"
    assert "'A' is the address" in str(caught.value)
    text = from_bytes(file.read_bytes(), file).text
    middle = text.general()
    assert middle.general is None
    assert [p.align for p in middle.facts.given[:2]] == [16, 0]
    assert "cp_async_bulk_tensor" in middle.text


def test_the_cache_keeps_the_texts_that_there_are(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    found = []
    for run in range(2):
        hits = cache.STATS.hits
        files = [tile.compile(p, TARGET).export(tmp_path / "kernel.tile").read_bytes() for p in (moves, leaves)]
        assert cache.STATS.hits - hits == 2 * run
        found.append(files)
    assert found[0] == found[1]
    assert from_bytes(found[1][0], "moves").text.general is None
    assert from_bytes(found[1][1], "leaves").text.general().general is None
