"""The runtime ``emulator``: kernels of any target whose backend has a dialect."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.abi.adapter import HOST_DEVICE, RuntimeAdapter
from tile_core.abi.kernel_text import KernelText
from tile_core.emit.dialect import Dialect
from tile_emulator.api import CHECKS, Completion, Order, run
from tile_emulator.errors import NotEmulated
from tile_emulator.image import behind
from tile_emulator.limits import RunLimits
from tile_emulator.sparse import assign
from tile_runtime.texts.choose import TextChoice

if TYPE_CHECKING:
    from tile_core.target import Target

NAME = "emulator"


def runtime(target: Target, dialect: Any) -> EmulatorAdapter:
    """Make the runtime for a target: the entry point of the group ``tile.runtimes``.

    Parameters
    ----------
    target
        What the kernel was compiled for.
    dialect
        The answer of its backend to ``tile_emulation``.

    Raises
    ------
    NotEmulated
        The backend has no dialect.
    """
    if dialect is None:
        raise NotEmulated(target=target.text, reason="its backend offers no model of its text")
    if not isinstance(dialect, Dialect):
        raise NotEmulated(target=target.text, reason=f"its backend offers {type(dialect).__name__} as a dialect")
    return EmulatorAdapter(dialect, target.text)


class EmulatorAdapter(RuntimeAdapter):
    """Runs kernels on host memory by emulation; a fault raises ``FaultFound``.

    Parameters
    ----------
    dialect
        The model of the text's language.
    target
        The target, for messages.
    checks, order, completion, seed, limits
        As for ``tile_emulator.run``. By default the kernel is run with every check and late completion.
    """

    name = NAME
    devices = frozenset({HOST_DEVICE})
    convention = "packed"

    def __init__(
        self,
        dialect: Dialect,
        target: str = "",
        *,
        checks: tuple[str, ...] = CHECKS,
        order: Order = "forward",
        completion: Completion = "late",
        seed: int = 0,
        limits: RunLimits | None = None,
    ) -> None:
        self.dialect = dialect
        self.target = target
        self._how: dict[str, Any] = {
            "checks": checks, "order": order, "completion": completion, "seed": seed, "limits": limits,
        }  # fmt: skip

    def load(self, artefact: Any) -> Callable[..., Any]:
        """Return a function that runs the kernel, with one value per emitted parameter.

        Raises
        ------
        NotEmulated
            The artefact is no text.
        """
        if not isinstance(artefact, KernelText):
            raise NotEmulated(target=self.target, reason=f"it is built from {type(artefact).__name__}, not from text")
        params = artefact.facts.given
        choose: TextChoice[KernelText] = TextChoice(artefact, lambda kernel: kernel)

        def emulate(*values: Any) -> None:
            given = {p.name: _given(p.kind, value) for p, value in zip(params, values, strict=True)}
            kernel = choose([_address(value) for value in given.values()])
            result = run(kernel.text, kernel.facts, given, self.dialect, **self._how)
            sys.stdout.write(result.printed)
            for param, value in zip(params, values, strict=True):
                if param.name in result.outputs:
                    target = np.asarray(value)
                    assign(target, result.outputs[param.name].view(target.dtype))
                for n, array in enumerate(getattr(value, "arrays", ())):
                    other = np.asarray(array)
                    assign(other, result.outputs[behind(param.name, n)])
            result.check(kernel.facts.kernel)

        def launch(*values: Any) -> None:
            # torch.compile traces all functions that compiled code calls, and must not trace this one.
            compiler = sys.modules.get("torch._dynamo")
            (emulate if compiler is None else compiler.disable(emulate))(*values)

        return launch

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when the kernel has ended."""


def _given(kind: str, value: Any) -> Any:
    return value if kind != "pointer" or hasattr(value, "arrays") else np.asarray(value)


def _address(value: Any) -> Any:
    """Return an array's address, as a device would receive it, or an unchanged scalar."""
    if isinstance(value, ctypes.c_void_p):
        return value.value or 0
    return value.__array_interface__["data"][0] if isinstance(value, np.ndarray) else value
