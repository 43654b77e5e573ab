"""Make the frozen context of a compilation, with resolved target and checked options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.context import Context
from tile_core.errors.plugins import InvalidOptions
from tile_core.renamed_options import current_names
from tile_core.target import Target
from tile_runtime import knobs as _knobs
from tile_runtime.errors.guess import nearest

if TYPE_CHECKING:
    from tile_core.manifest import BackendManifest
    from tile_core.plugins.manager import Plugins


def make_context(
    target: Target | str = "auto",
    options: object = None,
    *,
    plugins: Plugins | None = None,
) -> Context:
    """Resolve a target once and freeze what the compilation depends on.

    Parameters
    ----------
    target
        A target or its text; ``"auto"`` finds the best device of this machine.
    options
        ``None`` (defaults), an instance of the backend's options type, or a mapping of its fields.
    plugins
        The backends to query; the installed ones if not given.

    Raises
    ------
    UnknownTarget, BackendBroken
        If no backend answers.
    InvalidOptions
        If the options are not that backend's.
    """
    if plugins is None:
        from tile_core.plugins.manager import installed

        plugins = installed()
    resolved = plugins.resolve_target(target)
    manifest = plugins.manifest(resolved.backend)
    return Context(resolved, manifest, make_options(manifest, options), _knobs.current())


def make_options(manifest: BackendManifest, options: object) -> Any:
    """An instance of the backend's options type from what the user gave (see ``make_context``).

    Raises
    ------
    InvalidOptions
        If the backend has no options, a field is unknown, or the type's own checks refuse a value.
    """
    kind = manifest.options
    if kind is None:
        if options is None or options == {}:
            return None
        raise InvalidOptions(backend=manifest.name, found=repr(options), expected="no options: this backend has none")
    if options is None:
        return kind()
    if isinstance(options, kind):
        return options
    if not isinstance(options, Mapping):
        raise InvalidOptions(backend=manifest.name, found=repr(options), expected=f"{kind.__name__} or a mapping")
    names = [f.name for f in dataclasses.fields(kind) if f.init]
    options = with_current_names(manifest, options)
    for name in options:
        if name not in names:
            near = nearest(str(name), names)
            expected = f"{near[0]!r}" if near else f"one of: {', '.join(names)}"
            raise InvalidOptions(backend=manifest.name, found=repr(name), expected=expected)
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        found = ", ".join(f"{key}={value!r}" for key, value in options.items())
        fix = "correct the value, or leave the option out for its default"
        raise InvalidOptions(backend=manifest.name, found=found, expected=str(error), fix=fix) from error


def with_current_names(manifest: BackendManifest, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a backend's options by their current names, see `tile_core.renamed_options`.

    Raises
    ------
    InvalidOptions
        If an option is given by its old and its new name.
    """
    try:
        return current_names(manifest.options, options)
    except (TypeError, ValueError) as error:
        fix = "use the new name only"
        found = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise InvalidOptions(backend=manifest.name, found=found, expected=str(error), fix=fix) from error
