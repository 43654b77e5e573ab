"""Common parts of device runtimes that launch texts: the artefact and guarded arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tile_runtime.abi.adapter import RuntimeAdapter
from tile_runtime.abi.kernel_text import KernelText
from tile_runtime.errors.base import InternalError
from tile_runtime.types import Argument, Array

if TYPE_CHECKING:
    from tile_runtime.texts.guarded import GuardedArray


class NamedTarget(Protocol):
    """A target that has a text: of the compiler, or of an artefact."""

    @property
    def text(self) -> str:
        """The target's text."""


class TextAdapter(RuntimeAdapter):
    """Launches texts on a device, and lends guarded arrays there for checks.

    Attributes
    ----------
    target
        What kernels are compiled for.
    library
        What arrays of `from_host` call their library.
    """

    target: NamedTarget
    library: str

    @abstractmethod
    def launch_of(self, kernel: KernelText) -> Callable[..., None]:
        """Return the launch of a text, which takes values by the adapter's convention."""

    @abstractmethod
    def arrays(self) -> type[GuardedArray]:
        """Return the type of the arrays that `from_host` makes."""

    def load(self, artefact: KernelText) -> Callable[..., None]:
        """Return the launch of a ``KernelText``, see `launch_of`.

        Raises
        ------
        InternalError
            The backend's passes made something else.
        """
        if not isinstance(artefact, KernelText):
            detail = f"the pipeline of {self.target.text} made {type(artefact).__name__}, no text"
            raise InternalError(stage="loading", detail=detail)
        return self.launch_of(artefact)

    def to_host(self, array: Argument) -> Array:
        """Copy an array that `from_host` returned back, once the work on it has finished.

        Raises
        ------
        MemoryDamaged
            Memory around the array was written.
        KernelError
            The device reports a fault.
        NotProvided
            The array was not made by this runtime.
        """
        from tile_runtime.texts.guarded import require_own

        return require_own(array, self.arrays(), self.target.text).get()

    def allocate(self, library: str, shape: tuple[int, ...], dtype: str, device: tuple[int, int]) -> Argument:
        """Allocate an output among arrays of `from_host`; other libraries allocate their own."""
        if library != self.library:
            return None
        import numpy as np

        from tile_runtime.dtypes import DTYPES

        return self.from_host(np.empty(shape, DTYPES[dtype].numpy()))
