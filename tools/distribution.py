"""Build the packages as they are published, and install them into environments of their own.

Shared by the tests in tests/packaging and by tools/packaging_report.py. Everything is done with uv: it builds a wheel
in seconds, and links files of installed packages from its cache, so that an environment with TVM takes one second and
no space. Third-party packages come from the index that uv is configured with, at the versions of requirements.lock.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from repository import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORE = "tile-core"

#: Third-party packages beside the published ones, as far as the core can distinguish.
OUTSIDE = ("toyc", "tile-opencl")


@dataclass(frozen=True)
class Built:
    """A package's files as they would be published, and its directly built wheel.

    Attributes
    ----------
    name, version
        Of the distribution.
    sdist, wheel
        The wheel is made from the sdist, as an index's users may do.
    direct
        The wheel made from the folder.
    """

    name: str
    version: str
    sdist: Path
    wheel: Path
    direct: Path


class Environment:
    """A virtual environment with packages from wheels, none of them editable.

    Parameters
    ----------
    folder
        Where to create it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run_uv("venv", "--quiet", "--python", sys.executable, str(folder))

    @property
    def python(self) -> Path:
        """Its interpreter."""
        windows = self.folder / "Scripts" / "python.exe"
        return windows if windows.exists() else self.folder / "bin" / "python"

    def install(self, *requirements: str | Path, links: Path, check: bool = True, dependencies: bool = True) -> str:
        """Install packages, ours from the folder ``links``, and return the installer's output.

        Parameters
        ----------
        *requirements
            Requirements or wheels.
        links
            The folder with our wheels.
        check
            Whether a failure is an error; without it, the caller reads the output.
        dependencies
            Whether to install what they require.
        """
        constraints = self.folder / "constraints.txt"
        constraints.write_text("\n".join(locked()), encoding="utf-8")
        options: list[str | Path] = [
            "--find-links",
            links,
            "--constraints",
            constraints,
            *([] if dependencies else ["--no-deps"]),
        ]
        # A wheel with the name of one that was installed before may hold other files.
        options += [text for wheel in links.glob("*.whl") for text in ("--refresh-package", _normal(wheel.name))]
        return run_uv("pip", "install", "--python", self.python, *options, *requirements, check=check)

    def run(self, *arguments: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run its Python with arguments, isolated from the repository and from this process's settings."""
        return subprocess.run(
            [self.python, "-P" if sys.version_info >= (3, 11) else "-s", *arguments],
            cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def tile(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run its command ``tile``."""
        program = self.python.with_name("tile.exe" if os.name == "nt" else "tile")
        return subprocess.run(
            [program, *arguments],
            cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def variables(self) -> dict[str, str]:
        """Return its processes' environment variables: own programs first, own cache."""
        path = os.pathsep.join([str(self.python.parent), os.environ.get("PATH", "")])
        return {**plain_environment(), "PATH": path, "TILE_CACHE_DIR": str(self.folder / "cache")}

    def weights(self) -> dict[str, int]:
        """Bytes of each installed distribution, by name: the files that its installer recorded."""
        done = self.run("-c", _WEIGHTS)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found: dict[str, int] = json.loads(done.stdout)
        return dict(sorted(found.items()))


def folders() -> dict[str, Path]:
    """Return the folders of the packages that are published, by name, the core first."""
    found = {name_of(path.parent): path.parent for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}
    return {CORE: found.pop(CORE), **found}


def outside() -> dict[str, Path]:
    """Return the folders of the plugins that stand for other people's packages, by name."""
    paths = [ROOT / "tests" / "plugins" / name for name in OUTSIDE]
    return {name_of(path): path for path in paths if (path / "pyproject.toml").is_file()}


def combinations() -> dict[str, tuple[str, ...]]:
    """Return which packages are installed together, by what that is called.

    tile-jax and tile-torch are in none: CI tests them with their libraries, in environments of their own. The runtimes
    are where other packages require them.
    """
    apart = ("tile-cuda-runtime", "tile-jax", "tile-runtime", "tile-torch")
    published = tuple(name for name in folders() if name not in apart)
    backends = [name for name in published if name not in (CORE, "tile-emulator", "tile-tilelang")]
    return {
        "core alone": (CORE,),
        **{f"core + {name.removeprefix('tile-')}": (CORE, name) for name in backends},
        "all": published,
        **{f"all + {name.removeprefix('tile-')}": (*published, name) for name in outside()},
    }


def build(folder: Path, out: Path) -> Built:
    """Build a package's sdist, a wheel from that, and a wheel from the folder.

    Parameters
    ----------
    folder
        Where its ``pyproject.toml`` is. Nothing is written there.
    out
        The folder for sdist and wheel; the other wheel goes to ``out/direct``.
    """
    run_uv("build", "--quiet", "--build-constraints", build_constraints(out), "--out-dir", out, folder)
    run_uv(
        "build",
        "--quiet",
        "--build-constraints",
        build_constraints(out),
        "--wheel",
        "--out-dir",
        out / "direct",
        folder,
    )
    project = project_of(folder)
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    wheel = f"{stem}-py3-none-any.whl"
    return Built(project["name"], project["version"], out / f"{stem}.tar.gz", out / wheel, out / "direct" / wheel)


def copy_with(folder: Path, scratch: Path, changes: Mapping[str, Mapping[str, str]]) -> Path:
    """Copy a package's folder and replace texts in it.

    The replacements map file -> old text -> new text.

    Raises
    ------
    ValueError
        A text to replace is not there.
    """
    target = scratch / folder.name
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for name, texts in changes.items():
        text = (target / name).read_text(encoding="utf-8")
        for old, new in texts.items():
            if old not in text:
                raise ValueError(f"{name} of {folder.name} has no {old!r}")
            text = text.replace(old, new)
        (target / name).write_text(text, encoding="utf-8")
    return target


def project_of(folder: Path) -> dict[str, str]:
    """Return the table ``project`` of a package."""
    project: dict[str, str] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def name_of(folder: Path) -> str:
    """Return the name of a folder's distribution."""
    return project_of(folder)["name"]


def locked() -> list[str]:
    """Return the versions of third-party packages that the project is tested with, as constraints."""
    found: list[str] = _workspace()["constraint-dependencies"]
    return found


def build_constraints(out: Path) -> Path:
    """Write the versions that packages are built with to a file, and return it."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "build-constraints.txt"
    path.write_text("\n".join(_workspace()["build-constraint-dependencies"]), encoding="utf-8")
    return path


def run_uv(*arguments: str | Path, check: bool = True) -> str:
    """Run uv and return its output.

    Raises
    ------
    RuntimeError
        It failed, or is not there.
    """
    program = shutil.which("uv")
    if program is None:
        raise RuntimeError("uv is not on PATH: pip install uv")
    # Run from elsewhere, or it would read the workspace's own settings.
    done = subprocess.run(
        [program, *map(str, arguments)],
        cwd=tempfile.gettempdir(), env=plain_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if check and done.returncode:
        raise RuntimeError(f"uv {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout + done.stderr


def plain_environment() -> dict[str, str]:
    """Return the environment variables of this process without those of the repository and the terminal."""
    ours = ("PYTHON", "TILE_", "VIRTUAL_ENV", "PYTEST", "GITHUB_", "SWEEP_", "COLUMNS", "LINES")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def readme_kernel() -> str:
    """Return the program that README shows, from its import to its last line."""
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## How fast")[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))


def total(weights: Mapping[str, int], names: Iterable[str] | None = None) -> int:
    """Return the bytes of these distributions, or of all."""
    return sum(weights.values() if names is None else (weights[name] for name in names))


def _workspace() -> dict[str, list[str]]:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = tables["tool"]["uv"]
    return found


def _normal(wheel: str) -> str:
    return wheel.partition("-")[0].replace("_", "-")


_WEIGHTS = """
import importlib.metadata, json, re
def size(dist):
    paths = [f.locate() for f in dist.files or () if not str(f).endswith(".pyc")]
    return sum(p.stat().st_size for p in paths if p.is_file())
name = lambda d: re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower()
print(json.dumps({name(d): size(d) for d in importlib.metadata.distributions()}))
"""

__all__: Sequence[str] = (
    "CORE", "Built", "Environment", "build", "combinations", "copy_with", "folders", "outside", "project_of",
    "readme_kernel", "total",
)  # fmt: skip
