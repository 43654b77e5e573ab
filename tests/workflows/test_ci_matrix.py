"""``tools/ci_matrix.py``: one job per target, runtime and Python version, from what backends declare."""

from __future__ import annotations

import json
import shlex

import ci_matrix
import pytest
from ci_matrix import Choice, EmptyMatrix, LargeMatrix, matrix, pythons_of

from tile_core.errors import SetupError
from tile_core.plugins.manager import installed


class Host:
    name = "host"
    devices = frozenset({1})
    launches = True

    def toolchain(self):
        return ""


class Driver:
    name = "driver"
    devices = frozenset({99})
    launches = True

    def __init__(self, toolchain=""):
        self._toolchain = toolchain

    def toolchain(self):
        if not self._toolchain:
            raise SetupError(message="it is not installed")
        return self._toolchain


class Plugins:
    """Two backends in memory: one with a device of its own, one on the host."""

    def __init__(self, toolchain="", architectures=("toy:a", "toy:b")):
        self._toolchain, self._architectures = toolchain, architectures

    def names(self):
        return ("toy", "plain")

    def targets(self):
        return [type("Info", (), {"name": n, "distribution": f"tile-{n}"})() for n in self.names()]

    def manifest(self, name):
        listed = self._architectures if name == "toy" else ()
        return type("Manifest", (), {"architectures": listed, "target_kinds": (name,)})()

    def resolve_target(self, text):
        kind = text.partition(":")[0]
        found = text if kind == "toy" else f"{text}:this-machine"
        return type("Target", (), {"text": found, "kind": kind, "backend": kind})()

    def runtimes(self, target):
        return (Driver(self._toolchain),) if target.kind == "toy" else (Host(),)

    def emulation(self, target):
        return None


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    monkeypatch.setattr(ci_matrix, "pythons_of", lambda distribution: ("3.10", "3.13"))


def rows(choice=None, **plugins):
    return [(r.target, r.runtime, r.python) for r in matrix(Plugins(**plugins), choice or Choice())]


def test_each_target_is_checked_in_each_python_by_what_needs_no_device():
    pythons = ("3.10", "3.13")
    texts = [(t, "text", p) for t in ("toy:a", "toy:b") for p in pythons]
    assert rows() == [*texts, *(("plain", "host", p) for p in pythons)]


def test_a_toolchain_that_is_installed_builds_the_texts():
    assert rows(Choice(pythons=("3.12",)), toolchain="cc 1") == [
        *((t, r, "3.12") for t in ("toy:a", "toy:b") for r in ("text", "build")),
        ("plain", "host", "3.12"),
    ]


def test_a_runtime_that_only_builds_gets_no_job_of_its_own(monkeypatch):
    monkeypatch.setattr(Host, "launches", False)
    assert {runtime for target, runtime, _ in rows() if target == "plain"} == {"text"}


def test_devices_are_asked_for():
    choice = Choice(targets=("toy:a",), pythons=("3.12",), devices=True)
    text, device = matrix(Plugins(), choice)
    assert (text.runtime, text.device, text.runs_on) == ("text", False, ("ubuntu-latest",))
    assert (device.runtime, device.device, device.runs_on) == ("driver", True, ("self-hosted", "toy"))


def test_a_machine_for_a_runtime_adds_its_jobs():
    choice = Choice(targets=("toy:a",), pythons=("3.12",), runners={"driver": "self-hosted,gpu"})
    assert [r.runs_on for r in matrix(Plugins(), choice)] == [("ubuntu-latest",), ("self-hosted", "gpu")]


def test_the_text_of_a_target_is_kept_where_it_means_another_machine():
    (row,) = matrix(Plugins(), Choice(targets=("plain",), pythons=("3.12",)))
    assert row.target == "plain"
    assert "--tile-backend plain " in row.kit


def test_commands_have_what_was_chosen():
    choice = Choice(targets=("plain",), pythons=("3.12",), part="3/8", seconds=5, jobs=4)
    (row,) = matrix(Plugins(), choice)
    assert row.name == "plain, host, Python 3.12"
    assert row.kit == (
        "python -m pytest -q --pyargs tile_core.testing --tile-backend plain --tile-runtime host --tile-part 3/8 "
        "-n 4 --dist loadgroup --junitxml tile-kit.xml"
    )
    assert row.fuzz == (
        "python -m tile_core.testing.fuzz --target plain --runtime host --count 1000000 --seconds 5 --limit 60 "
        "--jobs 4 --json tile-fuzz.json"
    )


