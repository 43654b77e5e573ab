"""Load a kernel from its file, with the runtime of its target's backend."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tile_runtime.abi.adapter import RuntimeAdapter
from tile_runtime.calls.arguments import only_catalogue
from tile_runtime.calls.launches import in_order
from tile_runtime.compat.packages import folders_of
from tile_runtime.errors.artefacts import (
    ArtefactNotRunnable,
    CannotReadArtefact,
    DamagedArtefact,
    MissingBackend,
    UntrustedArtefact,
)
from tile_runtime.errors.setup import RuntimeBroken
from tile_runtime.files import trust
from tile_runtime.files.artefact import Artefact, from_bytes
from tile_runtime.kernel import LoadedKernel
from tile_runtime.loaders import ask_adapter, loader
from tile_runtime.traces import short_traces


@short_traces
def load(path: str | os.PathLike[str]) -> LoadedKernel:
    """Load a kernel that ``kernel.export`` wrote.

    An exported kernel is code: load only what you trust. Its checksum detects damage, not tampering. A file that users
    other than this one and the administrator can change is refused, unless ``TILE_TRUST_FILES=1`` is set.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CannotReadArtefact, NotAnArtefact, NewerArtefact, DamagedArtefact
        The file does not exist, is something else, of a later version, or was altered after writing.
    UntrustedArtefact
        Other users could have changed it.
    MissingBackend
        No installed package loads kernels for its target.
    ArtefactNotRunnable
        No device of this machine can run it.
    """
    file = Path(path)
    artefact = artefact_of(read(file), file)
    return kernel_of(artefact, runtime_of(artefact, file), file)


def read(file: Path) -> bytes:
    """Return the content of a file that no other user could have changed.

    Raises
    ------
    CannotReadArtefact, UntrustedArtefact
        See `load`.
    """
    try:
        content, others = trust.read_file(file)
        others = others or trust.doubt(file.resolve().parent)
    except OSError as error:
        raise CannotReadArtefact(file=file, reason=error.strerror or str(error)) from error
    if others:
        raise UntrustedArtefact(file=file, reason=others)
    return content


def artefact_of(content: bytes, file: object) -> Artefact:
    """Return the artefact of a file's content, whose launches take only what the kernel has.

    Raises
    ------
    NotAnArtefact, NewerArtefact, DamagedArtefact
        See `load`.
    """
    artefact = from_bytes(content, file)
    params = {p.name for p in artefact.signature.params}
    unknown = set(artefact.hidden) - {*artefact.signature.symbols, *params}
    unknown |= {p.name for one in artefact.launches for p in one.signature.params} - params
    unknown |= {name for one in artefact.launches for name in one.hidden} - {*artefact.hidden}
    if unknown:
        raise DamagedArtefact(file=file, reason=f"a launch needs {min(unknown)}, which is not a symbol of the kernel")
    return artefact


def runtime_of(artefact: Artefact, file: object) -> RuntimeAdapter:
    """Return the runtime that loads an artefact.

    Raises
    ------
    MissingBackend
        No installed package has one.
    """
    found = loader(artefact.backend, artefact.target)
    if found is None:
        raise missing_backend(file, artefact)
    return found


class FromBackend(Protocol):
    """Machine code that a backend's loader launches."""

    @property
    def target(self) -> str:
        """The target's text."""

    @property
    def backend(self) -> str:
        """The backend's name."""

    @property
    def package(self) -> str:
        """The distribution that launches it, if it is known."""


def missing_backend(file: object, wanted: FromBackend) -> MissingBackend:
    """Return the refusal of code whose backend is not installed."""
    package = wanted.package or f"tile-{wanted.backend}"
    return MissingBackend(
        file=file, target=wanted.target, backend=wanted.backend, package=package, folders=folders_of(package)
    )


def kernel_of(artefact: Artefact, adapter: RuntimeAdapter, file: object) -> LoadedKernel:
    """Return the kernel of an artefact, loaded by a runtime."""
    launch = launch_of(artefact, adapter, file)
    return LoadedKernel(artefact.signature, launch, adapter=adapter, hidden=artefact.hidden, target=artefact.target)


def launch_of(artefact: Artefact, adapter: RuntimeAdapter, file: object) -> Callable[..., object]:
    """Return the launch of an artefact, loaded by a runtime.

    Raises
    ------
    ArtefactNotRunnable, DamagedArtefact
        See `load`.
    """
    launches = []
    stages = artefact.launches or (artefact,)
    with only_catalogue("loading", artefact.signature.where):
        for stage in stages:
            if reason := refusal_of(stage, adapter):
                raise ArtefactNotRunnable(file=file, target=artefact.target, reason=reason)
            try:
                launches.append(ask_adapter(adapter, "load", stage.text))
            except RuntimeBroken as error:
                # Attributes that only the backend could understand, but does not.
                raise DamagedArtefact(file=file, reason=error.message) from error
    names = [p.name for p in artefact.signature.params]
    return in_order(launches, stages, names, artefact.hidden, adapter.convention)


def refusal_of(artefact: Artefact, adapter: RuntimeAdapter) -> str:
    """Return why no device of this machine can run an artefact; empty if one can."""
    built = artefact.text.built
    if built is None or built.runtime != adapter.name:
        return ""
    return str(ask_adapter(adapter, "refuses", built))
