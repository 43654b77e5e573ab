"""Targets and capabilities are data: checked when made, asked by questions, safe to send elsewhere."""

import dataclasses
import json
import pickle

import pytest
from expected_errors import raises_error

from tile_core.errors.plugins import InvalidDeclaration, MissingFact
from tile_core.target import Capabilities, Fact, FrozenMap, Target, split_target

CLUSTERS = Fact("clusters", int)
BIG = Fact("big", bool, False)


def test_questions():
    c = Capabilities(
        execution_width=32,
        vector_bytes=(4, 8, 16),
        native_dtypes={"float16", "float32"},
        atomics={("add", "float32")},
        async_copies={"bulk"},
        extra=CLUSTERS.value(8),
    )
    assert c.supports_atomic("add", "float32")
    assert not c.supports_atomic("max", "float32")
    assert c.has_async_copy("bulk")
    assert (c.fact(CLUSTERS), c.fact(BIG)) == (8, False)


@pytest.mark.parametrize("extra", [{}, {"clusters": "8"}])
def test_missing_fact(extra):
    with pytest.raises(MissingFact) as caught:
        Capabilities(extra=extra).fact(CLUSTERS)
    assert str(caught.value) == (
        f"[S117] the target states clusters={extra.get('clusters')!r}; expected a value of type int\n"
        "   = help: this is a defect of the backend that owns the target, please report it to its authors"
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("execution_width", 0, "a power of two up to 64, or None"),
        ("execution_width", 24, "a power of two up to 64, or None"),
        ("execution_width", 128, "a power of two up to 64, or None"),
        ("max_threads", True, "a positive number"),
        ("shared_bytes", -1, "0 or more bytes"),
        ("grid_limits", (16, 8), "three positive numbers, or none"),
        ("vector_bytes", (16, 8), "ascending positive numbers of bytes"),
    ],
)
def test_a_capability_that_contradicts_its_meaning(field, value, expected):
    with pytest.raises(InvalidDeclaration) as caught:
        Capabilities(**{field: value})
    assert str(caught.value) == (
        f"[S101] Capabilities.{field} is {value!r}; expected {expected}\n"
        "   = help: this is a defect of the backend that declares it, please report it to its authors"
    )


def test_element_types_are_checked():
    with pytest.raises(InvalidDeclaration, match=r"native_dtypes is \['float31'\]; expected names of element types"):
        Capabilities(native_dtypes={"float31", "float32"})
    with raises_error(InvalidDeclaration, field="atomics"):
        Capabilities(atomics={("add", "float31")})


def test_a_target_that_contradicts_itself():
    for fields, name in [
        ({"kind": "b"}, "kind"),
        ({"backend": ""}, "backend"),
        ({"capabilities": None}, "capabilities"),
        ({"text": ""}, "text"),
    ]:
        with pytest.raises(InvalidDeclaration, match=rf"Target\.{name} is "):
            Target(**{"text": "a:x", "kind": "a", "backend": "a", "capabilities": Capabilities(), **fields})


def test_a_target_is_a_value():
    capabilities = Capabilities(extra={"list": [1, 2]})
    target = Target("a:x,k=v", "a", "a", capabilities, "x", {"k": "v"})
    again = pickle.loads(pickle.dumps(target))
    assert again == target
    assert hash(again) == hash(target)
    assert {target: 1}[again] == 1
    assert dataclasses.replace(target, capabilities=Capabilities()) != target
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.arch = "y"
    with pytest.raises(TypeError):
        target.options["k"] = "w"
    assert str(target) == "a:x,k=v"


def test_capabilities_as_json_are_stable():
    one = Capabilities(native_dtypes=["int32", "float32"], extra={"b": {1: 2}, "a": frozenset("xy")})
    text = json.dumps(one.as_dict())
    assert json.loads(text)["native_dtypes"] == ["float32", "int32"]
    assert list(one.as_dict()["extra"]) == ["a", "b"]
    assert one.as_dict()["extra"]["a"] == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "canonical", "arch", "options"),
    [
        ("cpu", "cpu", "", {}),
        (" cpu ", "cpu", "", {}),
        ("cpu:znver4", "cpu:znver4", "znver4", {}),
        ("cpu: znver4 , b = 2,a=1", "cpu:znver4,a=1,b=2", "znver4", {"a": "1", "b": "2"}),
        ("cpu:a=1", "cpu:a=1", "", {"a": "1"}),
        ("my-kind_2:x.y", "my-kind_2:x.y", "x.y", {}),
    ],
)
def test_split(text, canonical, arch, options):
    parts = split_target(text)
    assert (str(parts), parts.arch, dict(parts.options)) == (canonical, arch, options)
    assert split_target(canonical) == parts


def test_frozen_maps_are_equal_in_any_order_and_keep_theirs():
    one, two = FrozenMap({"a": 1, "b": 2}), FrozenMap({"b": 2, "a": 1})
    assert one == two
    assert hash(one) == hash(two)
    assert repr(two) == "{'b': 2, 'a': 1}"
