"""The key: a function of content, and of all of it."""

import dataclasses
import enum
import math
import struct
from pathlib import Path

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import Where
from tile_core.runtime.cache_key import NotKeyed, content_hash, program_parts

FORWARD = {"row": lambda i, j: i * 16 + j, "column": lambda i, j: j * 16 + i}


def make(rows=16, factor=2.0, order="row", threads=64, stages=2, extra=False):
    @T.prim_func
    def kernel(A: T.Tensor((16, 16), "float32"), B: T.Tensor((rows, 16), "float32")):
        with T.Kernel(1, threads=threads):
            tile_of_A = T.alloc_shared((16, 16), "float32")
            T.annotate_layout({tile_of_A: T.Layout((16, 16), FORWARD[order])})
            for _ in T.Pipelined(3, num_stages=stages):
                T.copy(A, tile_of_A)
            for i, j in T.Parallel(16, 16):
                B[i, j] = tile_of_A[i, j] * T.float32(factor)
                if extra:
                    B[i, j] = B[i, j] + B[i, j]

    return kernel


def hashed(program):
    return content_hash(program_parts(program), program.where)


def test_equal_programs_have_equal_keys_whatever_came_before():
    first = hashed(make())
    for factor in (1.0, 3.0, 5.0):
        make(factor=factor)
    assert hashed(make()) == first


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 17},
        {"factor": 2.0000002},
        {"factor": -2.0},
        {"order": "column"},
        {"threads": 32},
        {"stages": 3},
        {"extra": True},
    ],
)
def test_different_programs_have_different_keys(change):
    assert hashed(make(**change)) != hashed(make())


def test_layouts_differ_by_their_offsets():
    digits = "(4,16):(1@warp,1@lane)"
    values = [
        T.Fragment((4, 16), digits, width=16),
        T.Fragment((4, 16), digits, width=32),
        T.Fragment((4, 16), lambda i, j: (i * 16 + j, 0 * i)),
        T.Fragment((4, 16), lambda i, j: (j * 4 + i, 0 * i)),
        T.Fragment((4, 16), lambda i, j, copy: (copy * 16 + j, i), replicate=2),
        T.Layout((4, 16), lambda i, j: j * 4 + i),
        T.Layout((4, 16), lambda i, j: j * 4 + i, span=80),
    ]
    assert len({content_hash(v) for v in values}) == len(values)
    assert content_hash(T.Fragment((4, 16), digits, width=16)) == content_hash(values[0])


def test_signs_and_kinds_of_numbers_differ():
    payload = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    values = [0, 0.0, -0.0, False, None, "0", b"0", (0,), (0, 0), ((0,), 0), math.nan, payload, math.inf, -math.inf,
              5e-324, np.float32(0), np.zeros(1), np.zeros((1, 1)), {"a": 0}, {"a": 0.0}, {0}, Path("0"),
              Colour.RED, np.dtype("float32"), "", (), {}, frozenset()]  # fmt: skip
    digests = [content_hash(v) for v in values]
    assert len(set(digests)) == len(values)
    assert content_hash({1, 2, 3}) == content_hash({3, 2, 1})
    assert content_hash([1, 2]) == content_hash((1, 2))


def test_parts_do_not_run_into_each_other():
    assert content_hash(("ab", "c")) != content_hash(("a", "bc"))
    assert content_hash({"a": ("b", "c")}) != content_hash({"a": "b", "c": ()})


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass(frozen=True)
class Options:
    level: int = 1
    fast: bool = False


def test_dataclasses_and_enums():
    assert content_hash(Options()) == content_hash(Options(1, False))
    assert content_hash(Options(2)) != content_hash(Options())
    assert content_hash(Number.ONE) != content_hash(1)


@pytest.mark.parametrize("value", [lambda: 0, object(), np.array([object()]), {"a": [print]}])
def test_what_cannot_be_seen_through_has_no_key(value):
    with pytest.raises(NotKeyed):
        content_hash(value)


def test_sharing_does_not_count_and_does_not_cost():
    from tile_core.compat.tvm import tirx

    x = tirx.Var("x", "int32")
    shared = x
    for _ in range(60):  # 2**60 nodes for who expands it
        shared = tirx.Add(shared, shared)
    assert content_hash(shared) == content_hash(shared)
    one, two = tirx.Add(x, x), tirx.Add(tirx.Var("x", "int32"), tirx.Var("x", "int32"))
    assert content_hash(one) != content_hash(two)
    y = tirx.Var("y", "int32")
    assert content_hash(tirx.Add(tirx.Mul(x, x), tirx.Mul(x, x))) == content_hash(tirx.Add(m := tirx.Mul(x, x), m))
    assert content_hash(tirx.Sub(x, y)) != content_hash(tirx.Sub(y, x))


def test_locations_are_relative_to_the_definition():
    from tile_core.compat.tvm import ir, tirx

    def at(file, line):
        return tirx.Evaluate(tirx.IntImm("int32", 0), ir.Span(ir.SourceName(file), line, line, 1, 1))

    here = content_hash(at("/a/kernel.py", 12), Where("/a/kernel.py", 10))
    assert content_hash(at("/b/kernel.py", 32), Where("/b/kernel.py", 30)) == here
    assert content_hash(at("/a/kernel.py", 13), Where("/a/kernel.py", 10)) != here
    assert content_hash(at("/a/macros.py", 12), Where("/a/kernel.py", 10)) == content_hash(
        at("/b/macros.py", 12), Where("/b/other.py", 3)
    )


def test_a_chain_too_deep_to_follow_is_not_kept(monkeypatch):
    from tile_core.compat.tvm import tirx

    x = tirx.Var("x", "int32")
    for _ in range(3000):
        x = tirx.Add(x, tirx.IntImm("int32", 1))
    with pytest.raises(RecursionError):
        content_hash(x)
