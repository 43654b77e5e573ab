"""Constants of a launch: tensor descriptors, which become parameters of the kernel.

A lowering writes ``descriptor(...)`` where an instruction takes the address of one. Equal ones are one parameter.
"""

from __future__ import annotations

import json

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.abi.kernel_text import ParamFact
from tile_core.compat.tvm import ir
from tile_core.compat.types import Call, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ALIGN, BYTES, DESCRIPTOR, Attrs
from tile_core.ir.visit import collect


def descriptor(of: TensorDescriptor, size: int, align: int, tensor: Call) -> Call:
    """Return the address of a descriptor, as an operand of an instruction.

    Parameters
    ----------
    of
        Its data; names are those of the program's parameters.
    size, align
        Bytes of its encoded form, and their alignment.
    tensor
        The address in the tensor, ``calls.address(...)``, which describes the instruction's access to the tensor. It
        is not printed.
    """
    attrs: Attrs = {DESCRIPTOR: json.dumps(of.to_json(), sort_keys=True), BYTES: size, ALIGN: align}
    return nodes.tile_call("descriptor", [tensor], attrs, ret="handle")


def constants_of(body: Stmt) -> dict[str, ParamFact]:
    """Return the constants of a program, by `key_of` their calls, in program order.

    Their names, ``<source>_descriptor`` and ``<source>_descriptor_2``, are not those of any other constant; a printer
    makes them differ from other names of the text.
    """
    found: dict[str, ParamFact] = {}
    counts: dict[str, int] = {}
    for call in collect(body, ir.Call):
        if not nodes.is_tile_call(call, "descriptor") or key_of(call) in found:
            continue
        data = TensorDescriptor.from_json(json.loads(str(call.attrs[DESCRIPTOR])))
        number = counts[data.source] = counts.get(data.source, 0) + 1
        name = f"{data.source}_descriptor" + (f"_{number}" if number > 1 else "")
        size, align = (int(nodes.as_int(call.attrs[k])) for k in (BYTES, ALIGN))
        found[key_of(call)] = ParamFact(name, "opaque", "", "read", align, size, data)
    return found


def key_of(call: Call) -> str:
    """Return the key that equal descriptors share."""
    return f"{call.attrs[DESCRIPTOR]} {nodes.as_int(call.attrs[BYTES])} {nodes.as_int(call.attrs[ALIGN])}"
