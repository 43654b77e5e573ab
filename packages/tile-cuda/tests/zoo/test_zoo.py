"""The zoo of CUDA under the emulator."""

from __future__ import annotations

from zoo.suite import ZooTests

from .launch import CUDA


class TestZoo(ZooTests):
    zoo = CUDA
