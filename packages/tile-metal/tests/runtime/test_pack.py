"""The structure of scalars by bytes: C's layout, 4-byte words, and torch's form."""

import struct

import numpy as np
import pytest

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.errors import InternalError
from tile_core.errors.launch import LaunchNotOffered
from tile_metal.runtime.pack import StructPacker, words_of


def facts(*dtypes):
    params = [ParamFact("A", "pointer", "float32")]
    params += [ParamFact(f"s{i}", "scalar", dtype) for i, dtype in enumerate(dtypes)]
    return LaunchFacts("f", tuple(params), (1, 1, 1), (32, 1, 1))


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [
        ("bool", True, b"\1\0\0\0"),
        ("bool", False, b"\0\0\0\0"),
        ("int8", -1, b"\xff\0\0\0"),
        ("uint8", 255, b"\xff\0\0\0"),
        ("int16", -2, b"\xfe\xff\0\0"),
        ("uint16", 65535, b"\xff\xff\0\0"),
        ("int32", -(2**31), struct.pack("<i", -(2**31))),
        ("uint32", 2**32 - 1, b"\xff" * 4),
        ("int64", -1, b"\xff" * 8),
        ("uint64", 2**64 - 1, b"\xff" * 8),
        ("float16", 65504.0, np.float16(65504).tobytes() + b"\0\0"),
        ("float16", float("inf"), np.float16("inf").tobytes() + b"\0\0"),
        ("float32", -0.0, np.float32(-0.0).tobytes()),
        ("bfloat16", 1.00390625, b"\x80\x3f\0\0"),  # halfway: to even
        ("bfloat16", 1.01171875, b"\x82\x3f\0\0"),
        ("float8_e4m3fn", 448.0, b"\x7e\0\0\0"),
        ("float8_e5m2", -2.0, b"\xc0\0\0\0"),
        ("tfloat32", 1.5, np.float32(1.5).tobytes()),
    ],
)
def test_one_scalar(dtype, value, stored):
    packer = StructPacker(facts(dtype))
    assert packer.pack((None, value)) == stored
    assert packer.size == len(stored)
    assert packer.words == 1


def test_natural_alignment():
    packer = StructPacker(facts("int8", "float16", "bool", "int64", "uint8", "int32", "bool"))
    found = packer.pack((None, -1, 1.0, True, -2, 7, 9, True))
    assert found == struct.pack("<bxe?xxxqBxxxi?xxxxxxx", -1, 1.0, True, -2, 7, 9, True)
    assert packer.size == 32


def test_no_scalars():
    packer = StructPacker(facts())
    assert (packer.size, packer.words, packer.pack((None,))) == (0, 0, b"")


def test_words_of_64_bits():
    data = struct.pack("<Iii", 2**31, -1, 5)
    words = words_of(data)
    assert all(-(2**63) <= word < 2**63 for word in words)
    assert struct.pack("<2q", *words) == data + bytes(4)


def test_what_metal_has_not():
    made = LaunchFacts("f", (ParamFact("x", "scalar", "float64"),), (1, 1, 1), (32, 1, 1))
    with pytest.raises(InternalError, match="parameter 'x'"):
        StructPacker(made)
    made = LaunchFacts("f", (ParamFact("x", "opaque", bytes=128),), (1, 1, 1), (32, 1, 1))
    with pytest.raises(
        LaunchNotOffered, match=r"\[U403\] f: the runtime metal does not support parameters of 128 bytes"
    ):
        StructPacker(made)
