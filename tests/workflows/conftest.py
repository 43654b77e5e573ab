"""Running the tools of the workflows in this process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from ci_matrix import ci_matrix
from ci_summary import ci_summary
from command import run_command

TOOLS = {"ci_matrix": ci_matrix, "ci_summary": ci_summary}


@dataclasses.dataclass
class Result:
    status: int
    out: str
    err: str


@pytest.fixture
def tool(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a tool's command line; the texts are those of a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(name: str, *arguments: Any) -> Result:
        status = run_command(TOOLS[name], [str(a) for a in arguments])
        captured = capfd.readouterr()
        return Result(status, captured.out, captured.err)

    return call
