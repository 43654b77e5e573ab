"""The zoo of AMD GPUs under the emulator."""

from zoo.suite import ZooTests

from .launch import AMD


class TestZoo(ZooTests):
    zoo = AMD
