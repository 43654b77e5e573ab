"""The zoo of Metal under the emulator, and its texts by the rules of Apple's compiler."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from tile_metal.lint import lint

from .launch import APPLE


class TestZoo(ZooTests):
    zoo = APPLE

    @pytest.mark.sweep(4)
    def test_no_finding(self, name, target):
        """What only Apple's compiler would find is in no text, as far as the package's own rules see it."""
        assert lint(self.zoo.text_of(name, target).text) == ()
