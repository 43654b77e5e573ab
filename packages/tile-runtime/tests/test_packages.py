"""Packages of kernels: the build for a call's shapes, refusals, fallbacks; as wheels and as operators of torch."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import sys
import zipfile
from base64 import urlsafe_b64decode

import numpy as np
import pytest
import runtime_kernels as kernels

import tile_core.language as T
from tile_core.cli.app import run
from tile_core.errors.cli import BadPackage
from tile_core.wheels import KernelWheel, PackagedBuild
from tile_runtime.cpu import processor
from tile_runtime.errors.artefacts import ArtefactNotRunnable, MissingBackend, NewerArtefact, ShapeNotBuilt
from tile_runtime.errors.launch import DTypeMismatch, MissingArgument

SHAPES = ((40, 70), (37, 33))


def doubled(a, s):
    """Return what the fallback does, which the kernels do not."""
    return -2 * a * np.float32(s)


def builds(*targets):
    sizes = (*SHAPES, (T.dynamic("m"), 64))
    return [PackagedBuild("scale", kernels.scale(*size), target, -1) for size in sizes for target in targets]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return KernelWheel("test-kernels", "1.2", builds("cpu:x86-64-v4", "cpu:x86-64-v2")).write(folder)


@pytest.fixture
def package(wheel, tmp_path, monkeypatch):
    """A function that imports the wheel's package anew."""

    def imported(change=lambda folder: None):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path)
        change(tmp_path / "test_kernels" / "kernels")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "test_kernels", raising=False)
        return importlib.import_module("test_kernels")

    return imported


