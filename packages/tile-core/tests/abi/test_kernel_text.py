import dataclasses
import json

import pytest

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.abi.kernel_text import KernelText, LaunchFacts, LineMap, ParamFact, SharedArray
from tile_core.emit.dialect import Dialect, plain_call
from tile_core.errors import InternalError, Where

HERE = Where("kernel.py", 3)
DESCRIPTOR = TensorDescriptor(
    "a", "float16", ("m", ("mul", "m", 2)), (("mul", "m", 2), 1), (64, 32), ("add", "m", 1), 128, "nan", {"hint": 2}
)


def facts(**changes):
    base = LaunchFacts(
        entry="gemm",
        params=(
            ParamFact("a", "pointer", "float16", "read", 16),
            ParamFact("c", "pointer", "float32", "write"),
            ParamFact("m", "scalar", "int32"),
            ParamFact("map", "opaque", align=64, bytes=128),
            ParamFact("a_descriptor", "opaque", "", "read", 64, 128, DESCRIPTOR),
        ),
        grid=(("ceildiv", "m", 128), 2, 1),
        block=(32, 4, 1),
        shared_bytes=4096,
        shared=(SharedArray("A_s", 0, 2048, "float16"),),
        attributes={"stages": 2, "fast": True},
        line_map=LineMap(((2, HERE), (5, None))),
        where=HERE,
        divides={"m": 8},
        cluster=(1, 2, 1),
    )
    return dataclasses.replace(base, **changes)


class TestLineMap:
    def test_a_location_holds_up_to_the_next_pair(self):
        found = LineMap.of([None, HERE, HERE, Where("kernel.py", 4), None])
        assert found.lines == ((2, HERE), (4, Where("kernel.py", 4)), (5, None))
        assert [found.where(line) for line in (1, 2, 3, 4, 5, 99)] == [
            None,
            HERE,
            HERE,
            Where("kernel.py", 4),
            None,
            None,
        ]

    def test_of_nothing(self):
        assert LineMap.of([]).where(1) is None

    @pytest.mark.parametrize("lines", [((2, HERE), (1, None)), ((1, HERE), (1, None)), ((0, HERE),)])
    def test_refuses_lines_out_of_order(self, lines):
        with pytest.raises(InternalError, match="increasing"):
            LineMap(lines)


class TestLaunchFacts:
    def test_to_json_and_back(self):
        for made in (facts(), facts(name="mine")):
            assert LaunchFacts.from_json(json.loads(json.dumps(made.to_json()))) == made

    def test_messages_name_the_kernel(self):
        assert facts().kernel == "gemm"
        assert facts(entry="gemm_1", name="gemm").kernel == "gemm"

    def test_the_grid_follows_from_scalars(self):
        assert facts().blocks({"m": 129}) == (2, 2, 1)
        assert facts().threads == 128
        with pytest.raises(InternalError, match="does not follow"):
            facts().blocks({})

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"entry": "a b"}, "is not a name"),
            ({"params": (ParamFact("m", "scalar", "int32"),) * 2}, "one name"),
            ({"grid": ("n", 1, 1)}, r"needs \['n'\]"),
            ({"grid": ("a", 1, 1)}, r"needs \['a'\]"),
            ({"block": (0, 1, 1)}, "threads"),
            ({"divides": {"q": 2}}, r"\['q'\], which are not integer parameters"),
            ({"divides": {"a": 2}}, r"\['a'\], which are not integer parameters"),
            ({"divides": {"m": 0}}, "the divisors"),
            ({"shared_bytes": -1}, "shared memory"),
            ({"cluster": (0, 1, 1)}, "cluster"),
            ({"cluster": (1, 3, 1)}, "blocks in clusters"),
            ({"shared": (SharedArray("x", 0, 0, "int8"),)}, "no bytes"),
            (
                {"params": (ParamFact("d", "opaque", "", "read", 64, 128, DESCRIPTOR), *facts().params)},
                "stands after one",
            ),
            ({"params": facts().params[1:]}, r"descriptors of \['a'\], which are not arrays"),
            ({"params": (facts().params[0], facts().params[-1]), "grid": (1, 2, 1), "divides": {}}, r"need \['m'\]"),
        ],
    )
    def test_refuses_a_contradiction(self, changes, reason):
        with pytest.raises(InternalError, match=reason):
            facts(**changes)

    def test_a_text_with_its_facts_is_a_value(self):
        assert KernelText("x", facts()) == KernelText("x", facts())


class TestDialect:
    def test_calls_by_the_facts_unless_it_says_otherwise(self):
        assert Dialect("toy", ()).call(facts()) == plain_call(facts()) == "simt::invoke(&gemm, args);"
        assert Dialect("toy", ()).prepare("a\nb") == "a\nb"

    def test_refuses_a_header_that_is_not_there(self, tmp_path):
        with pytest.raises(InternalError, match=r"no header toy\.h"):
            Dialect("toy", (tmp_path / "toy.h",))

    def test_refuses_an_odd_warp(self):
        with pytest.raises(InternalError, match="warp of 33"):
            Dialect("toy", (), warp=33)


@pytest.mark.parametrize("align", [-1, 3, 24])
def test_an_alignment_is_a_power_of_two(align):
    with pytest.raises(InternalError, match=f"a has an alignment of {align} bytes"):
        ParamFact("a", "pointer", "float16", "read", align)


@pytest.mark.parametrize("param", [("a", "opaque", "", "read", 8, 0), ("a", "scalar", "int8", "read", 0, 1)])
def test_only_opaque_bytes_have_a_number(param):
    with pytest.raises(InternalError, match=rf"a is {param[1]}, of {param[-1]} bytes"):
        ParamFact(*param)


def test_facts_of_the_first_format_are_read():
    plain = facts(params=tuple(p for p in facts().params if p.kind != "opaque"), cluster=(1, 1, 1))
    data = plain.to_json()
    assert all(len(row) == 5 for row in data["params"])
    del data["cluster"]
    assert LaunchFacts.from_json(data) == plain


def test_what_makes_a_general_text_is_no_part_of_a_text():
    assert KernelText("x", facts(), lambda: KernelText("x", facts())) == KernelText("x", facts())


def test_a_call_passes_no_parameter_with_a_descriptor():
    assert [p.name for p in facts().given] == ["a", "c", "m", "map"]
    with pytest.raises(InternalError, match="d is scalar, and has a descriptor"):
        ParamFact("d", "scalar", "int32", descriptor=DESCRIPTOR)
