"""Exported kernels: written, read, refused; loaded where the compiler is not."""

import dataclasses
import json
import stat
import zipfile

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.artefacts import (
    ArtefactNotRunnable,
    CannotReadArtefact,
    CannotWriteArtefact,
    DamagedArtefact,
    MissingBackend,
    NewerArtefact,
    NotAnArtefact,
)
from tile_core.errors.launch import BadSetting, MissingArgument, NotProvided
from tile_core.errors.setup import UnknownRuntime
from tile_core.plugins import manager
from tile_core.runtime.export import ExportWarning
from tile_runtime.files import artefact as artefacts

LOAD = """
import sys
import numpy as np
import tile_core as tile
import tile_core.language as T

kernel = tile.load({path!r})
for n in (0, 1, 3, 4, 6, 8, 13):
    x = np.random.default_rng(n).standard_normal(n).astype("float32")
    np.testing.assert_array_equal(kernel(x), x * np.float32(2))
import text_backend
from tile_runtime.calls.arrays import device_text
assert device_text((2, 1)).endswith(":1")  # as the check of an array on a device does
assert not {{"tvm", "tvm_ffi", "torch", "tile_core.compiler"}} & set(sys.modules), sorted(sys.modules)
print(kernel, sorted(text_backend.COUNTS))
"""


@pytest.fixture
def kernel(toy, scaled):
    return tile.compile(scaled(), "toy:old", out_idx=-1)


@pytest.fixture
def file(kernel, tmp_path):
    return kernel.export(tmp_path / "scale.tile")


class TestRoundTrip:
    def test_it_loads_without_the_compiler(self, file, process):
        said = process(LOAD.format(path=str(file)), block=True)
        assert said.startswith("<tile.Kernel scale(A: float32(n,)) -> B: float32(n,) for toy:old>")
        assert said.endswith("['general', 'load']\n")  # nothing was built, and general forms were at hand

    def test_here(self, file, toy, kernel):
        toy.COUNTS.clear()
        loaded = tile.load(str(file))
        assert loaded.signature.params == kernel.signature.params
        assert loaded.source == kernel.source
        for n in (0, 4, 7):
            x = np.arange(n, dtype="float32")
            np.testing.assert_array_equal(loaded(x), 2 * x)
        assert "build" not in toy.COUNTS
        assert "passes" not in toy.COUNTS

    def test_it_checks_arguments_as_ever(self, file):
        with pytest.raises(MissingArgument):
            tile.load(file)()

    def test_hidden_symbols_and_facts_survive(self, kernel):
        from tile_core.abi.adapter import Built
        from tile_core.abi.kernel_text import KernelText

        text = KernelText("text", kernel_facts(kernel), None, Built("toy", "bin", bytes(range(256)), "a", {"x": 1.5}))
        general = KernelText("general", kernel_facts(kernel))
        made = artefacts.Artefact(kernel.signature, "toy:old", "toy", text, hidden=("n", "m"), versions={"a": "1"})
        read = artefacts.from_bytes(artefacts.to_bytes(made, [general]), "x")
        assert read.text == text
        assert read.text.built == text.built
        assert read.hidden == ("n", "m")
        assert read.text.general() == general
        assert read.text.general().general is None
        assert (read.signature, read.versions, read.has_general) == (kernel.signature, {"a": "1"}, True)

    def test_the_same_kernel_gives_the_same_bytes_and_no_machine_paths(self, scaled, kernel, tmp_path):
        again = tile.compile(scaled(), "toy:old", out_idx=-1)
        first, second = kernel.export(tmp_path / "1").read_bytes(), again.export(tmp_path / "2").read_bytes()
        assert first == second
        with zipfile.ZipFile(tmp_path / "1") as archive:
            facts = archive.read("tile.json").decode()
            assert "kept_kernels.py" in facts
            assert "/" not in json.loads(facts)["signature"]["where"][0]
            assert "tests" not in facts
            assert all(stat.S_IMODE(m.external_attr >> 16) == 0o644 for m in archive.infolist())

    def test_a_loaded_kernel_can_be_exported_again(self, file, tmp_path):
        assert tile.load(file).export(tmp_path / "copy").read_bytes() == file.read_bytes()

    def test_what_it_has_no_program_for(self, file):
        loaded = tile.load(file)
        for action in (loaded.verify, loaded.explain):
            with pytest.raises(NotProvided):
                action()

    def test_export_replaces_a_file(self, kernel, tmp_path):
        (tmp_path / "x").write_text("old")
        assert tile.load(kernel.export(tmp_path / "x"))


def kernel_facts(kernel):
    from tile_core.abi.descriptor import TensorDescriptor
    from tile_core.abi.kernel_text import LaunchFacts, ParamFact

    data = TensorDescriptor("A", "float32", (("ceildiv", "n", 2),), (1,), (32,), 0, 128, "nan", {"hint": 1})
    params = (
        ParamFact("A", "pointer", "float32", "read", 16),
        ParamFact("n", "scalar", "int32"),
        ParamFact("A_descriptor", "opaque", "", "read", 64, 128, data),
    )
    facts = LaunchFacts("main", params, (("ceildiv", "n", 128), 2, 1), (32, 1, 1), where=kernel.signature.where)
    return dataclasses.replace(facts, cluster=(1, 2, 1))


