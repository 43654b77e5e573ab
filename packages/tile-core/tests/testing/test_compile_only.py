"""The kit without launches: legal kernels are compiled, illegal ones refused, nothing runs."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tile_core.errors.launch import TextRefused
from tile_core.errors.setup import NoToolchain
from tile_core.plugins.manager import installed
from tile_core.testing.case import one, output, tensor
from tile_core.testing.data import numbers, values
from tile_core.testing.fuzz import WrongProgram, check_mutant, fuzz, main
from tile_core.testing.run import Session


def doubled(code="B[i] = A[i] * 2"):
    params = [tensor("A", "float32", 8), output("B", "float32", 8)]
    data = {"": lambda rng: {"A": numbers(rng, (8,), "float32")}}
    return one(
        "parallel", "d", params, f"for i in T.Parallel(8):\n    {code}", lambda d: values(d["A"], "float32"), data
    )


def outcome(unit, session):
    (case,) = unit.cases()
    return session.run(case)


@pytest.fixture
def text():
    return Session("cpu", "text")


def test_a_legal_kernel_is_compiled_and_not_run(text, monkeypatch):
    monkeypatch.setattr(text, "call", lambda *_: pytest.fail("it was launched"))
    assert outcome(doubled(), text).kind == "compiled"
    assert text.alive()


def test_a_legal_kernel_that_does_not_compile_is_wrong(text):
    found = outcome(doubled("B[i] = A[i, i]"), text)
    assert found.kind == "wrong"
    assert "a legal kernel was refused" in found.detail


def test_no_text_is_wrong(text, monkeypatch):
    monkeypatch.setattr("tile_core.compiler.source_text", lambda plan: "\n")
    assert "the backend generated no source code" in outcome(doubled(), text).detail


def test_building_needs_a_toolchain():
    with pytest.raises(NoToolchain) as caught:
        Session("cpu", "build")
    assert "none of its runtimes compiles source code" in caught.value.message
    assert "runtime `text`" in caught.value.help


def test_a_toolchain_builds_each_text(monkeypatch):
    built = []

    class Adapter:
        name = "made up"
        devices = frozenset({99})
        convention = "packed"

        def load(self, artefact):
            pytest.fail("it was loaded")

        def synchronize(self):
            pytest.fail("it was launched")

        def toolchain(self):
            return "cc 1"

        def build(self, artefact):
            built.append(artefact)

    monkeypatch.setattr(installed(), "runtimes", lambda target: (Adapter(),))
    assert outcome(doubled(), Session("cpu", "build")).kind == "compiled"
    assert len(built) == 1


def test_illegal_kernels_are_refused_by_their_code(text):
    unit = next(u for u in _units() if u.illegal)
    for case in unit.cases():
        assert text.run(case).kind == "refused"


def test_the_fuzzer_compiles_programs_mutants_and_expressions(monkeypatch):
    monkeypatch.setattr(Session, "call", lambda *_: pytest.fail("it was launched"))
    counts = fuzz(20, target="cpu", runtime="text", mutated=0.5, only="parameters", expressions=5)
    assert counts.total() == 25
    assert counts["compiled"] >= 15
    assert set(counts) <= {"compiled", "refused"}


def test_a_text_that_a_toolchain_refuses_is_no_refusal(monkeypatch):
    def refuse(program, *_):
        raise TextRefused(kernel=program.name, compiler="cc", part="line 1", reason="expected ;")

    monkeypatch.setattr("tile_core.testing.run.compile_only", refuse)
    with pytest.raises(WrongProgram, match=r"U406.*expected ;"):
        check_mutant(Session("cpu", "text"), doubled())


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("arguments", "code", "help"),
    [
        (["--runtime", "build"], "S205", "the runtime `text`"),
        (["--runtime", "nonsense"], "S202", "its runtimes are: host"),
        (["--target", "nonsense"], "S104", "one of the installed targets"),
        (["--option", "nonsense=1"], "S118", "options="),
    ],
)
def test_what_the_fuzzer_cannot_use_is_an_error_of_the_catalogue(capfd, arguments, code, help):
    assert main(["--count", "10", "--only", "parameters", *arguments]) == 2
    record = capfd.readouterr()
    assert record.err.startswith(f"[{code}] ")
    assert help in record.err
    assert "Traceback" not in record.err + record.out


@pytest.mark.sweep(1)
def test_the_report_has_a_column_for_it_and_junit_says_where(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "tile_core.testing"]
    options = ["--tile-backend", "cpu", "--tile-runtime", "text", "-k", "fill/", "--tile-part", "1/8"]
    junit = tmp_path / "kit.xml"
    done = subprocess.run([*command, *options, "--junitxml", junit], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "compiled" in done.stdout
    case = next(ET.parse(junit).iter("testcase"))
    record = {p.get("name"): p.get("value") for p in case.iter("property")}
    asked = ("cpu", "text", "compiled", "fill")  # what it means here, such as a processor, differs by machine
    assert tuple(record[f"tile_{name}"] for name in ("target", "runtime", "outcome", "op")) == asked


def _units():
    from tile_core.testing.tables import cases

    return {id(c.unit): c.unit for c in cases()}.values()
