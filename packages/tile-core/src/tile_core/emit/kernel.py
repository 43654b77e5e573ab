"""Inputs of a kernel printer besides the per-thread program, and the facts that it returns.

A backend makes a `Launch` of a plan with `launch_of`, changes what its device needs, and passes it to a
printer (``emit.kernel_printer``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from tile_core.abi.kernel_text import Attribute, LaunchFacts, LineMap, ParamFact, SharedArray
from tile_core.abi.signature import Access, Dim, renamed_dim
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.ir.access import accesses
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import collect
from tile_core.ops.effects import effects
from tile_core.records import dataclass
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.constants import constants_of


@dataclass(frozen=True)
class Launch:
    """Facts about a launch that the passes derived, other than the per-thread program.

    Attributes
    ----------
    grid, block
        Blocks, as expressions of scalar parameters, and threads per block, along x, y and z.
    access
        How the kernel accesses each array, by parameter.
    shared_bytes, shared
        Shared memory of a block in bytes, and the arrays in it.
    align, divides
        Alignment that the body assumes of addresses, in bytes, and divisors of values, by parameter.
    aliased
        Parameters that may alias: raw pointers, and all beside a table of addresses. A launch refuses aliasing arrays.
    declared
        Types of scalars and of elements as the program declares them, by parameter; a text may have codes instead.
    attributes, where
        For the launch facts.
    cluster
        Blocks along x, y and z of a cluster.
    constants
        Parameters with descriptors, by `simt.launch.constants.key_of`; they follow those of the signature.
    name
        Name of the kernel.
    offset_bits
        Width of the offsets in tensors of symbolic shape: see ``Program.offset_bits``.
    """

    grid: tuple[Dim, Dim, Dim]
    block: tuple[int, int, int]
    access: Mapping[str, Access] = field(default_factory=dict)
    shared_bytes: int = 0
    shared: tuple[SharedArray, ...] = ()
    align: Mapping[str, int] = field(default_factory=dict)
    divides: Mapping[str, int] = field(default_factory=dict)
    aliased: frozenset[str] = frozenset()
    declared: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    where: Where | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)
    constants: Mapping[str, ParamFact] = field(default_factory=dict)
    name: str = ""
    offset_bits: int = 32

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    def reads_only(self, param: BufferVar) -> bool:
        """Whether the kernel never writes an array."""
        return self.access.get(str(param.name), "read") == "read"

    def facts(
        self, entry: str, params: Sequence[Var], names: Mapping[str, str], lines: LineMap,
        attributes: Mapping[str, Attribute],
    ) -> LaunchFacts:  # fmt: skip
        """Return the facts of a text.

        Parameters
        ----------
        entry
            Name of the function.
        params
            Buffers and scalar variables in order.
        names
            The name in the text, by parameter name.
        lines
            The source locations of the text's lines.
        attributes
            Attributes added to those of the launch.
        """
        x, y, z = (renamed_dim(dim, names) for dim in self.grid)
        constants = (
            replace(p, name=names.get(p.name, p.name), descriptor=p.descriptor and p.descriptor.renamed(names))
            for p in self.constants.values()
        )
        divides = {names.get(n, n): by for n, by in self.divides.items()}
        return LaunchFacts(
            entry, (*(self._param(p, names) for p in params), *constants), (x, y, z), self.block, self.shared_bytes,
            self.shared, {**self.attributes, **attributes}, lines, self.where, divides, self.cluster,
            "" if self.name == entry else self.name,
        )  # fmt: skip

    def _param(self, p: Var, names: Mapping[str, str]) -> ParamFact:
        own = str(p.name)
        if not tirx.is_buffer_var(p):
            return ParamFact(names[own], "scalar", self.declared.get(own, nodes.dtype_of(p)))
        element = nodes.element_type(p)
        declared = self.declared.get(own, element)
        # The text may have codes of a type that it lacks; arrays have the type's own name, where the host has one.
        element = element if declared == element else DTYPES[declared].storage
        return ParamFact(names[own], "pointer", element, self.access.get(own, "read"), self.align.get(own, 0))


def launch_of(plan: KernelPlan, attributes: Mapping[str, Attribute] | None = None) -> Launch:
    """Return the launch of a fully lowered plan.

    Parameters
    ----------
    plan
        With the notes of ``simt_spine`` and ``with_text``.
    attributes
        Facts of the text for the backend's runtimes.
    """
    program, relied, arena = plan.program, plan.relied, plan.arena
    access = accesses(program.func.body, effects)
    return Launch(
        grid=plan.grid.extents,
        block=plan.block.extents,
        access={str(v.name): _access(v, access.get(str(v.name), "read")) for v in program.func.params},
        shared_bytes=arena.bytes,
        shared=tuple(SharedArray(a.name, a.offset, a.bytes, a.dtype) for a in arena.arrays),
        align={str(b.name): size for b, size in relied.addresses.items()},
        divides={str(v.name): by for v, by in relied.divisors.items()},
        declared={p.name: p.dtype for p in program.params if p.dtype},
        aliased=frozenset(p.name for p in program.params if p.kind == "pointer" or has_tables(program.func.body)),
        attributes=dict(attributes or {}),
        where=program.where,
        cluster=cluster_of(program.attrs),
        constants=constants_of(plan.body),
        name=program.name,
        offset_bits=program.offset_bits,
    )


def has_tables(body: Stmt) -> bool:
    """Whether a program takes addresses from tensors."""
    return any(nodes.dtype_of(b.var) == "handle" for b in collect(body, tirx.Bind))


def parameters_of(plan: KernelPlan) -> tuple[Var, ...]:
    """Return the parameters of a plan's text: the signature's, then launch symbols."""
    hidden = tuple(plan.program.symbols[name] for name in plan.hidden)
    return (*plan.params, *hidden)


def _access(param: BufferVar, found: str) -> Access:
    """Return how a parameter is accessed; storing half a byte also reads it."""
    packed = tirx.is_buffer_var(param) and DTYPES[nodes.element_type(param)].is_packed
    return cast(Access, "readwrite" if packed and found == "write" else found)
