"""The text of one kernel, and how to launch it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.emit.c_family import Emitted
from tile_core.emit.facts import Attribute, KernelText, LaunchFacts, LineMap, ParamFact, SharedArray
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.runtime.signature import Dim
from tile_cuda.emit.functions import LINKED
from tile_cuda.emit.prepare import prepare
from tile_cuda.emit.printer import CudaPrinter, words
from tile_cuda.ptx import TABLE, prelude


@dataclass(frozen=True)
class TextOptions:
    """What a text is made for.

    Attributes
    ----------
    arch
        The architecture: ``"sm_80"``, ``"sm_90a"``.
    fast_math
        Whether functions of float32 may be approximate.
    line_info
        Whether a comment names the user's line wherever it changes.
    limited
        Whether the compiler is told how many registers a thread may have: it does not obey if it also knows the bounds
        of the launch.
    """

    arch: str = "sm_80"
    fast_math: bool = False
    line_info: bool = False
    limited: bool = False


def emit_kernel(
    name: str,
    params: Sequence[Any],
    body: Any,
    *,
    grid: tuple[Dim, Dim, Dim],
    block: tuple[int, int, int],
    shared_bytes: int = 0,
    shared: Sequence[SharedArray] = (),
    access: Mapping[str, str],
    align: Mapping[str, int] | None = None,
    aliased: frozenset[str] = frozenset(),
    attributes: Mapping[str, Attribute] | None = None,
    divides: Mapping[str, int] | None = None,
    where: Where | None = None,
    options: TextOptions | None = None,
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
    grid, block
        Blocks of the grid, of the names of scalar parameters, and threads of a block, along x, y and z.
    shared_bytes, shared
        The block's shared memory, and the arrays in it.
    access
        ``"read"``, ``"write"`` or ``"readwrite"`` by parameter.
    align
        Bytes that the body takes the addresses of parameters to be multiples of.
    aliased
        Parameters whose memory another one may share: raw pointers. A launch refuses that for arrays.
    attributes, divides, where, options
        For the launch facts, and what the text is made for.

    Raises
    ------
    NotExpressible, InstructionMissing
        If there is no text for something in the body, or the architecture lacks an instruction.
    """
    options = options or TextOptions()
    printer = CudaPrinter(options.arch, options.fast_math, options.line_info)
    printer.readonly = {p for p in params if tirx.is_buffer_var(p) and access.get(str(p.name), "read") == "read"}
    printer.aliased = aliased
    entry = printer.writer.fresh(f"{name}_kernel" if name.lstrip("_") in LINKED else name)
    emitted = _printed(printer, entry, params, body, grid, block, options, shared_bytes > 0)
    before = _prelude(printer, options.arch)
    names = {str(p.name): printer.writer.name(p) for p in params}
    facts = LaunchFacts(
        entry, tuple(_param(p, names, access, align or {}) for p in params), _renamed(grid, names), block, shared_bytes,
        tuple(shared), dict(attributes or {}), LineMap.of([*([None] * len(before)), *emitted.origins]), where,
        {names.get(n, n): by for n, by in (divides or {}).items()},
    )  # fmt: skip
    return KernelText("".join(f"{line}\n" for line in before) + emitted.text, facts)


def _printed(
    printer: CudaPrinter, entry: str, params: Sequence[Any], body: Any, grid: tuple[Dim, Dim, Dim],
    block: tuple[int, int, int], options: TextOptions, uses_shared: bool,
) -> Emitted:  # fmt: skip
    """Print the function alone."""
    printer.prepared = prepare(body, params, grid, block, printer.analyzer)
    bounds = "" if options.limited else f"__launch_bounds__({math.prod(block)}) "
    head = f'extern "C" __global__ void {bounds}{entry}'
    printer.open(head, [printer.parameter(p) for p in params], uses_shared=uses_shared)
    return printer.finish(printer.prepared.body)


def _prelude(printer: CudaPrinter, arch: str) -> list[str]:
    """Return the types and functions that the text uses, and an empty line after them."""
    functions = prelude(printer.functions, arch)
    mentioned = set(printer.storage)
    for name in printer.functions:
        mentioned |= _storage_of(name)
    types = [f"typedef unsigned short {name};" for name in ("f16", "bf16") if name in mentioned]
    lines = [*types, *functions]
    return [*lines, ""] if lines else []


def _storage_of(name: str) -> set[str]:
    found = TABLE[name]
    own = {word for o in found.operands for word in words(o.element) if word in ("f16", "bf16")}
    return own.union(*(_storage_of(other) for other in found.needs)) if found.needs else own


def _param(p: Any, names: Mapping[str, str], access: Mapping[str, str], align: Mapping[str, int]) -> ParamFact:
    own = str(p.name)
    if not tirx.is_buffer_var(p):
        return ParamFact(names[own], "scalar", nodes.dtype_of(p))
    kind: Any = access.get(own, "read")
    return ParamFact(names[own], "pointer", nodes.element_type(p), kind, align.get(own, 0))


def _renamed(grid: tuple[Dim, Dim, Dim], names: Mapping[str, str]) -> tuple[Dim, Dim, Dim]:
    """Return the extents with the names that scalar parameters have in the text."""
    x, y, z = (_named(dim, names) for dim in grid)
    return x, y, z


def _named(dim: Dim, names: Mapping[str, str]) -> Dim:
    if isinstance(dim, tuple):
        return (dim[0], _named(dim[1], names), _named(dim[2], names))
    return names.get(dim, dim) if isinstance(dim, str) else dim
