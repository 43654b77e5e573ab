"""The workflows: valid by their schema, safe, and complete. Their commands are executed by test_commands.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from distribution import CORE, folders, name_of
from repository import ROOT
from workflow_files import FOLDER, MATRIX, OWN, REUSABLE, callers, inputs_of, load

FILES = sorted(FOLDER.glob("*.yml"))


def check_schema(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def installed_by(given: dict[str, str]) -> list[str]:
    """Return the folders that a call installs, without their extras."""
    return [path.partition("[")[0] for path in given["install"].split()]


def test_they_are_valid_by_the_schema_of_workflows() -> None:
    done = check_schema(*FILES)
    assert done.returncode == 0, done.stdout


def test_the_check_can_fail(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(MATRIX.read_text(encoding="utf-8").replace("runs-on: ubuntu-latest", "runson: ubuntu-latest"))
    assert check_schema(wrong).returncode == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
class TestEach:
    def test_may_only_read(self, path: Path) -> None:
        assert load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}

    def test_takes_actions_at_a_major_version(self, path: Path) -> None:
        used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
        others = [name for name in used if name != REUSABLE]
        assert [name for name in others if not re.fullmatch(r"actions/[a-z-]+@v\d+", name)] == []

    def test_puts_no_foreign_text_into_a_command(self, path: Path) -> None:
        """Texts reach a shell by environment; matrix commands are words quoted by `tile`."""
        for job in load(path.read_text(encoding="utf-8"))["jobs"].values():
            for step in job.get("steps", ()):
                found = re.findall(r"\$\{\{\s*(.*?)\s*\}\}", step.get("run", ""))
                assert set(found) <= {"matrix.kit", "matrix.fuzz"}

    def test_every_command_has_a_name(self, path: Path) -> None:
        for job in load(path.read_text(encoding="utf-8"))["jobs"].values():
            assert all("name" in step for step in job.get("steps", ()) if "run" in step)


class TestOwn:
    def test_calls_give_inputs_that_exist(self) -> None:
        known = inputs_of(load(MATRIX.read_text(encoding="utf-8")))
        for name, given in callers().items():
            assert set(given) <= set(known), name
            assert {key for key, default in known.items() if default is None} <= set(given), name

    def test_every_package_is_checked(self) -> None:
        paths = [path for given in callers().values() for path in installed_by(given)]
        assert [path for path in paths if not (ROOT / path / "pyproject.toml").is_file()] == []
        names = {name_of(ROOT / path) for path in paths}
        # These are no backends. Their tests need a library, and run in environments of their own (.ci/run).
        assert names == {*folders(), "tile-opencl"} - {"tile-jax", "tile-torch"}
        assert all(CORE in {name_of(ROOT / p) for p in installed_by(given)} for given in callers().values())

    def test_devices_wait_to_be_asked(self) -> None:
        jobs = load(OWN.read_text(encoding="utf-8"))["jobs"]
        assert {name for name in callers() if "runners" in jobs[name]["with"]} == {"cuda-device", "metal-device"}
        assert all(jobs[name]["if"] == "inputs.devices" for name in ("cuda-device", "metal-device"))
        assert all("self-hosted" in given["runners"] for given in callers().values() if "runners" in given)

    def test_all_of_ci_runs(self) -> None:
        steps = load(OWN.read_text(encoding="utf-8"))["jobs"]["everything"]["steps"]
        assert steps[-1]["run"] == "bash .ci/run"

    def test_tests_that_it_names_exist(self) -> None:
        text = OWN.read_text(encoding="utf-8")
        assert [path for path in re.findall(r"\S+/test_\w+\.py", text) if not (ROOT / path).is_file()] == []


class TestPage:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

    def test_its_six_lines_are_a_workflow(self, tmp_path: Path) -> None:
        (block,) = re.findall(r"^```yaml\n(.*?)^```", self.page, re.MULTILINE | re.DOTALL)
        assert len(block.splitlines()) == 6
        path = tmp_path / "tile.yml"
        path.write_text(block, encoding="utf-8")
        done = check_schema(path)
        assert done.returncode == 0, done.stdout
        job = load(block)["jobs"]["tile"]
        assert job["uses"].startswith("OWNER/tile/.github/workflows/backend-matrix.yml@")
        assert set(job["with"]) <= set(inputs_of(load(MATRIX.read_text(encoding="utf-8"))))

    def test_its_table_has_every_input_with_its_default(self) -> None:
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", self.page, re.MULTILINE))
        known = inputs_of(load(MATRIX.read_text(encoding="utf-8")))
        assert list(rows) == list(known)
        for name, default in known.items():
            assert not default or rows[name] == f"`{default}`"