def test_the_fuzzer_is_left_out_where_nothing_runs_or_where_it_is_asked_for():
    assert [bool(r.fuzz) for r in matrix(Plugins(), Choice(targets=("toy:a", "plain"), pythons=("3.12",)))] == [
        False,
        True,
    ]
    assert not any(r.fuzz for r in matrix(Plugins(), Choice(seconds=0)))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice(backends=("toi",)), "the matrix has no jobs: backend 'toi' is not one of plain, toy"),
        (Choice(runtimes=("hots",)), "the matrix has no jobs: runtime 'hots' is not one of driver, host, text"),
        (
            Choice(runners={"gpu": "x"}),
            "the matrix has no jobs: runtime 'gpu' is not one of driver, host, text",
        ),
        (
            Choice(runtimes=("driver",)),
            "the matrix has no jobs: runtime 'driver' is not one of the runtimes without a device",
        ),
    ],
)
def test_a_choice_that_leaves_nothing_is_refused(choice, message):
    with pytest.raises(EmptyMatrix) as caught:
        matrix(Plugins(), choice)
    assert caught.value.message == message


def test_a_matrix_that_no_service_takes_is_refused():
    with pytest.raises(LargeMatrix) as caught:
        rows(Choice(targets=("toy:a",), pythons=tuple(f"3.{n}" for n in range(300))))
    assert caught.value.message == "the matrix has 300 jobs; expected at most 256"
    assert "this one has: toy:a" in caught.value.help


def test_versions_come_from_classifiers(monkeypatch):
    monkeypatch.undo()
    versions = {"tile-core": ("3.10", "3.11", "3.12"), "tile-late": ("3.11", "3.12", "3.13"), "tile-silent": ()}
    monkeypatch.setattr(ci_matrix, "_classified", versions.__getitem__)
    assert pythons_of("tile-late") == ("3.11", "3.12")
    assert pythons_of("tile-silent") == ("3.10", "3.11", "3.12")


def test_classifiers_of_the_core_are_read(monkeypatch):
    monkeypatch.undo()
    assert {"3.10", "3.13"} <= set(pythons_of("tile-core"))
    assert pythons_of("no-such-distribution") == pythons_of("tile-core")


class TestCommand:
    def test_prints_one_line_of_json(self, tool):
        result = tool("ci_matrix", "--backend", "cpu", "--python", "3.10,3.13", "--seconds", "5")
        assert result.status == 0, result.err
        assert result.out.count("\n") == 1
        found = json.loads(result.out)["include"]
        assert [(r["target"], r["runtime"], r["python"]) for r in found] == [
            ("cpu", "host", v) for v in ("3.10", "3.13")
        ]
        assert found[0]["distribution"] == "tile-core"
        assert found[0]["runs_on"] == ["ubuntu-latest"]

    def test_values_may_be_repeated_or_separated_by_commas(self, tool):
        one = tool("ci_matrix", "--backend", "cpu", "--python", "3.10", "--python", "3.13")
        assert one.out == tool("ci_matrix", "--backend", "cpu", "--python", "3.10,3.13").out

    def test_commas_in_front_of_an_option_belong_to_the_target(self):
        assert ci_matrix._targets(["cpu", "toy:a,level=3,x=1,toy:b"]) == ["cpu", "toy:a,level=3,x=1", "toy:b"]

    def test_a_wrong_runner_is_refused(self, tool):
        result = tool("ci_matrix", "--runner", "gpu")
        assert result.status == 1
        assert "error[S308]: --runner 'gpu': expected name=value" in result.err
        assert "write for example --runner driver=self-hosted,gpu" in result.err

    def test_an_unknown_target_is_refused(self, tool):
        assert "error[S104]" in tool("ci_matrix", "--target", "nonsense").err

    def test_a_broken_backend_is_an_error_and_not_fewer_jobs(self, monkeypatch):
        plugins = installed()

        def broken(name):
            raise SetupError(message="it is broken")

        monkeypatch.setattr(plugins, "manifest", broken)
        with pytest.raises(SetupError, match="it is broken"):
            matrix(plugins, Choice(backends=("cpu",)))

    def test_commands_are_words_for_a_shell(self, tool):
        (row,) = json.loads(tool("ci_matrix", "--target", "cpu:znver4", "--python", "3.12").out)["include"]
        assert shlex.split(row["kit"])[:3] == ["python", "-m", "pytest"]
        assert "cpu:znver4" in shlex.split(row["fuzz"])
