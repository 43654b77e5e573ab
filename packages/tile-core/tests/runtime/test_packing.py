"""Test the encoding of launch values and grids, for runtimes that pack arguments."""

import struct

import pytest

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import LaunchNotOffered
from tile_core.numerics.codecs import encode as code_of
from tile_runtime.texts.launch_grid import grid_of, grid_positions
from tile_runtime.texts.packing import encode, fields_of, require_single_blocks


def facts(*params, **changes):
    return LaunchFacts("f", params, **{"grid": (1, 1, 1), "block": (32, 1, 1), **changes})


SCALARS = sorted(name for name, kind in DTYPES.items() if not kind.is_packed)


@pytest.mark.parametrize("dtype", SCALARS)
def test_every_type_takes_its_bytes(dtype):
    (field,) = fields_of(facts(ParamFact("x", "scalar", dtype)), "some")
    kind = DTYPES[dtype]
    assert field.bytes * 8 == (32 if dtype == "tfloat32" else max(kind.bits, 8))
    value = True if dtype == "bool" else 1
    written = struct.pack("<" + field.code, field.written(value))
    expected = kind.numpy().type(value) if dtype != "tfloat32" else DTYPES["float32"].numpy().type(1)
    assert written == expected.tobytes()


def test_pointers_and_codes():
    made = fields_of(facts(ParamFact("a", "pointer", "float8_e4m3fn"), ParamFact("s", "scalar", "bfloat16")), "some")
    assert [(f.position, f.pointer, f.bytes, f.encoded) for f in made] == [(0, True, 8, ""), (1, False, 2, "bfloat16")]
    given = [77, 1.5]
    assert encode([f for f in made if f.encoded], given) == [77, int(code_of(1.5, "bfloat16"))]
    assert given == [77, 1.5]


def test_what_a_runtime_does_not_launch():
    with pytest.raises(
        LaunchNotOffered, match=r"\[U403\] f: the runtime some does not support parameters of 64 bytes"
    ) as e:
        fields_of(facts(ParamFact("map", "opaque", bytes=64)), "some")
    assert "use another runtime" in str(e.value)
    with pytest.raises(LaunchNotOffered, match="clusters of 1 x 2 x 1 blocks"):
        require_single_blocks(facts(grid=(1, 4, 1), cluster=(1, 2, 1)), "some")
    require_single_blocks(facts(), "some")


class TestGrid:
    PARAMS = (
        ParamFact("n", "scalar", "int32"),
        ParamFact("a", "pointer", "float32"),
        ParamFact("m", "scalar", "int32"),
    )

    def test_each_combination_is_evaluated_once(self):
        asked = []
        made = facts(*self.PARAMS, grid=(("ceildiv", "m", 32), "n", 1))
        grid = grid_of(made, lambda blocks: asked.append(blocks) or blocks)
        assert grid_positions(made) == (2, 0)
        assert [grid((n, 0, m)) for n, m in ((3, 33), (3, 33), (4, 33), (3, 64))] == [
            (2, 3, 1),
            (2, 3, 1),
            (2, 4, 1),
            (2, 3, 1),
        ]
        assert asked == [(2, 3, 1), (2, 4, 1), (2, 3, 1)]

    def test_one_symbol(self):
        grid = grid_of(facts(*self.PARAMS, grid=("n", 1, "n")), lambda blocks: blocks)
        assert grid((5, 0, 0)) == (5, 1, 5)
        assert grid((-5, 0, 0)) == (0, 1, 0)

    def test_a_constant_grid_is_asked_before_any_launch(self):
        asked = []
        grid = grid_of(facts(grid=(7, 2, 1)), lambda blocks: asked.append(blocks) or None)
        assert asked == [(7, 2, 1)]
        assert grid(()) is None
        assert len(asked) == 1

    def test_refusals_are_not_kept_as_answers(self):
        def refuse(blocks):
            raise ValueError(blocks)

        grid = grid_of(facts(*self.PARAMS, grid=("n", 1, 1)), refuse)
        for _ in range(2):
            with pytest.raises(ValueError, match="9"):
                grid((9, 0, 0))
