"""Products with epilogues exchanged between lanes, under the emulator."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from .lanes import LANES

pytestmark = pytest.mark.sweep(2)


class TestLanes(ZooTests):
    zoo = LANES
