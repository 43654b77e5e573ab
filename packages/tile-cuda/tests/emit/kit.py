"""Kernels built by hand: printed, assembled for an architecture, and run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.compat.tvm import ir, tirx
from tile_core.emit.kernel import Launch
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import NAME
from tile_core.ir.visit import collect, loads_of
from tile_core.passes import wrapping
from tile_core.passes.divisions import total_divisions
from tile_core.passes.float_rules import hide
from tile_core.passes.widen_floats import widen_floats
from tile_cuda.emit.printer import CudaPrinter
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_cuda.ptx import TABLE

from .nvrtc import assemble


def buffer(shape: Sequence[Any], dtype: str, name: str) -> Any:
    """A parameter."""
    return tirx.decl_buffer(list(shape), dtype, name, layout=None)


def shared(shape: Sequence[int], dtype: str, name: str, offset: int) -> tuple[Any, Any]:
    """An array of the block's shared memory, and its declaration."""
    array = nodes.alloc(shape, dtype, name, "shared")[0]
    return array, tirx.AllocBuffer(array, {"tile.offset": nodes.int_const(offset)})


def passed(body: Any) -> Any:
    """A body as the pipeline gives it to the emitter."""
    return hide(widen_floats(wrapping.hide(total_divisions(body))))


def kernel(params: Sequence[Any], body: Any, *, threads: int = 64, arch: str = "sm_80", **more: Any) -> KernelText:
    """The text of one block's kernel."""
    how = {name: more.pop(name) for name in ("numerics", "line_info") if name in more}
    shape = {"grid": (1, 1, 1), "block": (threads, 1, 1), "access": accesses_of(params, body), **more}
    return CudaPrinter(Launch(**shape), arch, **how).kernel("kernel", params, body)


def accesses_of(params: Sequence[Any], body: Any) -> dict[str, str]:
    """Return the accesses of the body by buffer parameter."""
    reads: set[Any] = set()
    writes: set[Any] = set()
    base = {v.buffer: x for v in collect(body, tirx.DeclBuffer) for x in collect(v.data, tirx.Var)}

    def root(buffer: Any) -> Any:
        while buffer in base:
            buffer = base[buffer]
        return buffer

    only_written: list[Any] = []
    for s in collect(body, tirx.BufferStore):
        writes.add(root(s.buffer))
    for call in collect(body, ir.Call):
        if nodes.is_tile_call(call, "move"):
            writes.add(root(call.args[0].source))
            only_written.append(call.args[0])
        elif nodes.is_tile_call(call, "instruction"):
            found = TABLE.get(str(call.attrs[NAME]))
            for position, arg in enumerate(call.args):
                if nodes.is_tile_call(arg, "address") and not (found and _only_reads(found, position)):
                    writes.add(root(arg.args[0].source))
    for load in loads_of(body):
        if not any(load.same_as(x) for x in only_written):
            reads.add(root(load.source))
    kinds = {(True, True): "readwrite", (False, True): "write"}
    return {
        str(p.name): kinds.get((p in reads, p in writes), "read") for p in params if tirx.is_buffer_var(p)
    }  # fmt: skip


def _only_reads(found: Any, position: int) -> bool:
    parameters = found.parameters
    return position < len(parameters) and str(parameters[position].parameter).startswith("const ")


def body_lines(text: KernelText) -> list[str]:
    """Return the lines of the function's body, without indentation."""
    lines = text.text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('extern "C"'))
    return [line.strip() for line in lines[start + 1 : -1]]


def run(text: KernelText, *args: Any, arch: str = "sm_80", faults: bool = False) -> Any:
    """Assemble and run a text; return the arrays after the kernel."""
    said = assemble(text.text, arch)
    assert not said, said
    result = tile_emulator.run(text.text, text.facts, list(args), dialect_of(Arch.of(arch)))
    assert faults or not result.reports, result.reports
    return result


def elementwise(outputs: dict[str, tuple[str, Callable[..., Any]]], inputs: Sequence[str], count: int) -> KernelText:
    """A kernel of elementwise functions: type and function by name of the output."""
    source = [buffer((count,), d, f"X{i}") for i, d in enumerate(inputs)]
    out = {name: buffer((count,), d, name) for name, (d, _) in outputs.items()}
    i = tirx.Var("i", "int32")
    names = [tirx.Var(f"x{k}", d) for k, d in enumerate(inputs)]
    parts = [tirx.Bind(v, b[i]) for v, b in zip(names, source, strict=True)]
    parts += [nodes.store(out[n], f(*names), [i]) for n, (_, f) in outputs.items()]
    body = nodes.seq([tirx.Bind(i, calls.thread_index(0)), passed(nodes.seq(parts))])
    return kernel([*source, *out.values()], body, threads=count)


def computed(outputs: dict[str, tuple[str, Callable[..., Any]]], inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """The outputs of such a kernel by name, for inputs that are arrays."""
    text = elementwise(outputs, types, len(inputs[0]))
    poison = [np.full(len(inputs[0]) * _size(d), 0xA5, np.uint8).view(_numpy(d)) for d, _ in outputs.values()]
    result = run(text, *inputs, *poison)
    # A parameter whose name is a word of the language has another one in the text.
    names = [p.name for p in text.facts.params[len(types) :]]
    return {wanted: result.outputs[name] for wanted, name in zip(outputs, names, strict=True)}


def _numpy(dtype: str) -> Any:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _size(dtype: str) -> int:
    return int(_numpy(dtype).itemsize)
