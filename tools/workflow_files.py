"""Reading the workflows of `.github/workflows`, and running the shell commands of their jobs here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repository import ROOT
from ruamel.yaml import YAML

FOLDER = ROOT / ".github" / "workflows"
MATRIX = FOLDER / "backend-matrix.yml"
OWN = FOLDER / "ci.yml"
REUSABLE = "./.github/workflows/backend-matrix.yml"

#: Steps that prepare a machine of the service; here the machine is prepared.
PREPARED = ("Get uv", "Prepare the machine", "What is here")


def load(text: str) -> dict[str, Any]:
    """Return a document; its ``on`` stays a text."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return found


def inputs_of(workflow: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reusable workflow's inputs with defaults; ``None`` for required ones."""
    declared = workflow["on"]["workflow_call"]["inputs"]
    return {name: None if about.get("required") else about["default"] for name, about in declared.items()}


def callers() -> dict[str, dict[str, Any]]:
    """Return the inputs of each of our jobs that calls the reusable workflow."""
    jobs = load(OWN.read_text(encoding="utf-8"))["jobs"]
    return {name: job["with"] for name, job in jobs.items() if job.get("uses") == REUSABLE}


class Job:
    """A job of the reusable workflow, as the service runs it for some inputs.

    Parameters
    ----------
    workflow, name
        Where it is.
    inputs
        The caller's, with the defaults of others.
    environment
        Variables of its machine.
    folder
        The checkout that it runs in.
    """

    def __init__(self, workflow: Mapping[str, Any], name: str, inputs: Mapping[str, Any],
                 environment: Mapping[str, str], folder: Path) -> None:  # fmt: skip
        self._job = workflow["jobs"][name]
        self._folder = folder
        self._values = {f"inputs.{key}": value for key, value in inputs.items()} | {"github.run_number": 17}
        self.output, self.summary = folder / "github-output", folder / "github-summary.md"
        for file in (self.output, self.summary):
            file.write_text("")
        declared = {**workflow["env"], **self._job.get("env", {})}
        variables = {key: self._filled(str(value)) for key, value in declared.items()}
        files = {"GITHUB_OUTPUT": str(self.output), "GITHUB_STEP_SUMMARY": str(self.summary)}
        self._environment = {**environment, **variables, **files}

    def run(self, row: Mapping[str, Any] | None = None, but: tuple[str, ...] = ()) -> list[str]:
        """Run the command steps in order, as the service does; return their names."""
        self._values |= {f"matrix.{key}": value for key, value in (row or {}).items()}
        done = []
        for step in self._job["steps"]:
            if "run" not in step or step["name"] in (*PREPARED, *but) or not self._wanted(step):
                continue
            self._shell(step["name"], self._filled(step["run"]))
            done.append(step["name"])
        return done

    def _wanted(self, step: Mapping[str, Any]) -> bool:
        return "matrix.fuzz != ''" not in step.get("if", "") or bool(self._values["matrix.fuzz"])

    def _shell(self, name: str, command: str) -> None:
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{name}:\n{command}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: str(self._values[found[1]]), text)
