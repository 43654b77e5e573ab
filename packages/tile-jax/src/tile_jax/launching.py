"""``JaxKernel``: a program with its results, compiled for the platforms of JAX."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tile_core as tile
from tile_core.abi.signature import Dim, Signature, symbols_of
from tile_core.compiler import signature_of
from tile_core.runtime.settings import program_of
from tile_jax.checking import Abstract, Checked, Number, check
from tile_jax.errors import BadBatch, BadResults, NoPointers, NoTargetOf, TracedNumber
from tile_runtime.calls.arguments import check_signature
from tile_runtime.calls.convert import launch_number

if TYPE_CHECKING:
    from tile_core.ir.program import Program

Options = Mapping[str, Mapping[str, Any]]

TARGETS = {"cpu": "cpu", "cuda": "cuda"}
"""The target of each platform of JAX."""

WIDE = "|wide"
"""What names of targets end with whose arrays need 64-bit offsets."""


class JaxKernel:
    """A program whose written parameters are results.

    Attributes
    ----------
    name
        The name of the operator, which is that of its target in XLA.
    signature
        The parameters; ``inputs`` are those that a call takes.
    tensors
        Those of ``inputs`` that are arrays.
    written
        The parameters that a call writes, in order: its results and workspaces.
    aliases
        The number of the array and of the result that are one parameter, read and written.
    leading
        The numbers of the arrays whose first axis takes a batch.
    targets
        Names of the targets that are registered with XLA, by platform and version.
    lock
        Held while it is compiled and registered.
    """

    def __init__(
        self, name: str, program: Program, out: Sequence[str] | None, options: Options | None, batch: str | None
    ) -> None:
        self.name = name
        self.program = program_of("tile_jax.op", program)
        self.signature = signature = _signature(name, self.program, out)
        self.tensors = tuple(i for i in signature.inputs if signature.params[i].kind == "tensor")
        self.written = tuple(i for i, p in enumerate(signature.params) if p.writes)
        self.aliases = {
            n: self.written.index(i) for n, i in enumerate(self.tensors) if signature.params[i].writes
        }  # fmt: skip
        self._options = dict(options or {})
        self._kernels: dict[str, tile.Kernel] = {}
        self.leading = frozenset[int]() if batch is None else _leading(self, batch)
        self.targets: dict[tuple[str, bool], str] = {}
        self.lock = threading.RLock()

    def __repr__(self) -> str:
        return self.name

    def check(
        self, arrays: Sequence[Abstract], numbers: tuple[Number, ...], compiled: tile.Kernel | None = None
    ) -> Checked:
        """Check the arguments of a call, see `tile_jax.checking.check`.

        Without a kernel of a platform, arrays may be as large as that of any platform reaches.
        """
        wide = compiled.wide if compiled is not None else None
        bits = 64 if compiled is None or wide is not None else self.signature.symbolic_bits
        signature = dataclasses.replace(self.signature, symbolic_bits=bits)
        return check(self.name, signature, wide, tuple(arrays), numbers)

    def numbers(self, values: Sequence[Any]) -> tuple[Number, ...]:
        """Return the numbers among the arguments of a call, as launches take them.

        Raises
        ------
        ScalarType, ScalarRange
            They are not of their parameters' types.
        TracedNumber
            One is an array.
        """
        import jax

        found = []
        for i, value in zip(self.signature.inputs, values, strict=True):
            param = self.signature.params[i]
            if param.kind == "tensor":
                continue
            if isinstance(value, jax.Array):
                raise TracedNumber(operator=self.name, name=param.name, dtype=param.dtype)
            found.append(launch_number(self.signature, param, value))
        return tuple(found)

    def compiled(self, platform: str) -> tile.Kernel:
        """Return the kernel for a platform; it is compiled when it is first needed.

        Raises
        ------
        NoTargetOf
            No target is known for it.
        """
        with self.lock:
            if platform not in self._kernels:
                if platform not in TARGETS:
                    known = ", ".join(TARGETS)
                    raise NoTargetOf(operator=self.name, found=platform, known=known, where=self.program.where)
                target = TARGETS[platform]
                found = tile.compile(self.program, target, self.signature.results, self._options.get(target))
                self._kernels[platform] = found
            return self._kernels[platform]


def base_of(target: str) -> str:
    """Return the name of a target without its version."""
    return target.removesuffix(WIDE)


def _signature(operator: str, program: Program, out: Sequence[str] | None) -> Signature:
    """Return the signature of a program whose parameters ``out`` are results."""
    plain = signature_of(program, ())
    own = plain.params[: len(plain.params) - plain.workspaces]
    names, where = [p.name for p in own], program.where
    pointer = next((p.name for p in own if p.kind == "pointer" or p.addresses), None)
    if pointer is not None:
        raise NoPointers(operator=operator, name=pointer, where=where)
    chosen = [p.name for p in own if p.access == "write"] if out is None else list(out)
    unknown = [name for name in chosen if name not in names]

    def refused(found: str, what: str, reason: str, advice: str) -> BadResults:
        return BadResults(operator=operator, found=found, what=what, reason=reason, advice=advice, where=where)

    if unknown:
        advice = f"name parameters of the program: {', '.join(names)}"
        raise refused(", ".join(unknown), "results", "it has no such parameters", advice)
    if not any(p.writes for p in own):
        raise refused("nothing", "a result", "the program writes none of its parameters", "write a T.Tensor")
    found = signature_of(program, [names.index(name) for name in chosen])
    strided = next((found.params[i].name for i in found.results if found.params[i].strides is not None), None)
    if strided is not None:
        reason, advice = "it has strides, and results are contiguous", f"declare {strided} as T.Tensor"
        raise refused(strided, "a result", reason, advice)
    check_signature(found)
    return found


def _leading(kernel: JaxKernel, symbol: str) -> frozenset[int]:
    """Return the numbers of the arrays that begin with a symbol.

    Raises
    ------
    BadBatch
        The symbol is not the first extent of all arrays that have it and of all results.
    """
    signature = kernel.signature

    def refused(reason: str, advice: str) -> BadBatch:
        return BadBatch(operator=kernel.name, found=symbol, reason=reason, advice=advice, where=kernel.program.where)

    if symbol not in signature.symbols:
        raise refused("is not a symbol of the program", f"its symbols are: {', '.join(signature.symbols) or 'none'}")
    for param in signature.params:
        if param.kind != "tensor":
            continue
        leads = bool(param.shape) and param.shape[0] == symbol
        elsewhere = (*param.shape[1 if leads else 0 :], *(param.strides or ()))
        if not leads and param.writes:
            raise refused(f"is not the first extent of result {param.name}", "leave out batch=: vmap then loops")
        if any(_has(symbol, dim) for dim in elsewhere):
            raise refused(f"is not only the first extent of {param.name}", "leave out batch=: vmap then loops")
    return frozenset(n for n, i in enumerate(kernel.tensors) if _has(symbol, signature.params[i].shape[0]))


def _has(symbol: str, dim: Dim) -> bool:
    return symbol in symbols_of(dim)
