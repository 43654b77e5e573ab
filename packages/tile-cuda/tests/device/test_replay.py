"""Recording without a device, and replays of right, wrong and failing devices."""

import ctypes
import fnmatch
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tile_core.testing.data import from_codes, stored
from tile_cuda import build
from tile_cuda_runtime.errors import NoNvrtc

from ..vectors.record import DriverError
from . import recording, replay, subset


class Machine:
    """Simulate a device: write expected outputs, then apply the test's faults."""

    def __init__(self, directory, spoil=None, error=""):
        self.directory, self.spoil, self.error = directory, spoil, error
        self.opened = ""

    def open(self, arch):
        self.opened = arch

    def replay(self, code, launch, before, fresh, guard):
        assert code[:4] == b"\x7fELF"
        if self.error:
            raise DriverError(self.error)
        after = {name: image.copy() for name, image in before.items()}
        for name in fresh:
            after[name][...] = 0xA5
        with np.load(self.directory / launch["data"]) as data:
            for wanted in launch["wanted"]:
                array = launch["arrays"][wanted["array"]]
                out = stored(data[wanted["key"]], array["dtype"]).view(array["storage"])
                replay._view(after[wanted["array"]], array, not guard)[...] = out
        if self.spoil is not None:
            self.spoil(after, launch)
        return after


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    try:
        build.toolchain()
    except NoNvrtc as error:
        pytest.skip(error.message)
    directory = tmp_path_factory.mktemp("recorded")
    only = ["copy/strided-columns-float32", "fill/float4_e2m1fn", "fill/float8_e5m2", "shapes/scalar-bfloat16"]
    only += ["pointers/copy-float16"]
    # In a process without threads: the recorder forks, and a fork keeps the locks of threads that it does not have.
    code = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import recording; "
        "sys.exit(recording.record(pathlib.Path(sys.argv[2]), sys.argv[3:], recording.Wish(launches=1)))"
    )
    here = str(Path(recording.__file__).parent)
    done = subprocess.run([sys.executable, "-c", code, here, str(directory), *only], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def run(directory, capsys, **how):
    code = replay.run(directory, Machine(directory, **how), [])
    return code, capsys.readouterr().out


class TestRuns:
    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("exact", [False, True])
    def test_right(self, recorded, capsys, exact):
        machine = Machine(recorded)
        assert replay.run(recorded, machine, [], exact=exact) == 0
        assert machine.opened == "sm_90a"
        assert capsys.readouterr().out.splitlines()[-2].split() == ["all", "ops", "5", "-", "-"]

    @pytest.mark.sweep(1)
    def test_some(self, recorded, capsys):
        assert replay.run(recorded, Machine(recorded), ["copy/*"]) == 0
        assert capsys.readouterr().out.splitlines()[-2].split() == ["all", "ops", "1", "-", "-"]

    @pytest.mark.sweep(0.25)
    def test_a_wrong_element(self, recorded, capsys):
        def spoil(after, launch):
            array = launch["arrays"][launch["wanted"][0]["array"]]
            after[launch["wanted"][0]["array"]][replay.GUARD + array["skew"] + array["first"]] ^= 1

        code, out = run(recorded, capsys, spoil=spoil)
        assert code == 1
        assert "elements are wrong, first at (0" in out

    @pytest.mark.parametrize("at", [0, -1])
    def test_a_guard(self, recorded, capsys, at):
        def spoil(after, launch):
            after[launch["wanted"][0]["array"]][at] ^= 1

        code, out = run(recorded, capsys, spoil=spoil)
        assert code == 1
        assert out.count("memory around it was written, 1 bytes") == 5

    def test_an_input(self, recorded, capsys):
        def spoil(after, launch):
            for name, array in launch["arrays"].items():
                if not array["out"]:
                    after[name][replay.GUARD + array["skew"]] ^= 1

        code, out = run(recorded, capsys, spoil=spoil)
        assert code == 1
        assert "an input or memory around it was written" in out

    def test_a_failure(self, recorded, capsys):
        code, out = run(recorded, capsys, error="cuCtxSynchronize: an illegal memory access (700)")
        assert code == 1
        assert out.count("illegal memory access") == 5


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e8m0fnu", "int4", "uint4", "float4_e2m1fn", "bool"]
)
def test_values_match_the_suite(recorded, dtype):
    from tile_core.dtypes import DTYPES
    from tile_core.testing.data import values

    kind = DTYPES[dtype]
    shape = (2, 129) if kind.bits <= 8 else (256, 256)
    codes = np.arange(np.prod(shape)).reshape(shape)
    array = from_codes(codes % 16 if kind.is_packed else codes % 2 ** min(16, kind.bits), dtype)
    plain = array.dtype.isbuiltin == 1
    facts = {"dtype": dtype, "packed": kind.is_packed}
    raw = array if plain else array.view(f"u{array.dtype.itemsize}")
    with np.load(recorded / replay.TABLES) as tables:
        found = replay.values_of(raw, facts, shape, dict(tables))
    np.testing.assert_array_equal(found, values(array, dtype, shape))


