"""Adapt the machine code of kernels to calls by XLA, without Python.

XLA's arrays become a kernel's: in the order of its parameters, and with the element types that memory has (XLA passes
``bfloat16`` and 8-bit floats as such, kernels take their codes). The adapter is compiled by LLVM, as kernels are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.abi.signature import Param
from tile_core.compat.tvm import ir, tirx, tvm, tvm_ffi
from tile_core.dtypes import dtype
from tile_core.errors.launch import TooManyElements
from tile_core.ir import nodes
from tile_runtime.calls.launches import MachineCode
from tile_runtime.calls.wide import LIMIT

if TYPE_CHECKING:
    from tile_jax.launching import JaxKernel

# Fields of DLPack's structure, and elements of an array of integers, as TVM numbers them.
_SHAPE, _CODE, _BITS, _INTEGER = 2, 5, 6, 17
_CODES = {"i": 0, "u": 1, "f": 2}  # DLPack's
_numbers = itertools.count()


def adapted(name: str, kernel: JaxKernel, code: tuple[MachineCode, ...], hidden: Sequence[str], bounded: bool) -> Any:
    """Return a function of tvm-ffi that XLA can call.

    Parameters
    ----------
    name
        The name of the target, for messages.
    kernel
        The kernel.
    code, hidden
        Its launches, and the symbols that they take after its parameters.
    bounded
        Whether to refuse arrays of symbolic shape that 32-bit offsets do not reach.
    """
    params = kernel.signature.params
    arguments = [tirx.Var(params[i].name, "handle") for i in kernel.tensors]
    results = [tirx.Var(f"{params[i].name}_out", "handle") for i in kernel.written]
    scalars = {
        i: tirx.Var(params[i].name, "float64" if _is_float(params[i]) else "int64")
        for i in kernel.signature.inputs if params[i].kind == "scalar"
    }  # fmt: skip
    given = {**dict(zip(kernel.tensors, arguments, strict=True)), **dict(zip(kernel.written, results, strict=True))}
    body = [s for i, array in given.items() for s in _prepared(name, params[i], array, bounded)]
    symbols = {len(params) + n: tirx.Var(f"symbol{n}", "int64") for n in range(len(hidden))}
    values = {**given, **scalars, **symbols}
    for launch in code:
        inner = f"tile_jax.launch{next(_numbers)}"
        tvm_ffi.register_global_func(inner, launch.function)
        body.append(tirx.Evaluate(tirx.call_packed(inner, *[values[i] for i in launch.positions])))
    return _compiled(tirx.PrimFunc([*arguments, *results, *scalars.values(), *symbols.values()], nodes.seq(body)))


def _prepared(name: str, param: Param, array: Any, bounded: bool) -> Iterator[Any]:
    """Yield statements that check an array's size and set the element type of its memory."""
    if bounded and not param.is_constant:
        error = TooManyElements(
            kernel=name, name=param.name, found="more", expected=LIMIT, bits=32,
            reason=" (an exported function with symbolic extents)",
        )  # fmt: skip
        shape = tirx.tvm_struct_get(array, 0, _SHAPE, "handle")
        elements: Any = tirx.const(2 if param.packed else 1, "int64")
        for axis in range(len(param.shape)):
            extent = tirx.tvm_struct_get(shape, axis, _INTEGER, "int64")
            # One after the other: neither factor of a product is over the limit.
            for value in (extent, elements := elements * extent):
                yield tirx.AssertStmt(value <= LIMIT, ir.StringImm("ValueError"), [ir.StringImm(str(error))])
    kind = dtype(param.dtype)
    if not param.packed and kind.numpy() != np.dtype(param.storage):
        storage = np.dtype(param.storage)
        for field, value in ((_CODE, _CODES[storage.kind]), (_BITS, 8 * storage.itemsize)):
            yield tirx.Evaluate(tirx.tvm_struct_set(array, 0, field, tirx.const(value, "uint8")))


def _is_float(param: Param) -> bool:
    kind = dtype(param.dtype)
    return kind.is_float and kind.storage == kind.container


def _compiled(function: Any) -> Any:
    """Return the machine code of a function."""
    described = {"kind": "llvm"}
    target = tvm.target.Target(described, host=described)
    t = tirx.transform
    passes = [t.AnnotateEntryFunc(), t.SplitHostDevice(), t.MakePackedAPI(), t.LowerTVMBuiltin(), t.LowerIntrin()]
    with tvm.transform.PassContext(opt_level=3), target:
        module = ir.IRModule({"main": function.with_attr("target", target).with_attr("global_symbol", "main")})
        for step in passes:
            module = step(module)
        return tvm.get_global_func("target.build.llvm")(module, target)["main"]
