"""The process in which ``tile doctor`` tries the packages that plug in, see ``tile_core.cli.trials``.

It writes a line of JSON for what it begins to try, and for what it found. Whatever plugins print goes elsewhere.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import IO, TYPE_CHECKING, Any

from tile_core.cli.checks import Check
from tile_core.errors import SetupError, TileError, UnsupportedError
from tile_core.errors import plugins as catalogue
from tile_core.errors.setup import RuntimeBroken
from tile_core.plugins import runtimes
from tile_core.plugins.discovery import BUILTIN
from tile_core.plugins.versions import check_in_step
from tile_runtime.compat import distributions
from tile_runtime.compat.distributions import load_entry

if TYPE_CHECKING:
    from tile_core.plugins.manager import BackendInfo, Plugins

GROUP, DEVICE_GROUP = "tile.checks", "tile.checks.device"

Step = tuple[str, Callable[[], Iterable[Check]]]


def main(argument: str) -> None:
    """Try what the argument names, and write what is found."""
    request = json.loads(argument)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out, tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)  # also what plugins in other languages print

        def say(kind: str, value: object) -> None:
            out.write(json.dumps([kind, value]) + "\n")
            out.flush()

        for subject, run in steps(request.get("device", False)):
            if subject in request["done"] or (request["only"] and subject not in request["only"]):
                continue
            say("begin", subject)
            for check in [*run(), *noise(subject, printed)]:
                say("check", vars(check))
        say("finished", None)


def steps(device: bool = False) -> Iterator[Step]:
    """Yield the trials, each with its function; devices only if requested."""
    yield "packages", damaged
    plugins, problems = installed_backends()
    yield "backends", lambda: problems
    if plugins is not None:
        for name in plugins.all_names():
            yield f"backend {name}", functools.partial(backend, plugins, name)
        for name, entries in runtimes.offered().items():
            yield f"runtime {name}", functools.partial(runtime, plugins, entries)
    for entry in sorted(distributions.entry_points(GROUP), key=lambda e: e.name):
        yield f"package {entry.name}", functools.partial(offered, [entry])
    for entry in sorted(distributions.entry_points(DEVICE_GROUP), key=lambda e: e.name) if device else ():
        yield f"device of {entry.name}", functools.partial(offered, [entry])


def damaged() -> Iterator[Check]:
    """Name packages that were installed or removed in part only."""
    for one in distributions.damaged():
        yield Check("packages", "note", f"{one.folder}: {one.reason}", "reinstall the package, or remove that folder")


def installed_backends() -> tuple[Plugins | None, list[Check]]:
    """Return the installed backends, not loaded, and the problems of the list itself."""
    from tile_core.plugins.manager import installed

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = installed()
        except TileError as error:
            return None, [Check("backends", "missing", error.message, error.help)]
    return found, _warned("backends", caught)


def backend(plugins: Plugins, name: str) -> Iterator[Check]:
    """Load a backend, call all its hooks, and compile a kernel for its first target."""
    info = plugins.info(name)
    subject = f"backend {name}"
    if info.status != "ok":
        yield Check(subject, "missing", info.reason, info.remedy)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _tried(plugins, info)
    # Warnings about add-ons have lines of their own.
    lacks = _warned(subject, caught, name)
    if found.status != "OK" or not lacks:
        yield found
    yield from lacks


def runtime(plugins: Plugins, entries: Sequence[EntryPoint]) -> Iterator[Check]:
    """Make a runtime of ``tile.runtimes`` for the built-in target, which it may refuse.

    Parameters
    ----------
    plugins
        The installed backends.
    entries
        All offers of one name.
    """
    subject, owner = f"runtime {entries[0].name}", " ".join(runtimes.owner_of(entries[0]))
    try:
        runtimes.make_runtime(entries, plugins.resolve_target(BUILTIN.name), plugins)
    except TileError as error:
        if _is_defect(error):
            yield Check(subject, "missing", f"{owner}: [{error.code}] {error.message}", error.help)
            return
    yield Check(subject, "OK", f"{owner}: supports targets of other packages")


def offered(entries: Iterable[EntryPoint]) -> Iterator[Check]:
    """Run the checks that installed packages add: functions of the entry-point group ``tile.checks``.

    A function is called without arguments and yields `Check` values. On a machine without the package's device it says
    so as a ``"note"``.

    Parameters
    ----------
    entries
        The entry points to use.
    """
    for entry in entries:
        name, remedy = f"package {entry.name}", "reinstall the package that provides it"
        try:
            check_in_step(entry, f"package {entry.name!r}")
            for check in load_entry(entry)():
                if isinstance(check, Check):
                    yield check
                else:
                    yield Check(name, "missing", f"its checks answer {check!r:.80}; expected a Check", remedy)
        except TileError as error:
            yield Check(name, "missing", error.message, error.help)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the plugin boundary
            yield Check(name, "missing", f"its checks do not run: {type(error).__name__}: {error}", remedy)


def noise(subject: str, printed: IO[bytes]) -> Iterator[Check]:
    """Yield a note if something has been printed, and forget it."""
    sys.stdout.flush()
    printed.seek(0)
    text = printed.read().decode("utf-8", errors="replace").strip()
    printed.seek(0)
    printed.truncate()
    if text:
        detail = f"it prints to standard output, where programs read results: {text.splitlines()[0][:80]!r}"
        yield Check(subject, "note", detail, "have its authors remove that; warnings belong to the module `warnings`")


def _warned(subject: str, caught: Iterable[warnings.WarningMessage], backend: str = "") -> list[Check]:
    """Return the warnings about backends that could not take part, of all backends by default."""
    from tile_core.plugins.discovery import BackendWarning

    remedy = "reinstall or uninstall the package that provides it"
    found = (warning.message for warning in caught)
    mine = [w for w in found if isinstance(w, BackendWarning) and backend in ("", w.backend)]
    return [Check(subject, "missing", str(w), remedy) for w in mine]


def _tried(plugins: Plugins, info: BackendInfo) -> Check:
    subject, what = f"backend {info.name}", f"{info.distribution} {info.version}"
    kinds = ", ".join(info.target_kinds) or "an add-on"
    try:
        return Check(subject, "OK", f"{what}: {kinds}; compiles for {_use(plugins, info)}")
    except KeyboardInterrupt:
        raise
    except TileError as error:
        detail = f"{what}: [{error.code}] {error.message}"
        return Check(subject, "missing" if _is_defect(error) else "note", detail, error.help)
    except BaseException as error:  # of a value that the backend made, in code of the core
        detail = f"{what}: {type(error).__name__}: {error}"
        return Check(subject, "missing", detail, "report it to the authors of the backend")


def _use(plugins: Plugins, info: BackendInfo) -> str:
    """Call all hooks of a backend, compile a small kernel, and return its target."""
    import tile_core as tile
    from tile_core.compiler import lower
    from tile_core.plugins.contexts import make_context

    for name in plugins.names_of(info.name):
        plugins.language_name(name)
    plugins.detect(info.name)
    texts = info.architectures or info.target_kinds or (info.name.partition(".")[0],)
    targets = [plugins.resolve_target(text) for text in texts]
    first = targets[0]
    plugins.emulation(first)
    plugins.testing_names(first)
    plugins.tilings(first)
    if plugins.runtimes(first):
        tile.compile(_kernel(), first)
    else:
        lower(_kernel(), make_context(first, plugins=plugins), plugins)
    return first.text


def _kernel() -> Any:
    """Return a product with tails in all directions."""
    from tile_core.cli.demo_kernel import matmul

    return matmul(37, 29, 51, 32, 32, 16)


def _is_defect(error: TileError) -> bool:
    """Whether an error reports a broken backend, not a missing part of this machine."""
    if isinstance(error, UnsupportedError):
        return False
    of_machine = isinstance(error, SetupError) and type(error).__module__ != catalogue.__name__
    return not of_machine or isinstance(error, RuntimeBroken)
