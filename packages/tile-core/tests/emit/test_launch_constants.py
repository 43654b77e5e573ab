"""Descriptors in a per-thread program become parameters of the text, after those of the signature."""

from typing import ClassVar

import pytest

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.compat.tvm import tirx
from tile_core.emit.kernel import Launch
from tile_core.emit.kernel_printer import KernelPrinter
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import calls, nodes
from tile_core.simt.launch.constants import constants_of, descriptor


class Printer(KernelPrinter):
    dialect: ClassVar[str] = "plain C"

    def constant(self, p, name):
        return f"const Map {name}"

    def call_tile_instruction(self, e):
        return f"{e.attrs['name']}({', '.join(self.bare(a) for a in e.args)})"


A = tirx.decl_buffer([64], "float32", "A", layout=None)


def of(**changes):
    plain = {"source": "A", "dtype": "float32", "shape": ("n", 64), "strides": (64, 1), "box": (8, 32)}
    return descriptor(TensorDescriptor(**{**plain, **changes}), 128, 64, calls.address(A, [nodes.int_const(0)]))


def program():
    n = tirx.Var("n", "int32")
    asked = [of(), of(swizzle=128), of()]
    return (A, n), nodes.seq([calls.execute("load", [x]) for x in asked])


def test_equal_ones_are_one_parameter():
    params, body = program()
    launch = Launch((1, 1, 1), (32, 1, 1), constants=constants_of(body), cluster=(1, 1, 1))
    made = Printer(launch).kernel("f", params, body)
    lines = [line.strip() for line in made.text.splitlines()]
    first, second = "A_descriptor", "A_descriptor_2"
    assert [x for x in lines if x.startswith("load")] == [f"load(&{first});", f"load(&{second});", f"load(&{first});"]
    assert f"const Map {first}, const Map {second}" in made.text
    assert [p.name for p in made.facts.given] == ["A", "n"]
    found = made.facts.params[2:]
    assert [(p.name, p.bytes, p.align, p.descriptor.swizzle) for p in found] == [
        (first, 128, 64, 0),
        (second, 128, 64, 128),
    ]
    assert found[0].descriptor.symbols == ("n",)


def test_facts_name_the_parameters_of_the_text():
    a = tirx.decl_buffer([64], "float32", "int", layout=None)
    data, address = TensorDescriptor("int", "float32", (64,), (1,), (8,)), calls.address(a, [nodes.int_const(0)])
    body = calls.execute("load", [descriptor(data, 128, 64, address)])
    made = Printer(Launch((1, 1, 1), (32, 1, 1), constants=constants_of(body))).kernel("f", [a], body)
    source = made.facts.params[0].name
    assert source != "int"
    assert made.facts.params[1].descriptor.source == source


def test_a_language_without_descriptors_refuses_them():
    class Plain(KernelPrinter):
        dialect: ClassVar[str] = "plain C"
        call_tile_instruction = Printer.call_tile_instruction

    params, body = program()
    with pytest.raises(NotExpressible, match="a descriptor of a tensor"):
        Plain(Launch((1, 1, 1), (32, 1, 1), constants=constants_of(body))).kernel("f", params, body)
