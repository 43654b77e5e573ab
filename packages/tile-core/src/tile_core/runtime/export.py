"""``tile.load`` and ``kernel.export``: kernels saved to files, and loaded without the compiler."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.abi.adapter import RuntimeAdapter
from tile_core.abi.kernel_text import KernelText
from tile_core.compat.known_packages import KINDS
from tile_core.errors.artefacts import (
    ArtefactNotRunnable,
    CannotReadArtefact,
    CannotWriteArtefact,
    DamagedArtefact,
    MissingBackend,
    UntrustedArtefact,
)
from tile_core.errors.base import SetupError, Where, printable
from tile_core.errors.launch import NotProvided
from tile_core.errors.setup import RuntimeBroken
from tile_core.plugins.discovery import NO_DISTRIBUTION
from tile_core.plugins.runtimes import ask_adapter, find_runtime
from tile_core.runtime import trust
from tile_core.runtime.arguments import only_catalogue
from tile_core.runtime.artefact import Artefact, from_bytes, moved, to_bytes
from tile_core.runtime.files import write_named
from tile_core.runtime.kernel import Kernel, Origin
from tile_core.runtime.launches import in_order
from tile_core.runtime.settings import path_of, text_of

if TYPE_CHECKING:
    from tile_core.abi.adapter import AdapterFacts
    from tile_core.abi.signature import Signature
    from tile_core.plugins.manager import Plugins
    from tile_core.runtime.launches import CompiledLaunch
    from tile_core.target import Target


class ExportWarning(UserWarning):
    """An exported file is less complete than it could be."""


def load(path: str | os.PathLike[str], *, runtime: str | None = None) -> Kernel:
    """Load a kernel that ``kernel.export`` wrote, without importing the compiler.

    An exported kernel is code: load only what you trust. Its checksum detects damage, not tampering. A file that users
    other than this one and the administrator can change is refused, unless ``TILE_TRUST_FILES=1`` is set.

    Parameters
    ----------
    path
        The file.
    runtime
        Name of a runtime of the kernel's target or of one that serves all (``"emulator"``); by default its backend's
        choice.

    Returns
    -------
    Kernel
        Call it with arrays. It has no program: ``verify`` and ``explain`` are refused.

    Raises
    ------
    CannotReadArtefact, NotAnArtefact, NewerArtefact, DamagedArtefact
        The file does not exist, is something else, of a later version, or was altered after writing.
    UntrustedArtefact
        Other users could have changed it.
    MissingBackend
        The backend of the kernel's target is not installed.
    ArtefactNotRunnable
        No device of this machine can run it.
    """
    from tile_core.plugins.manager import installed

    file = path_of("tile.load", "path", path)
    runtime = None if runtime is None else text_of("tile.load", "runtime", runtime)
    content = _read(file)
    artefact, plugins = from_bytes(content, file), installed()
    _check_names(artefact, file)
    if artefact.backend not in plugins.names():
        package = artefact.package or f"tile-{artefact.backend}"
        raise MissingBackend(file=file, target=artefact.target, backend=artefact.backend, package=package)
    target = plugins.resolve_target(artefact.target)

    def loaded(name: str | None) -> tuple[Callable[..., object], AdapterFacts]:
        return _load(artefact, target, plugins, name, file)

    launch, adapter = loaded(runtime)
    return Kernel(
        artefact.signature,
        launch,
        adapter=adapter,
        hidden=artefact.hidden,
        origin=Origin(
            target=artefact.target,
            source="\n\n".join(one.text.text for one in artefact.launches or (artefact,)),
            export=lambda kernel, path: _write(path, content),
            runtimes=loaded,
        ),
    )


def _check_names(artefact: Artefact, file: Path) -> None:
    """Refuse launches that take what the kernel does not."""
    params = {p.name for p in artefact.signature.params}
    unknown = set(artefact.hidden) - {*artefact.signature.symbols, *params}
    unknown |= {p.name for one in artefact.launches for p in one.signature.params} - params
    unknown |= {name for one in artefact.launches for name in one.hidden} - {*artefact.hidden}
    if unknown:
        raise DamagedArtefact(file=file, reason=f"a launch needs {min(unknown)}, which is not a symbol of the kernel")


def _read(file: Path) -> bytes:
    """Return the content of a file that no other user could have changed."""
    try:
        content, others = trust.read_file(file)
        others = others or trust.doubt(file.resolve().parent)
    except OSError as error:
        raise CannotReadArtefact(file=file, reason=error.strerror or str(error)) from error
    if others:
        raise UntrustedArtefact(file=file, reason=others)
    return content


def write_artefact(
    path: Path,
    signature: Signature,
    stages: Sequence[CompiledLaunch],
    hidden: Sequence[str],
    target: Target,
    plugins: Plugins,
) -> None:
    """Write a kernel's texts and their built form to a file, without a device.

    Parameters
    ----------
    path
        The file; an existing one is replaced.
    signature, hidden
        How the kernel is called.
    stages
        Its launches in order.
    target, plugins
        The target, and the backends.

    Raises
    ------
    NotProvided
        It is not made of text, which is what a file can hold.
    CannotWriteArtefact
        The path cannot be written.
    """
    if not all(isinstance(stage.lowered, KernelText) for stage in stages):
        reason = "its machine code is linked into this process, and a file can hold text and what is built of text"
        advice = "compile it for a target that emits text (`tile targets` lists those that are installed)"
        action = "export()"
        raise NotProvided(kernel=signature.name, action=action, target=target.text, reason=reason, advice=advice)
    with only_catalogue("export", signature.where):
        if len(stages) == 1:
            content, _ = _content(signature, stages[0].lowered, hidden, target, plugins)
        else:
            made = [_content(s.signature, s.lowered, s.hidden, target, plugins) for s in stages]
            whole = _artefact(signature, made[0][1], hidden, target, plugins)
            content = to_bytes(whole, launches=[content for content, _ in made])
        _write(path, content)


def _content(
    signature: Signature, lowered: KernelText, hidden: Sequence[str], target: Target, plugins: Plugins
) -> tuple[bytes, KernelText]:
    """Return the file of one launch, and its text."""
    texts = [lowered]
    while (make := texts[-1].general) is not None and (text := make()) is not None:
        texts.append(text)
    first, *general = (moved(text, _portable) for text in _built(texts, target, plugins))
    return to_bytes(_artefact(signature, first, hidden, target, plugins), general), first


def _artefact(
    signature: Signature, text: KernelText, hidden: Sequence[str], target: Target, plugins: Plugins
) -> Artefact:
    from tile_core.runtime.cache_key import versions

    info = next(b for b in plugins.targets() if b.name == target.backend)
    package = KINDS.get(target.kind, "") if info.distribution == NO_DISTRIBUTION else info.distribution
    return Artefact(
        dataclasses.replace(signature, where=None if signature.where is None else _portable(signature.where)),
        target.text,
        target.backend,
        text,
        package=package,
        hidden=tuple(hidden),
        versions={**versions(), package or target.backend: info.version},
    )


def _load(
    artefact: Artefact, target: Target, plugins: Plugins, runtime: str | None, file: Path
) -> tuple[Callable[..., object], AdapterFacts]:
    """Return the launch of an exported kernel and the runtime that loaded it."""
    adapter = find_runtime(plugins, target, runtime)
    launches = []
    stages = artefact.launches or (artefact,)
    with only_catalogue("loading", artefact.signature.where):
        for stage in stages:
            built = stage.text.built
            ours = built is not None and built.runtime == adapter.name
            if ours and (reason := ask_adapter(adapter, "refuses", built)):
                raise ArtefactNotRunnable(file=file, target=artefact.target, reason=reason)
            try:
                launches.append(ask_adapter(adapter, "load", stage.text))
            except RuntimeBroken as error:
                # Attributes that only the backend could understand, but does not.
                raise DamagedArtefact(file=file, reason=error.message) from error
    names = [p.name for p in artefact.signature.params]
    return in_order(launches, stages, names, artefact.hidden, adapter.convention), adapter


def _built(texts: Sequence[KernelText], target: Target, plugins: Plugins) -> list[KernelText]:
    """Return texts with their form built by the target's runtime, building it now if missing."""
    adapter = next(iter(plugins.runtimes(target)), None)
    if adapter is None or type(adapter).build is RuntimeAdapter.build:
        return [dataclasses.replace(text, built=None) for text in texts]
    missing = ""
    try:
        if not ask_adapter(adapter, "toolchain"):
            missing = "its toolchain is not installed"
    except SetupError as error:
        missing = error.message
    done = []
    for text in texts:
        # An existing one may be from another runtime.
        built = text.built if text.built is not None and text.built.runtime == adapter.name else None
        if built is None and not missing:
            built = ask_adapter(adapter, "build", text)
        done.append(dataclasses.replace(text, built=built))
    if missing and any(text.built is None for text in done):
        message = f"the exported file holds text that must be built where it is loaded: {missing}"
        warnings.warn(message, ExportWarning, stacklevel=5)
    return done


def _portable(where: Where) -> Where:
    """Return a place by the name of its file alone: the same on every machine."""
    return Where(printable(os.path.basename(where.file)), where.line)


def _write(path: Path, content: bytes) -> None:
    try:
        write_named(path, content)
    except OSError as error:
        raise CannotWriteArtefact(file=path, reason=error.strerror or str(error)) from error