def array(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


class TestCalls:
    @pytest.mark.parametrize("shape", [*SHAPES, (1, 64), (129, 64)])
    def test_the_build_for_the_shapes_runs(self, package, shape):
        a = array(*shape)
        scale = package().scale
        np.testing.assert_array_equal(scale(a, 3.0), a * np.float32(3))
        np.testing.assert_array_equal(scale(A=a, s=0.5), a * np.float32(0.5))

    def test_the_first_target_that_this_machine_runs(self, package, monkeypatch):
        monkeypatch.setattr(processor, "lacking", lambda needed: [])
        scale = package().scale
        scale._load = lambda build, device: (build.target == "cpu:x86-64-v4" and "no") or (lambda *args: build.target)
        assert scale(array(40, 70), 1.0) == "cpu:x86-64-v2"
        assert repr(scale) == "<test_kernels.scale: 6 builds for cpu:x86-64-v4, cpu:x86-64-v2>"

    def test_shapes_without_a_build_are_refused(self, package):
        with pytest.raises(ShapeNotBuilt) as caught:
            package().scale(array(37, 34), 1.0)
        assert str(caught.value).startswith(
            "[U602] scale: the package test_kernels was not built for arrays of (37, 34)"
        )
        assert "the nearest are: (37, 33); " in caught.value.help

    def test_shapes_without_a_build_go_to_the_fallback(self, package):
        def change(folder):
            index = json.loads((folder / "index.json").read_text())
            index["kernels"]["scale"]["fallback"] = f"{__name__}:doubled"
            (folder / "index.json").write_text(json.dumps(index))

        sys.modules.setdefault(__name__, sys.modules[doubled.__module__])
        a, scale = array(5, 5), package(change).scale
        np.testing.assert_array_equal(scale(a, 2.0), -4 * a)
        np.testing.assert_array_equal(scale(array(40, 70), 2.0), array(40, 70) * 2)

    def test_a_processor_that_no_build_is_for(self, package, monkeypatch):
        monkeypatch.setattr(processor, "_features", frozenset)
        with pytest.raises(ArtefactNotRunnable, match=r"U601.*cpu:x86-64-v4: its processor may lack .*cpu:x86-64-v2: "):
            package().scale(array(40, 70), 1.0)

    @pytest.mark.parametrize("absent", [2, 1])
    def test_a_backend_that_is_not_installed(self, package, absent):
        """It is named with a remedy if no other build is left, and among the reasons otherwise."""

        def change(folder):
            index = json.loads((folder / "index.json").read_text())
            for build in index["kernels"]["scale"]["builds"]:
                if absent == 2 or build["target"] == "cpu:x86-64-v4":
                    build.update(target="absent:a1", backend="absent", package="tile-absent")
            (folder / "index.json").write_text(json.dumps(index))

        a, scale = array(40, 70), package(change).scale
        if absent == 1:
            np.testing.assert_array_equal(scale(a, 2.0), a * 2)
            return
        with pytest.raises(MissingBackend) as caught:
            scale(a, 1.0)
        assert str(caught.value).startswith(
            "[S605] test_kernels holds a kernel for absent:a1, whose backend 'absent' is not installed"
        )
        assert "pip install packages/tile-absent in a checkout of tile" in caught.value.help

    def test_arguments_are_checked(self, package):
        scale = package().scale
        with pytest.raises(DTypeMismatch, match="K411"):
            scale(array(40, 70).astype("float64"), 1.0)
        with pytest.raises(MissingArgument, match="K401"):
            scale(array(40, 70))

    def test_a_package_of_a_newer_version(self, package):
        def change(folder):
            index = json.loads((folder / "index.json").read_text())
            (folder / "index.json").write_text(json.dumps(index | {"format": 99, "version": "9.1"}))

        with pytest.raises(NewerArtefact, match=r"S603.*test_kernels has format 99, written by tile-core 9\.1"):
            package(change)


class TestWheel:
    def test_it_is_the_same_each_time(self, wheel, tmp_path):
        again = KernelWheel("test-kernels", "1.2", builds("cpu:x86-64-v4", "cpu:x86-64-v2")).write(tmp_path)
        assert again.name == wheel.name
        assert again.read_bytes() == wheel.read_bytes()

    def test_its_record_is_complete(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            info = "test_kernels-1.2.dist-info"
            rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))}
            assert sorted(rows) == sorted(archive.namelist())
            for name in archive.namelist():
                if not name.endswith("RECORD"):
                    kind, _, digest = rows[name][0].partition("=")
                    assert kind == "sha256"
                    assert urlsafe_b64decode(digest + "=") == hashlib.sha256(archive.read(name)).digest()
            metadata = archive.read(f"{info}/METADATA").decode()
        assert [line for line in metadata.splitlines() if "Requires-Dist" in line] == [
            "Requires-Dist: tile-runtime>=0.1.0,<0.2"
        ]

    @pytest.mark.parametrize(("name", "version", "what"), [("a b", "1", "name"), ("ab", "new", "version")])
    def test_wrong_names(self, name, version, what):
        with pytest.raises(BadPackage, match=rf"S330.*is not the {what} of a package"):
            KernelWheel(name, version, [])

    def test_the_command(self, tmp_path, capsys):
        file = tmp_path / "kernel_file.py"
        file.write_text(
            "import tile_core.language as T\n\n\ndef copy(M, block=32):\n    @T.prim_func\n"
            "    def main(A: T.Tensor((M,), 'float32'), B: T.Tensor((M,), 'float32')):\n"
            "        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:\n"
            "            for i in T.Parallel(block):\n                B[bx * block + i] = A[bx * block + i]\n\n"
            "    return main\n"
        )
        command = ["build-package", f"{file}:copy", "--name", "my.kernels", "--shape", "M=33", "--shape", "M=m"]
        assert run([*command, "--arg", "block=16", "--out-idx", "-1", "-o", str(tmp_path)]) == 0
        assert "my_kernels-0.1.0-py3-none-" in capsys.readouterr().out
        (wheel,) = tmp_path.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            index = json.loads(archive.read("my_kernels/kernels/index.json"))
        shapes = [b["signature"]["params"][0]["shape"] for b in index["kernels"]["copy"]["builds"]]
        assert shapes == [[33], ["m"]]


def test_operators_of_torch(package):
    torch = pytest.importorskip("torch")
    module = package()
    module.register_torch()
    module.register_torch()
    for shape in (*SHAPES, (3, 64)):
        a = torch.randn(shape)
        assert torch.equal(torch.ops.test_kernels.scale(a, 0.5), a * 0.5)
    a = torch.randn(37, 33)
    torch.library.opcheck(torch.ops.test_kernels.scale.default, (a, 2.0), test_utils=("test_schema", "test_faketensor"))
    compiled = torch.compile(lambda x: torch.ops.test_kernels.scale(x + 1, 2.0) - 1, fullgraph=True, backend="eager")
    assert torch.equal(compiled(a), (a + 1) * 2 - 1)
    with pytest.raises(ShapeNotBuilt):
        torch.ops.test_kernels.scale(torch.randn(3, 3), 1.0)
