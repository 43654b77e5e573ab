"""The text of one kernel, and how to launch it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.emit.facts import Attribute, KernelText, LaunchFacts, LineMap, ParamFact, SharedArray
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.runtime.signature import Dim
from tile_metal.emit.helpers import needed
from tile_metal.emit.printer import MslPrinter
from tile_metal.errors import TooManyBuffers

BODY, HEAD = "metal.body", "metal.head"
"""Attributes of the facts: the 1-based lines at which the kernel's body and its head begin."""

MOST_BUFFERS = 31
"""Buffers of a kernel; the scalars take one (MSL specification, "Attributes to Locate Buffers")."""


@dataclass(frozen=True)
class TextOptions:
    """What a text is made for, see ``MetalOptions``."""

    fast_math: bool = False
    line_info: bool = False


@dataclass(frozen=True)
class Launch:
    """What the passes found out about a launch besides the program of a thread.

    Attributes
    ----------
    grid, block
        Threadgroups, of names of scalar parameters, and threads of each, along x, y and z.
    access
        ``"read"``, ``"write"`` or ``"readwrite"`` by parameter.
    shared_bytes, shared
        Threadgroup memory, and the arrays in it.
    align, divides
        Bytes that the body takes addresses to be multiples of, and numbers that divide values, by parameter.
    aliased
        Parameters whose memory another one may share.
    device_barriers
        Whether barriers also order accesses of device memory.
    attributes, where
        For the launch facts.
    """

    grid: tuple[Dim, Dim, Dim]
    block: tuple[int, int, int]
    access: Mapping[str, str]
    shared_bytes: int = 0
    shared: tuple[SharedArray, ...] = ()
    align: Mapping[str, int] = field(default_factory=dict)
    divides: Mapping[str, int] = field(default_factory=dict)
    aliased: frozenset[str] = frozenset()
    device_barriers: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    where: Where | None = None


def emit_kernel(
    name: str, params: Sequence[Any], body: Any, launch: Launch, options: TextOptions | None = None
) -> KernelText:
    """Print a kernel.

    Parameters
    ----------
    name
        The user's name of it.
    params
        Buffers and scalar variables in the order of the signature, then symbols that the launch passes besides.
    body
        The program of one thread: statements of the C family and the calls of ``tile_core.simt``.
    launch
        How it is launched.
    options
        What it is made for.

    Raises
    ------
    NotExpressible, TooManyBuffers
        If there is no text for something in the body, or there are too many parameters.
    """
    options = options or TextOptions()
    printer = MslPrinter(
        launch.block, launch.grid, fast_math=options.fast_math, line_info=options.line_info,
        device_barriers=launch.device_barriers,
    )  # fmt: skip
    printer.slab = launch.shared_bytes
    printer.find_wide(body)
    entry = printer.writer.fresh(name)
    arrays = [p for p in params if tirx.is_buffer_var(p)]
    scalars = [p for p in params if not tirx.is_buffer_var(p)]
    buffers = len(arrays) + bool(scalars)
    if buffers > MOST_BUFFERS:
        raise TooManyBuffers(kernel=name, found=buffers, limit=MOST_BUFFERS, where=launch.where)
    heads = [_array(printer, p, i, launch) for i, p in enumerate(arrays)]
    names = {str(p.name): printer.writer.name(p) for p in params}
    struct = printer.writer.fresh(f"{entry}_args")
    _bounds(printer, params)
    emitted = printer.body(body)
    first = [_scalar(printer, p, names[str(p.name)]) for p in scalars]
    heads += [f"constant {struct}& args [[buffer({len(arrays)})]]"] if scalars else []
    heads += [f"{'uint' if b == _LANE else 'uint3'} {b} [[{b}]]" for b in sorted(printer.builtins)]
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    before = [*_prelude(printer, options), *_struct(printer, struct, scalars, names)]
    head = [f"[[kernel, max_total_threads_per_threadgroup({threads})]] void {entry}("]
    head += [f"    {h}{',' if h is not heads[-1] else ''}" for h in heads]
    head += [") {"]
    lines = [*before, *head, *first]
    attributes = {**launch.attributes, HEAD: len(before) + 1, BODY: len(before) + len(head) + 1}
    facts = LaunchFacts(
        entry, tuple(_param(p, names, launch) for p in params), renamed(launch.grid, names), launch.block,
        launch.shared_bytes, launch.shared, attributes,
        LineMap.of([*([None] * len(lines)), *emitted.origins, None]), launch.where,
        {names.get(n, n): by for n, by in launch.divides.items()},
    )  # fmt: skip
    return KernelText("".join(f"{line}\n" for line in lines) + emitted.text + "}\n", facts)


