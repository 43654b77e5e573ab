"""The zoo of Metal in the emulator, and checks by Apple's compiler rules."""

from __future__ import annotations

import pytest
from metal_lint import lint
from zoo.suite import ZooTests

from .launch import APPLE


class TestZoo(ZooTests):
    zoo = APPLE

    @pytest.mark.sweep(4)
    def test_no_finding(self, name, target):
        """No text has an error that only Apple's compiler would find, by the lint rules."""
        assert lint(self.zoo.text_of(name, target).text) == ()