class TestExportRefusals:
    def test_code_that_calls_this_process_is_not_exported(self, tmp_path):
        @T.prim_func
        def printing(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                T.print(A[0])

        with pytest.raises(NotProvided, match=r"export.. is not available for target .*T.print") as caught:
            tile.compile(printing, "cpu").export(tmp_path / "x.tile")
        assert "emits text" in caught.value.help
        assert not (tmp_path / "x.tile").exists()

    @pytest.mark.parametrize("name", ["missing/x.tile", "."])
    def test_a_path_that_cannot_be_written(self, kernel, tmp_path, name):
        with pytest.raises(CannotWriteArtefact, match=r"S606"):
            kernel.export(tmp_path / name)
        assert not list(tmp_path.glob("making-*"))

    @pytest.mark.parametrize(("version", "reason"), [(None, "there is no toy compiler"), ("", "is not installed")])
    def test_without_the_toolchain_it_holds_text_and_says_so(self, scaled, toy, tmp_path, version, reason):
        with tile.disable_cache():
            kernel = tile.compile(scaled(), "toy:old", out_idx=-1)
        toy.VERSIONS["toolchain"] = version
        with pytest.warns(ExportWarning, match=rf"must be built where it is loaded: .*{reason}"):
            kernel.export(tmp_path / "x")
        assert artefacts.from_bytes((tmp_path / "x").read_bytes(), "x").text.built is None
        toy.VERSIONS["toolchain"] = "toy compiler 1"
        np.testing.assert_array_equal(tile.load(tmp_path / "x")(np.ones(5, "float32")), np.full(5, 2, "float32"))

    def test_what_is_built_already_needs_no_toolchain(self, scaled, toy, tmp_path, monkeypatch):
        monkeypatch.setattr(toy, "LESS", {})  # no general forms
        kernel = tile.compile(scaled(), "toy:old")
        toy.VERSIONS["toolchain"] = None
        kernel.export(tmp_path / "x")
        assert artefacts.from_bytes((tmp_path / "x").read_bytes(), "x").text.built is not None


class TestLoadRefusals:
    def test_no_path(self):
        with pytest.raises(BadSetting):
            tile.load(3)

    def test_no_file(self, tmp_path):
        with pytest.raises(CannotReadArtefact, match=r"S601.*No such file"):
            tile.load(tmp_path / "nothing.tile")

    @pytest.mark.parametrize("content", [b"", b"x", b"PK\x03\x04", bytes(1000), b"def kernel(): pass\n" * 20])
    def test_something_else(self, tmp_path, content):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(NotAnArtefact, match=r"S602"):
            tile.load(tmp_path / "x")

    @pytest.mark.parametrize("facts", ["[]", "{}", '{"kind": "wheel", "format": 1}', '{"kind": "tile kernel"}'])
    def test_another_archive(self, tmp_path, facts):
        with zipfile.ZipFile(tmp_path / "x", "w") as archive:
            archive.writestr("tile.json", facts)
        with pytest.raises(NotAnArtefact):
            tile.load(tmp_path / "x")

    def test_a_newer_format(self, kernel, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(artefacts, "FORMAT", 5)
            patch.setattr(artefacts, "__version__", "9.1")
            kernel.export(tmp_path / "x")
        with pytest.raises(NewerArtefact, match=r"S603.*format 4, written by tile-core 9.1") as caught:
            tile.load(tmp_path / "x")
        assert "at least 9.1" in caught.value.help

    @pytest.mark.parametrize("cut", [60, 300, -1, -40])
    def test_cut_short(self, file, cut):
        file.write_bytes(file.read_bytes()[:cut])
        with pytest.raises(DamagedArtefact, match=r"S604"):
            tile.load(file)

    def test_a_changed_member(self, file, tmp_path):
        with zipfile.ZipFile(file) as archive:
            members, comment = {n: archive.read(n) for n in archive.namelist()}, archive.comment
        members["kernel.bin"] += b"\n"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
            archive.comment = comment
        with pytest.raises(DamagedArtefact, match="checksum"):
            tile.load(file)

    @pytest.mark.parametrize("missing", ["signature", "parts", "hidden"])
    def test_facts_that_are_not_there(self, kernel, file, missing):
        with zipfile.ZipFile(file) as archive:
            members = {n: archive.read(n) for n in archive.namelist()}
        facts = json.loads(members["tile.json"])
        del facts[missing]
        members["tile.json"] = json.dumps(facts).encode()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
            archive.comment = artefacts._digest(members)
        with pytest.raises(DamagedArtefact, match=f"{missing} is missing"):
            tile.load(file)

    def test_no_backend(self, file, monkeypatch):
        monkeypatch.setattr(manager, "installed", lambda: manager.Plugins([]))
        with pytest.raises(MissingBackend, match=r"S605.*toy:old, whose backend 'toy'") as caught:
            tile.load(file)
        assert caught.value.help.startswith("install tile-toy; ")

    def test_another_device(self, scaled, tmp_path):
        kernel = tile.compile(scaled(), "toy:new")
        kernel.export(tmp_path / "x")
        with pytest.raises(ArtefactNotRunnable, match=r"U601.*its device is no new"):
            tile.load(tmp_path / "x")

    def test_no_such_runtime(self, file):
        with pytest.raises(UnknownRuntime):
            tile.load(file, runtime="abacus")
        with pytest.raises(BadSetting):
            tile.load(file, runtime=3)


def test_another_runtime_gets_the_text(file, monkeypatch, toy):
    """As the emulator does: it is found by name, ignores what others built, and takes no refusals of theirs."""
    from tile_core.runtime import export

    seen = []

    class Reader(toy.TextAdapter):
        name = "reader"

        def refuses(self, built):
            raise AssertionError("not its binary")

        def load(self, artefact):
            seen.append(artefact.text)
            names = {}
            exec(artefact.text, names)
            return names[artefact.facts.entry]

    find = export.find_runtime
    monkeypatch.setattr(export, "find_runtime", lambda p, t, name: Reader() if name == "reader" else find(p, t, name))
    loaded = tile.load(file, runtime="reader")
    assert loaded(np.ones(3, "float32")).tolist() == [2, 2, 2]
    assert seen == [loaded.source]
