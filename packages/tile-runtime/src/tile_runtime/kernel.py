"""``LoadedKernel``: a loaded kernel, to be called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from tile_runtime.abi.adapter import AdapterFacts, HostMemory
from tile_runtime.abi.signature import Signature
from tile_runtime.calls.binder import Binder
from tile_runtime.calls.wide import WideVersion
from tile_runtime.compat.exits import gate_at_exit
from tile_runtime.errors.base import TileError
from tile_runtime.errors.launch import NotProvided
from tile_runtime.traces import shorten
from tile_runtime.types import Argument


class LoadedKernel:
    """A kernel loaded by one runtime; call it with arrays.

    Parameters
    ----------
    signature
        The kernel's signature.
    launch
        The result of the adapter's ``load``.
    adapter
        The adapter; host memory by default.
    hidden
        Symbols that the launch takes after the parameters, see `Binder`.
    wide
        The version for arrays that 32-bit offsets do not reach, see `Binder`.
    target
        The target, as text.
    """

    def __init__(
        self,
        signature: Signature,
        launch: Callable[..., object],
        *,
        adapter: AdapterFacts | None = None,
        hidden: Sequence[str] | None = None,
        wide: WideVersion | None = None,
        target: str = "",
    ) -> None:
        self.signature = signature
        self.adapter: AdapterFacts = adapter or HostMemory()
        self._binder = Binder(signature, launch, self.adapter, hidden, wide and wide.by(None))
        self._target = target

    def __call__(self, *args: Argument, **kwargs: Argument) -> Argument:
        """Launch.

        Parameters
        ----------
        *args, **kwargs
            One value per parameter of the signature that ``out_idx`` does not name, by position or by name.

        Returns
        -------
        Any
            ``None`` without ``out_idx``; the output; or a tuple of the outputs in the order of ``out_idx``.

        Raises
        ------
        LaunchError
            K4xx: an argument is refused. Nothing was launched.
        """
        # A call takes hundreds of nanoseconds: go straight to the function of its form.
        try:
            return self._binder(*args, **kwargs) if kwargs else self._binder.call(args)
        except TileError as error:
            shorten(error)
            raise error

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.signature.name

    @property
    def target(self) -> str:
        """The target that it is compiled for, as text."""
        return self._target

    def __copy__(self) -> LoadedKernel:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> LoadedKernel:
        """Kernels never change, and machine code is not copied."""
        return self

    def __reduce__(self) -> NoReturn:
        advice = "pickle its program, and compile that in the other process"
        reason = "it holds machine code of this process"
        raise NotProvided(kernel=self.name, action="pickling", target=self.target, reason=reason, advice=advice)

    def __repr__(self) -> str:
        return f"<tile.Kernel {self.signature}{f' for {self.target}' if self.target else ''}>"


# Python compilers must not trace into it; torch looks for this mark, which does not need torch.
LoadedKernel.__call__._torchdynamo_disable = True  # type: ignore[attr-defined]

gate_at_exit(LoadedKernel, "__call__")
gate_at_exit(Binder, "launch_bound")
