"""The adapter of a package without launches: it compiles texts, and explains their use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tile_core.abi.adapter import HOST_DEVICE, Built, RuntimeAdapter
from tile_core.abi.kernel_text import KernelText
from tile_rocm_stub import build
from tile_rocm_stub.errors import TextOnly

if TYPE_CHECKING:
    from tile_core.target import Target

CODE_OBJECT = "hsaco"
#: The DLPack device type of AMD GPUs (``kDLROCM``).
_ROCM_DEVICE = 10


class TextOnlyAdapter(RuntimeAdapter):
    """Builds and loads every kernel, and launches none; arrays may be anywhere.

    Parameters
    ----------
    target
        What kernels are compiled for.
    """

    name = "rocm"
    devices = frozenset({HOST_DEVICE, _ROCM_DEVICE})
    launches = False

    def __init__(self, target: Target) -> None:
        self.target = target

    def toolchain(self) -> str:
        """Return the version of clang, see `build.toolchain`."""
        return build.toolchain(self.target.arch)

    def build(self, artefact: Any) -> Built | None:
        """Compile a text for the target's architecture, see `build.code_object`."""
        if not isinstance(artefact, KernelText):
            return None
        made = build.code_object(artefact, self.target.arch)
        return Built(self.name, CODE_OBJECT, made.data, self.target.arch, made.facts)

    def load(self, artefact: Any) -> Callable[..., Any]:
        """Return a function that refuses.

        Raises
        ------
        TextOnly
            When it is called.
        """
        entry, target = str(artefact.facts.entry), self.target

        def launch(*values: Any) -> NoReturn:
            raise TextOnly(kernel=entry, target=target.text, arch=target.arch)

        return launch

    def synchronize(self) -> None:
        """Do nothing: nothing was launched."""
