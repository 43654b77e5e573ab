"""The workflows' job commands run, with a small suite and seconds of fuzzing.

Each caller of the reusable workflow gets a checkout and a fresh environment. Its steps are executed in the order of the
workflow: packages are installed from their folders, `ci_matrix.py` lists the jobs, the commands of every job run, and
`ci_summary.py` writes the table and the badge.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from distribution import Environment, locked
from repository import ROOT
from workflow_files import MATRIX, Job, callers, inputs_of, load

pytestmark = pytest.mark.registry

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

#: One of very many parts, so that a job takes seconds; one target of several, in this Python.
CHEAP = {"parts": 400, "seconds": 2, "python": HERE}

#: Callers whose jobs run where no device is.
HOSTED = [name for name, given in callers().items() if "runners" not in given]

#: Where a device in software is found, which some callers' jobs need.
NEEDS = {"opencl": "/etc/OpenCL/vendors"}

#: Compilers that the step "Prepare the machine" installs, without which nothing is built.
COMPILERS = {"rocm": "clang-19"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the packages, where commands may write, and of the tools."""
    ignored = shutil.ignore_patterns("__pycache__", ".venv", "golden")
    for name in ("packages", "tests/plugins"):
        shutil.copytree(ROOT / name, tmp_path / "checkout" / name, ignore=ignored)
    shutil.copytree(ROOT / "tools", tmp_path / "checkout" / ".tile" / "tools", ignore=ignored)
    return tmp_path / "checkout"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Variables of a machine with a fresh Python, which installs the tested versions."""
    env = Environment(tmp_path / "env")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(locked()), encoding="utf-8")
    return {**env.variables(), "UV_CONSTRAINT": str(constraints)}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("caller", [pytest.param(c, marks=pytest.mark.xdist_group(c)) for c in HOSTED])
def test_the_jobs_of(caller: str, checkout: Path, machine: dict[str, str]) -> None:
    if caller in NEEDS and not any(Path(NEEDS[caller]).glob("*.icd")):
        pytest.skip(f"{caller} needs a driver in {NEEDS[caller]}")
    workflow, given = load(MATRIX.read_text(encoding="utf-8")), callers()[caller]
    inputs = {**inputs_of(workflow), **given, **CHEAP, "target": given.get("target", "").partition(",")[0]}
    if caller in COMPILERS and shutil.which(COMPILERS[caller]) is None:
        inputs["runtime"] = inputs["runtime"].replace("build,", "")
    rows = _matrix(workflow, inputs, machine, checkout)
    assert {row["target"] for row in rows} == {inputs["target"] or rows[0]["target"]}
    if inputs["runtime"]:
        assert {row["runtime"] for row in rows} == set(inputs["runtime"].split(","))
    for number, row in enumerate(rows):
        assert row["python"] == HERE
        assert row["runs_on"] == ["ubuntu-latest"]
        job = Job(workflow, "check", inputs, machine, checkout)
        done = job.run(row, but=("Install",))  # installed by the first job, in the same environment
        assert done == ["Conformance kit", *(["Fuzzer"] if row["fuzz"] else []), "Summary"]
        summary = job.summary.read_text(encoding="utf-8")
        assert summary.count("\n| ✓ |") == 1, summary
        _keep_reports(checkout, checkout / f"tile-report-{number}")
    (checkout / "tile-report-matrix").mkdir()
    (checkout / "matrix.json").rename(checkout / "tile-report-matrix" / "matrix.json")
    job = Job(workflow, "summary", inputs, machine, checkout)
    assert job.run(but=("Install",)) == ["Summary of all jobs"]
    assert job.summary.read_text(encoding="utf-8").count("\n| ✓ |") == len(rows)
    badge = json.loads((checkout / "badge.json").read_text(encoding="utf-8"))
    assert (badge["label"], badge["color"]) == (given["label"], "brightgreen")


def _matrix(workflow: dict, inputs: dict, machine: dict[str, str], checkout: Path) -> list[dict]:
    job = Job(workflow, "matrix", inputs, machine, checkout)
    assert job.run() == ["Install", "List the jobs"]
    name, _, value = job.output.read_text(encoding="utf-8").strip().partition("=")
    assert name == "matrix"
    rows: list[dict] = json.loads(value)["include"]
    return rows


def _keep_reports(checkout: Path, folder: Path) -> None:
    """Do what uploading and downloading the reports of a job does."""
    folder.mkdir()
    for name in ("tile-kit.xml", "tile-fuzz.json"):
        if (checkout / name).is_file():
            (checkout / name).rename(folder / name)
