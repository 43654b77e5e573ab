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
from tile_core.errors.artefacts import CannotWriteArtefact
from tile_core.errors.base import SetupError, Where, printable
from tile_core.errors.launch import NotProvided
from tile_core.plugins.discovery import NO_DISTRIBUTION
from tile_core.plugins.runtimes import find_runtime
from tile_core.runtime.files import write_named
from tile_core.runtime.kernel import Kernel, Origin
from tile_core.runtime.settings import path_of, text_of
from tile_runtime.calls.arguments import only_catalogue
from tile_runtime.cpu.loader import LibraryAdapter
from tile_runtime.files.artefact import Artefact, moved, to_bytes
from tile_runtime.files.loading import artefact_of, launch_of, missing_backend, read
from tile_runtime.loaders import ask_adapter, loader

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
    content = read(file)
    artefact, plugins = artefact_of(content, file), installed()
    if artefact.backend not in plugins.names():
        raise missing_backend(file, artefact)
    target = plugins.resolve_target(artefact.target)

    def loaded(name: str | None) -> tuple[Callable[..., object], AdapterFacts]:
        adapter = _runtime(artefact, target, plugins, name)
        return launch_of(artefact, adapter, file), adapter

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


def _runtime(artefact: Artefact, target: Target, plugins: Plugins, name: str | None) -> RuntimeAdapter:
    """Return the runtime of a name; by default the one whose binary an artefact has."""
    built = artefact.text.built
    if name is None and built is not None and built.runtime not in [one.name for one in plugins.runtimes(target)]:
        found = loader(artefact.backend, artefact.target)
        if found is not None:
            return found
    return find_runtime(plugins, target, name)


def write_artefact(
    path: Path, signature: Signature, stages: Sequence[CompiledLaunch], target: Target, plugins: Plugins
) -> None:
    """Write a kernel's texts and their built form to a file, without a device.

    Parameters
    ----------
    path
        The file; an existing one is replaced.
    signature, stages, target, plugins
        See `artefact_bytes`.

    Raises
    ------
    NotProvided, NoToolchain
        See `artefact_bytes`.
    CannotWriteArtefact
        The path cannot be written.
    """
    _write(path, artefact_bytes(signature, stages, target, plugins))


def artefact_bytes(signature: Signature, stages: Sequence[CompiledLaunch], target: Target, plugins: Plugins) -> bytes:
    """Return the content of a kernel's file, which is built without a device.

    Parameters
    ----------
    signature
        How the kernel is called.
    stages
        Its launches in order.
    target, plugins
        The target, and the backends.

    Raises
    ------
    NotProvided
        Its code calls functions of this process, or its target has no form that a file can hold.
    NoToolchain
        It has to be linked, and there is no linker.
    """
    with only_catalogue("export", signature.where):
        adapter = next(iter(plugins.runtimes(target)), None)
        made, hidden = [], {}
        for stage in stages:
            text, own = _text_of(stage, signature, adapter, target)
            made.append(_content(stage.signature, text, own, target, plugins))
            hidden.update(dict.fromkeys(own))
        if len(made) == 1:
            return made[0][0]
        whole = _artefact(signature, made[0][1], tuple(hidden), target, plugins)
        return to_bytes(whole, launches=[content for content, _ in made])


def _text_of(
    stage: CompiledLaunch, signature: Signature, adapter: RuntimeAdapter | None, target: Target
) -> tuple[KernelText, tuple[str, ...]]:
    """Return the text of a launch, and the symbols that it takes behind its parameters."""
    if isinstance(stage.lowered, KernelText):
        return stage.lowered, stage.hidden
    text: KernelText | None = (
        None if adapter is None else ask_adapter(adapter, "exported", stage.lowered, stage.program.symbols)
    )
    if text is None:
        reason = "its code calls functions of this process, as T.print and assertions do, or no file can hold it"
        advice = "leave these calls out, or compile it for a target that emits text (`tile targets` lists these)"
        action = "export()"
        raise NotProvided(kernel=signature.name, action=action, target=target.text, reason=reason, advice=advice)
    named = dataclasses.replace(text, facts=dataclasses.replace(text.facts, name=signature.name))
    return named, tuple(p.name for p in text.facts.given[len(stage.signature.params) :])


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


def _built(texts: Sequence[KernelText], target: Target, plugins: Plugins) -> list[KernelText]:
    """Return texts with their form built by the target's runtime, building it now if missing."""
    if texts[0].built is not None and texts[0].built.runtime == LibraryAdapter.name:
        return list(texts)
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
