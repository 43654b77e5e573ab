"""Every case of the kit as a test: ``pytest --pyargs tile_core.testing --tile-backend TARGET --tile-runtime NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tile_core.testing.plugin import check

if TYPE_CHECKING:
    from tile_core.testing.case import Case
    from tile_core.testing.run import Session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every case."""
    if "tile_case" in metafunc.fixturenames:
        from tile_core.testing.tables import cases

        # With `-n 2 --dist loadgroup` the cases of a kernel stay in one process.
        grouped = metafunc.config.pluginmanager.hasplugin("xdist")
        metafunc.parametrize(
            "tile_case",
            [
                pytest.param(
                    c,
                    id=c.id,
                    marks=[pytest.mark.xdist_group(f"{c.unit.op}/{c.unit.name}")] if grouped else [],
                )
                for c in cases(metafunc.config.getoption("tile_backend"))
            ],
        )


def test_case(tile_case: Case, tile_kit: Session, request: pytest.FixtureRequest) -> None:
    """Right, or refused where that is allowed."""
    check(tile_kit, tile_case, request.node)
