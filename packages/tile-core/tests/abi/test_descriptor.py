import json

import pytest

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.errors import InternalError

PLAIN = {"source": "a", "dtype": "float16", "shape": ("m", "k"), "strides": ("k", 1), "box": (64, 32)}


def made(**changes):
    return TensorDescriptor(**{**PLAIN, **changes})


def test_a_launch_encodes_it():
    placed = made(offset=("mul", "k", 3)).at({"a": 4096, "m": 100, "k": 16})
    assert (placed.address, placed.shape, placed.strides) == (4096 + 2 * 48, (100, 16), (16, 1))
    assert made(offset=("mul", "k", 3)).symbols == ("k", "m")


def test_a_launch_without_its_values_is_a_defect():
    with pytest.raises(InternalError, match="does not follow from"):
        made().at({"a": 0, "m": 1})
    with pytest.raises(InternalError, match="does not follow from"):
        made().at({"k": 0, "m": 1})


def test_to_json_and_back():
    full = made(offset=("add", "m", 1), swizzle=128, fill="nan", details={"hint": 3})
    assert TensorDescriptor.from_json(json.loads(json.dumps(full.to_json()))) == full


def test_its_names_may_change():
    found = made(offset=("add", "m", 1)).renamed({"a": "x", "m": "n"})
    assert found == made(source="x", shape=("n", "k"), offset=("add", "n", 1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source": "a b"}, "is not a name"),
        ({"box": (64,)}, r"of \[1, 2\] dimensions"),
        ({"strides": (1, "k")}, "end in no 1"),
        ({"box": (0, 32)}, "a box of"),
        ({"swizzle": 48}, "a swizzle over 48 bytes"),
        ({"dtype": "int8", "fill": "nan"}, "nan outside of int8"),
    ],
)
def test_refuses_a_contradiction(changes, reason):
    with pytest.raises(InternalError, match=reason):
        made(**changes)
