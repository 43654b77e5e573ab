"""``JaxKernel``: a program with its results, compiled for the platforms of JAX."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tile_core as tile
from tile_core.abi.signature import Signature
from tile_core.compiler import signature_of
from tile_core.errors.base import TileError
from tile_core.runtime.settings import program_of
from tile_jax.checking import Abstract, Checked, Number, check
from tile_jax.errors import TracedNumber
from tile_runtime.calls.convert import launch_number
from tile_runtime.errors.operators import BadResults, NoTargetOf
from tile_runtime.operators import leading_params, operator_signature

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
        leading = leading_params(name, signature, self.written, batch) if batch is not None else ()
        self.leading = frozenset(n for n, i in enumerate(self.tensors) if i in leading)
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
                    raise no_target(self.name, platform).at(self.program.where)
                target = TARGETS[platform]
                found = tile.compile(self.program, target, self.signature.results, self._options.get(target))
                self._kernels[platform] = found
            return self._kernels[platform]


def no_target(operator: str, platform: str) -> TileError:
    """Return the refusal of a platform of JAX."""
    advice = "run it on another platform, as in jax.jit(f, device=jax.devices('cpu')[0]); known are"
    return NoTargetOf(operator=operator, what="platform", found=platform, advice=advice, known=", ".join(TARGETS))


def base_of(target: str) -> str:
    """Return the name of a target without its version."""
    return target.removesuffix(WIDE)


def _signature(operator: str, program: Program, out: Sequence[str] | None) -> Signature:
    """Return the signature of a program whose parameters ``out`` are results."""
    found = operator_signature(operator, functools.partial(signature_of, program), out)
    if not any(p.writes for p in found.params):
        raise BadResults(
            operator=operator, found="nothing", what="a result", reason="the program writes none of its parameters",
            advice="write a T.Tensor", where=program.where,
        )  # fmt: skip
    return found
