"""The packages, built once for this folder's tests, and an environment per combination."""

from __future__ import annotations

from pathlib import Path

import pytest
from distribution import Built, Environment, build, combinations, folders, outside


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdists and wheels of all packages."""
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="session")
def built(wheels: Path) -> dict[str, Built]:
    """Built packages by name, including third-party plugins."""
    return {name: build(folder, wheels) for name, folder in {**folders(), **outside()}.items()}


@pytest.fixture(scope="session")
def environment(built: dict[str, Built], wheels: Path, tmp_path_factory: pytest.TempPathFactory):
    """A function from a combination's name to its lazily created environment."""
    made: dict[str, Environment] = {}

    def find(combination: str) -> Environment:
        if combination not in made:
            folder = tmp_path_factory.mktemp(combination.replace(" ", "-"))
            made[combination] = Environment(folder / "env")
            made[combination].install(*combinations()[combination], links=wheels)
        return made[combination]

    return find
