"""Test parameters that no call passes: bytes are made once per set of values."""

import pytest

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_runtime.texts.constants import LaunchConstants
from tile_runtime.texts.packing import fields_of

PARAMS = (
    ParamFact("a", "pointer", "float32", "read"),
    ParamFact("b", "pointer", "float32", "read"),
    ParamFact("n", "scalar", "int32"),
    ParamFact("k", "scalar", "float32"),
)


def described(source, shape):
    data = TensorDescriptor(source, "float32", shape, (1,), (8,))
    return ParamFact(f"{source}_descriptor", "opaque", "", "read", 64, 16, data)


def facts(*constants):
    return LaunchFacts("f", (*PARAMS, *constants), (1, 1, 1), (32, 1, 1))


def encode(param, placed):
    ASKED.append((param.name, placed.address, placed.shape))
    return placed.address.to_bytes(8, "little") + placed.shape[0].to_bytes(8, "little")


ASKED: list = []


@pytest.fixture(autouse=True)
def _nothing_asked():
    ASKED.clear()


def test_bytes_are_kept_by_what_decides_them():
    constants = LaunchConstants(facts(described("a", ("n",)), described("b", (8,))), encode)
    assert constants
    assert constants.positions == (0, 1, 2)
    first = constants([1000, 2000, 5, 1.5])
    assert first == [encode(*_of("a", 1000, 5)), encode(*_of("b", 2000, 8))]
    ASKED.clear()
    assert constants([1000, 2000, 5, 2.5]) == first
    assert not ASKED  # a value that decides nothing changes nothing
    constants([1000, 2000, 6, 2.5])
    assert ASKED == [("a_descriptor", 1000, (6,))]


def test_a_function_without_constants():
    assert not LaunchConstants(facts(), encode)
    assert LaunchConstants(facts(), encode)([1, 2, 3, 4.0]) == []


def test_a_runtime_that_makes_them_packs_bytes():
    made = fields_of(facts(described("a", ("n",))), "some", constants=True)
    assert [(f.position, f.code) for f in made[-1:]] == [(4, "16s")]


def _of(source, address, extent):
    param = described(source, (extent,))
    return param, param.descriptor.at({source: address})