@pytest.mark.parametrize(
    ("found", "want", "rtol", "zeros", "good"),
    [
        (1.0, 1.0, 0, True, True),
        (np.nan, np.nan, 0, True, True),
        (np.nan, 1.0, 1, True, False),
        (1.0, np.nan, 1, True, False),
        (np.inf, np.inf, 0, True, True),
        (-np.inf, np.inf, 1, True, False),
        (-0.0, 0.0, 0, True, False),
        (-0.0, 0.0, 0, False, True),
        (1.01, 1.0, 0.1, True, True),
        (1.01, 1.0, 0, True, False),
        (1e300, np.inf, 1, True, False),
    ],
)
def test_comparison(found, want, rtol, zeros, good):
    wanted = {"rtol": rtol, "atol": 0.0, "zeros": zeros}
    assert (replay.different(np.array([found]), np.array([want]), wanted) == "") is good


def test_the_manifest(recorded):
    manifest = json.loads((recorded / replay.MANIFEST).read_text())
    assert manifest["target"] == "cuda:sm_90a"
    strided = next(x for x in manifest["launches"] if x["op"] == "copy")
    assert any(a["strides"] != [a["shape"][1] * 4, 4] for a in strided["arrays"].values())
    bytes_of = [p for x in manifest["launches"] if x["op"] == "shapes" for p in x["params"] if "bytes" in p]
    assert bytes_of


@pytest.mark.parametrize("guard", [0, replay.GUARD])
def test_tables_hold_the_addresses_of_a_replay(recorded, guard):
    """Find the unit's array at an address of a table in the kernel."""
    manifest = json.loads((recorded / replay.MANIFEST).read_text())
    arrays = next(x for x in manifest["launches"] if x["op"] == "pointers")
    with np.load(recorded / arrays["data"]) as data:
        images = {k: replay.image_of(data[k], v, exact=not guard) for k, v in arrays["arrays"].items()}
    memory = {name: image.ctypes.data for name, image in images.items()}
    replay.write_tables(images, arrays["arrays"], memory, guard)
    tables = {name: array for name, array in arrays["arrays"].items() if array["of"]}
    assert sorted(tables) == ["P", "Q", "R"]
    for name, table in tables.items():
        addresses = replay._view(images[name], table, not guard)
        for address, other in zip(addresses.tolist(), table["of"], strict=True):
            array = arrays["arrays"][other]
            found = ctypes.string_at(address, array["shape"][0] * 2)
            assert found == replay._view(images[other], array, not guard).tobytes()


def test_every_pattern_of_the_subset_names_a_unit():
    names = [f"{u.op}/{u.name}" for u in recording.units(["*"]) if not u.illegal]
    assert [p for p in subset.SUBSET if not fnmatch.filter(names, p)] == []


def test_a_kernel_that_does_not_compile_is_missing(tmp_path, capsys, monkeypatch):
    def fail(self, program):
        if self.prefix:
            raise RuntimeError("no")

    monkeypatch.setattr(recording.Recording, "compile", fail)
    assert recording.record(tmp_path, ["fill/float32"]) == 1
    assert "0 launches of 1 units" in capsys.readouterr().out
    missing = json.loads((tmp_path / replay.MANIFEST).read_text())["missing"]
    assert "fill/float32/zero: it did not compile: RuntimeError: no" in missing


def test_a_unit_that_takes_too_long_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(recording.Recording, "compile", lambda self, program: time.sleep(60 if self.prefix else 0))
    assert recording.record(tmp_path, ["fill/float32"], recording.Wish(seconds=0.2)) == 1
    assert json.loads((tmp_path / replay.MANIFEST).read_text())["missing"] == ["fill/float32: it took more than 0 s"]
