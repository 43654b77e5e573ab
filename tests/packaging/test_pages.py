"""Pages that create a package, followed exactly: with wheels, pip, and bash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from distribution import CORE, Environment
from plugin_site import Page

pytestmark = pytest.mark.registry

#: What the reader of a page has installed, and what its last command must print.
PAGES = {"backends.md": (f"{CORE}[testing]", "tile-emulator"), "opencl-backend.md": (f"{CORE}[testing]",)}

_COMMAND = re.compile(r"<!-- page: (?:install|run) -->\n```bash\n(.*?)\n```", re.DOTALL)
_DRIVERS = Path("/etc/OpenCL/vendors")


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in PAGES])
def test_a_reader_who_does_what_it_says(name: str, built, wheels: Path, tmp_path: Path) -> None:
    if "opencl" in name and not any(_DRIVERS.glob("*.icd")):
        pytest.skip(f"there is no OpenCL driver in {_DRIVERS}")
    page, folder = Page(name), tmp_path / "empty"
    env = Environment(tmp_path / "env")
    env.install("pip", *PAGES[name], links=wheels)
    for path, text in page.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    commands = _COMMAND.findall(page.text)
    assert len(commands) > len(page.commands) >= 2
    constraints = {"PIP_CONSTRAINT": str(env.folder / "constraints.txt")}
    for command in commands:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder, env={**env.variables(), **constraints}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    assert re.search(r"^all ops +\d+ +\S+ +\S+ +-$", done.stdout, re.MULTILINE), done.stdout
