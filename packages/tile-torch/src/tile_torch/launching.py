"""``kernel``: a program as a function of torch tensors, on real and on fake ones."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

import tile_core as tile
from tile_core.abi.signature import Param, Signature
from tile_core.compiler import signature_of
from tile_core.errors.launch import NotAnArray
from tile_core.runtime.settings import program_of
from tile_runtime.calls import checks
from tile_runtime.calls.arguments import arrange, only_catalogue
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.errors.operators import BadResults, NoTargetOf
from tile_runtime.operators import facts_of_abstract, operator_signature
from tile_runtime.torch_op import empty_results

if TYPE_CHECKING:
    from tile_core.ir.program import Program

Options = Mapping[str, Mapping[str, Any]]

TARGETS = {"cpu": "cpu", "cuda": "cuda", "mps": "metal"}
"""The target of each type of device."""


def kernel(program: Program, *, out: Sequence[str] | None = None, options: Options | None = None) -> TorchKernel:
    """Return a program as a function of torch tensors.

    Parameters
    ----------
    program
        The result of ``@T.prim_func``.
    out
        Names of the parameters that a call allocates and returns; by default all that the program only writes.
    options
        Options of targets by their kind, as ``{"cuda": {"numerics": "fast"}}``.

    Returns
    -------
    TorchKernel
        Call it with tensors, also inside of a function that becomes an operator.

    Raises
    ------
    BadResults, NoPointers, UnsolvableSymbol
        The results cannot be allocated, or a parameter is not a tensor or a number.
    """
    return TorchKernel(program, out, options)


class TorchKernel:
    """A program as a function of tensors: see `kernel`.

    Attributes
    ----------
    signature
        The parameters; those in ``out_idx`` are the results.
    """

    def __init__(self, program: Program, out: Sequence[str] | None = None, options: Options | None = None) -> None:
        self.program = program_of("tile_torch.kernel", program)
        self.signature = _signature(self.program, out)
        self._options = dict(options or {})
        self._kernels: dict[Any, tile.Kernel] = {}
        tensors = [n for n, i in enumerate(self.signature.inputs) if self.signature.params[i].kind == "tensor"]
        self._first = tensors[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch, or return fake results for fake tensors; the checks are those of ``tile.Kernel``."""
        if kwargs:
            args = arrange(self.signature, args, kwargs)
        if any(isinstance(a, FakeTensor) for a in args):
            return self.fake(*args)
        return self.launch(*args)

    def launch(self, *args: Any) -> Any:
        """Launch on real tensors, by the kernel of the first tensor's device."""
        try:
            first = args[self._first]
            run = self._kernels["cpu" if first.is_cpu else first.device]
        except (KeyError, IndexError, AttributeError):
            run = self.compiled(self._device_of(args))
        return run(*args)

    def compiled(self, device: torch.device | str) -> tile.Kernel:
        """Return the kernel for a device; it is compiled when it is first needed.

        Raises
        ------
        NoTargetOf
            The operator has no target for this type of device.
        """
        device = torch.device(device)
        key = "cpu" if device.type == "cpu" else device
        if key not in self._kernels:
            if device.type not in TARGETS:
                raise NoTargetOf(
                    operator=self.signature.name, what="device", found=device.type, advice="move tensors to one of",
                    known=", ".join(TARGETS), where=self.program.where,
                )  # fmt: skip
            target = TARGETS[device.type]
            # The target without an architecture is that of the current device.
            with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
                found = tile.compile(self.program, target, self.signature.results, self._options.get(target))
            self._kernels[key] = found
        return self._kernels[key]

    def fake(self, *args: Any) -> Any:
        """Check fake tensors and return fake results; sizes may be symbolic.

        Raises
        ------
        LaunchError
            K4xx: element types, ranks, extents or strides do not fit.
        """
        signature = self.signature
        values = dict(zip(signature.inputs, arrange(signature, args, {}), strict=True))
        tensors = {i: v for i, v in values.items() if signature.params[i].kind == "tensor"}
        with only_catalogue("the checks of fake tensors", signature.where):
            arrays = {i: _facts(signature, signature.params[i], value) for i, value in tensors.items()}
            scalars = {i: v for i, v in values.items() if i not in tensors}
            symbols = checks.solve_extents(signature, arrays, scalars).values
        for i, value in tensors.items():
            if signature.params[i].strides is None and not value.is_contiguous():
                checks.check_layout(signature, signature.params[i], arrays[i], symbols)
        return empty_results(signature, symbols, tensors[signature.inputs[self._first]].device)

    def _device_of(self, args: Sequence[Any]) -> torch.device:
        """Return the device of the first tensor, or the host for other values."""
        first = args[self._first] if len(args) > self._first else None
        return first.device if isinstance(first, torch.Tensor) else torch.device("cpu")

    def __repr__(self) -> str:
        return f"<tile_torch.TorchKernel {self.signature}>"


# Python compilers must not trace into it, as with `tile.Kernel`.
TorchKernel.__call__._torchdynamo_disable = True  # type: ignore[attr-defined]


def _signature(program: Program, out: Sequence[str] | None) -> Signature:
    """Return the signature of a program with its results."""
    found = operator_signature(program.name, functools.partial(signature_of, program), out)
    if not any(found.params[i].kind == "tensor" for i in found.inputs):
        raise BadResults(
            operator=program.name, found=", ".join(found.params[i].name for i in found.results), what="results",
            reason="no tensor is left whose device a call could use", advice="pass one of them: out=()",
            where=program.where,
        )  # fmt: skip
    return found


def _facts(signature: Signature, param: Param, value: Any) -> ArrayFacts:
    """Return the facts of a fake tensor after the checks of element type and rank."""
    if not isinstance(value, torch.Tensor):
        expected, found = f"{param.dtype}{list(param.shape)}", repr(value)
        raise NotAnArray(kernel=signature.name, name=param.name, expected=expected, found=found)
    name = str(value.dtype).rpartition(".")[2].removesuffix("_x2")
    return facts_of_abstract("torch", signature, param, name, tuple(value.shape), tuple(value.stride()))
