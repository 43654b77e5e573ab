"""Kernels whose copies are bulk copies, under the emulator."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from . import stores
from .bulk import BULK

pytestmark = pytest.mark.sweep(3)


class TestBulkZoo(ZooTests):
    zoo = BULK


@pytest.mark.parametrize("name", [e.name for e in BULK.entries])
def test_its_copies_are_bulk_copies(name):
    text = BULK.text_of(name).text
    assert "  cp_async_bulk_tensor_" in text
    assert ("mbarrier_wait_parity(&" in text) != (name == stores.LEFT)
