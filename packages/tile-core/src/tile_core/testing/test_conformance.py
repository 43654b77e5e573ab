"""Every case of the kit as a test: ``pytest --pyargs tile_core.testing --tile-backend TARGET --tile-runtime NAME``."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.testing.plugin import check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every case."""
    if "tile_case" in metafunc.fixturenames:
        from tile_core.testing.tables import cases

        every = cases()
        metafunc.parametrize("tile_case", every, ids=[c.id for c in every])


def test_case(tile_case: Any, tile_kit: Any, record_property: Any) -> None:
    """Right, or refused where that is allowed."""
    check(tile_kit, tile_case, record_property)
