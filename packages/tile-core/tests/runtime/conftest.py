"""Fake launches and small signatures."""

import pytest

from tile_core.abi.signature import Param, Signature


class Recorder:
    """A launch that records its arguments."""

    def __init__(self):
        self.calls = []

    def __call__(self, *values):
        self.calls.append(values)

    @property
    def last(self):
        return self.calls[-1]


@pytest.fixture
def launch():
    return Recorder()


@pytest.fixture
def gemm():
    return Signature(
        "gemm",
        (
            Param("A", "tensor", "float32", ("m", "k")),
            Param("B", "tensor", "float32", ("k", "n")),
            Param("C", "tensor", "float32", ("m", "n"), access="write"),
        ),
    )