def _scalar(printer: MslPrinter, p: Any, name: str) -> str:
    """Print the line that gives a scalar argument its name."""
    return f"  const {printer.type(nodes.dtype_of(p))} {name} = args.{name};"


_LANE = "thread_index_in_simdgroup"


def _bounds(printer: MslPrinter, params: Sequence[Any]) -> None:
    """Let the printer know that extents are not negative."""
    for var in {v for p in params if tirx.is_buffer_var(p) for d in p.shape for v in collect(d, tirx.Var)}:
        dtype = nodes.dtype_of(var)
        most = tirx.IntImm(dtype, 2**31 - 1 if dtype == "int32" else 2**62)
        printer.analyzer.bind(var, ir.Range.from_min_extent(nodes.zero(dtype), most), True)


def _array(printer: MslPrinter, p: Any, number: int, launch: Launch) -> str:
    """Print the declaration of an array: read-only ones are constant, and those that share no memory say so."""
    printer.spaces[p] = "device"
    only_read = launch.access.get(str(p.name), "read") == "read"
    if only_read:
        printer.readonly.add(p)
    restrict = "" if str(p.name) in launch.aliased else " __restrict"
    kind = f"device {'const ' if only_read else ''}{printer.type(nodes.element_type(p))}*{restrict}"
    return f"{kind} {printer.writer.name(p)} [[buffer({number})]]"


def _prelude(printer: MslPrinter, options: TextOptions) -> list[str]:
    functions = needed(printer.helpers)
    headers = dict.fromkeys(["metal_stdlib", *(h for f in functions for h in f.headers)])
    lines = [f"#include <{h}>" for h in headers]
    lines.append("using namespace metal;")
    if not options.fast_math:
        # Both hosts compile so by default; the text says it for all others. MSL specification, "Math Modes".
        lines += ["#pragma METAL fp math_mode(safe)", "#pragma METAL fp contract(off)"]
    for f in functions:
        lines += ["", *f.text.splitlines()]
    return [*lines, ""]


def _struct(printer: MslPrinter, struct: str, scalars: Sequence[Any], names: Mapping[str, str]) -> list[str]:
    """Print the type of the scalar arguments: one structure, so that none is too small to be bound."""
    if not scalars:
        return []
    members = [f"  {printer.type(nodes.dtype_of(p))} {names[str(p.name)]};" for p in scalars]
    return [f"struct {struct} {{", *members, "};", ""]


def _param(p: Any, names: Mapping[str, str], launch: Launch) -> ParamFact:
    own = str(p.name)
    if not tirx.is_buffer_var(p):
        return ParamFact(names[own], "scalar", nodes.dtype_of(p))
    kind: Any = launch.access.get(own, "read")
    return ParamFact(names[own], "pointer", nodes.element_type(p), kind, launch.align.get(own, 0))


def renamed(grid: tuple[Dim, Dim, Dim], names: Mapping[str, str]) -> tuple[Dim, Dim, Dim]:
    """Return the extents with the names that scalar parameters have in the text."""
    x, y, z = (_named(dim, names) for dim in grid)
    return x, y, z


def _named(dim: Dim, names: Mapping[str, str]) -> Dim:
    if isinstance(dim, tuple):
        return (dim[0], _named(dim[1], names), _named(dim[2], names))
    return names.get(dim, dim) if isinstance(dim, str) else dim
