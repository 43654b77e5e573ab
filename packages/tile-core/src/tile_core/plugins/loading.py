"""Wrap pluggy: load a backend, check it, call one hook, and remember failures.

By itself pluggy keeps a plugin registered after its validation failed, silently accepts a misspelt hook, and lets an
exception in one plugin abort the call for all.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import pluggy

from tile_core import __version__
from tile_core.errors.base import TileError
from tile_core.errors.plugins import (
    BackendBroken,
    DuplicateBackend,
    HookFailed,
    HookReturned,
    IncompatibleApi,
    InvalidHook,
    InvalidManifest,
    UnknownBackend,
)
from tile_core.lowering.variant import Variant
from tile_core.manifest import API_VERSION, BackendManifest
from tile_core.plugins import hookspecs
from tile_core.plugins.discovery import Offer
from tile_core.plugins.versions import CORE, check_in_step
from tile_core.target import Target
from tile_runtime.compat.distributions import load_entry
from tile_runtime.compat.exits import check_thread
from tile_runtime.errors.guess import hint
from tile_runtime.errors.interrupts import passed_on


class Registry:
    """The installed backends, the loaded ones, and why others failed to load.

    Parameters
    ----------
    offers
        The installed backends by name (see ``discovery.discover``).
    trace
        Print each call of a hook to the standard error stream.
    """

    def __init__(self, offers: Mapping[str, tuple[Offer, ...]], trace: bool = False) -> None:
        self.offers = dict(offers)
        self.manifests: dict[str, BackendManifest] = {}
        self.failures: dict[str, BaseException] = {}
        self._tracebacks: dict[str, TracebackType | None] = {}
        self._lock = threading.RLock()
        self._pluggy = _PluginManager(hookspecs.PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        if trace:
            self._pluggy.add_hookcall_monitoring(_before, _after)

    def load(self, name: str) -> BackendManifest:
        """Load one backend, once, and nothing else.

        Raises
        ------
        UnknownBackend
            If none is installed with this name.
        DuplicateBackend, OutOfStep, IncompatibleApi, InvalidHook, InvalidManifest, HookFailed, HookReturned
            If it breaks the contract.
        BackendBroken
            If its import raised; that exception is the cause.
        """
        with self._lock:
            if name not in self.manifests and name not in self.failures:
                check_thread()  # a failure is kept: it must be the backend's own
                try:
                    self.manifests[name] = self._load(self._offer(name))
                except (UnknownBackend, KeyboardInterrupt):
                    raise
                # The plugin boundary: any failure of a backend is kept until that backend is requested.
                except BaseException as error:
                    passed_on(error)
                    self.failures[name], self._tracebacks[name] = error, error.__traceback__
            if name in self.manifests:
                return self.manifests[name]
            raise self.failure(name)

    def failure(self, name: str) -> TileError:
        """Return the error of a broken backend; its cause is the first exception."""
        error = self.failures[name]
        if isinstance(error, TileError):
            return error.with_traceback(self._tracebacks[name])  # it would grow with each raise
        reason = f"{type(error).__name__}: {_cut(str(error), 500)}"
        broken = BackendBroken(backend=name, distribution=self.offers[name][0].source, reason=reason)
        broken.__cause__ = error
        return broken

    def implements(self, name: str, hook: str) -> bool:
        """Whether a backend, which is loaded by this, implements a hook."""
        self.load(name)
        plugin = self._pluggy.get_plugin(name)
        return any(impl.plugin is plugin for impl in getattr(self._pluggy.hook, hook).get_hookimpls())

    def ask(self, name: str, hook: str, **arguments: object) -> Any:
        """Call one hook of one backend, and check the type of the answer.

        Returns
        -------
        Any
            The answer; the default of ``OPTIONAL`` if the backend does not implement an optional hook.

        Raises
        ------
        InvalidHook
            If the backend does not implement a hook that is mandatory.
        HookFailed, HookReturned
            If it raised an error outside the catalogue, or answered with another type.
        """
        if not self.implements(name, hook):
            if hook in OPTIONAL:
                return OPTIONAL[hook]
            detail = f"it does not implement the mandatory hook {hook}"
            raise InvalidHook(backend=name, detail=detail, hint=_DEFECT)
        plugin = self._pluggy.get_plugin(name)
        others = [other for other in self._pluggy.get_plugins() if other is not plugin]
        return _checked(name, hook, lambda: self._pluggy.subset_hook_caller(hook, others)(**arguments))

    def pipeline(self, name: str, target: Target, spine: Any) -> Any:
        """Return the passes of a backend: a value of the type of ``spine``."""
        found = self.ask(name, "tile_pipeline", target=target, spine=spine)
        if not isinstance(found, type(spine)):
            expected = f"a {type(spine).__name__}, as the spine that it was given"
            raise HookReturned(backend=name, hook="tile_pipeline", found=_shown(found), expected=expected)
        return found

    def _offer(self, name: str) -> Offer:
        offers = self.offers.get(name, ())
        if not offers:
            what = hint(name, self.offers, "install the package that provides it", "'{}'")
            raise UnknownBackend(found=name, known=", ".join(self.offers), hint=what)
        if len(offers) > 1:
            raise DuplicateBackend(what="backend", found=name, first=offers[0].source, second=offers[1].source)
        return offers[0]

    def _load(self, offer: Offer) -> BackendManifest:
        name = offer.name
        check_in_step(offer.entry, f"backend {name!r}")
        plugin = load_entry(offer.entry)
        function = getattr(plugin, "tile_backend", None)
        if function is None:
            detail = f"{offer.entry.value} does not implement the mandatory hook tile_backend"
            raise InvalidHook(backend=name, detail=detail, hint=_DEFECT)
        # Before pluggy validates the hooks: those of another contract version may be unknown to this one.
        manifest: BackendManifest = _checked(name, "tile_backend", function)
        if manifest.name != name:
            raise InvalidManifest(backend=name, field="name", found=manifest.name, expected="its entry point's name")
        if not manifest.accepts_api():
            raise _incompatible(offer, manifest)
        for kind in manifest.target_kinds:
            if kind != name and kind in self.offers:
                second = self.offers[kind][0].source
                raise DuplicateBackend(what="target kind", found=kind, first=offer.source, second=second)
        self._register(name, plugin)
        return manifest

    def _register(self, name: str, plugin: object) -> None:
        try:
            self._pluggy.register(plugin, name)
            callers = self._pluggy.get_hookcallers(plugin) or []
            unknown = [caller.name for caller in callers if not caller.has_spec()]
            if unknown:
                what = hint(unknown[0], HOOKS, f"the hooks are: {', '.join(HOOKS)}")
                raise InvalidHook(backend=name, detail=f"there is no hook {unknown[0]}", hint=what)
            self._pluggy.check_pending()
        except pluggy.PluginValidationError as error:
            self._pluggy.unregister(name=name)
            raise InvalidHook(backend=name, detail=" ".join(str(error).split()), hint=_DEFECT) from error
        except InvalidHook:
            self._pluggy.unregister(name=name)
            raise


def _incompatible(offer: Offer, manifest: BackendManifest) -> IncompatibleApi:
    older = CORE if manifest.needs_newer_api() else offer.distribution
    return IncompatibleApi(
        backend=offer.name, distribution=offer.source, found=manifest.api, core=__version__, older=older,
        expected=".".join(map(str, API_VERSION)),
    )  # fmt: skip


HOOKS = tuple(name for name in vars(hookspecs) if name.startswith(hookspecs.PREFIX))

# Default answers for optional hooks; the others are mandatory.
OPTIONAL: dict[str, Any] = {
    "tile_detect": None,
    "tile_language": {},
    "tile_tilings": None,
    "tile_runtimes": (),
    "tile_emulation": None,
    "tile_strategies": {},
    "tile_cases": {},
}


class _PluginManager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Take every function named ``tile_*`` as an implementation: so a forgotten decorator cannot hide one."""
        options = super().parse_hookimpl_opts(plugin, name)
        is_function = name.startswith(hookspecs.PREFIX) and inspect.isroutine(getattr(plugin, name))
        return {} if options is None and is_function else options


_DEFECT = "this is a defect of that backend, please report it to its authors"


def _is_lowerings(answer: Any) -> bool:
    variants = isinstance(answer, Sequence) and all(isinstance(v, Variant) for v in answer)
    return variants and all(_is_variant(v) for v in answer)


def _is_variant(v: Variant) -> bool:
    texts = [getattr(v, name, None) for name in ("name", "op")]
    return all(isinstance(text, str) and text for text in texts) and "." in v.name and isinstance(v.priority, int)


def _is_language(answer: Any) -> bool:
    return _are_references(answer) and all(name.isidentifier() for name in answer)


def _are_references(answer: Any) -> bool:
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        return False
    return all(isinstance(ref, str) and ref.count(":") == 1 for ref in answer.values())


def _is_runtimes(answer: object) -> bool:
    return isinstance(answer, Sequence) and all(_has(a, "name devices convention load synchronize") for a in answer)


def _has(answer: object, names: str) -> bool:
    """Whether an answer has the required attributes, without importing classes of other layers."""
    return not isinstance(answer, type) and all(hasattr(answer, name) for name in names.split())


# The requirement on the answer of each hook, in words and as a test.
_ANSWERS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "tile_backend": ("a BackendManifest", lambda a: isinstance(a, BackendManifest)),
    "tile_target": ("a Target or None", lambda a: a is None or isinstance(a, Target)),
    "tile_detect": ("a Target or None", lambda a: a is None or isinstance(a, Target)),
    "tile_language": ('a mapping of names to "module:attribute"', _is_language),
    "tile_lowerings": ('a sequence of variants, each with a name "backend.variant", op and priority', _is_lowerings),
    "tile_pipeline": ("a pipeline", lambda a: a is not None),
    "tile_tilings": ("a TilingModel or None", lambda a: a is None or _has(a, "shapes estimate")),
    "tile_runtimes": ("a sequence of RuntimeAdapters", _is_runtimes),
    "tile_strategies": ('a mapping of names to "module:attribute"', _are_references),
    "tile_cases": ('a mapping of names to "module:attribute"', _are_references),
    "tile_emulation": ("a Dialect or None", lambda a: a is None or _has(a, "name headers prepare call")),
}


def _checked(name: str, hook: str, function: Callable[[], Any]) -> Any:
    try:
        answer = function()
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:  # even a plugin that exits the process only fails its own call
        passed_on(error)
        reason = f"{type(error).__name__}: {_cut(str(error), 500)}"
        raise HookFailed(backend=name, hook=hook, reason=reason) from error
    expected, holds = _ANSWERS[hook]
    if not holds(answer):
        raise HookReturned(backend=name, hook=hook, found=_shown(answer), expected=expected)
    return answer


def _shown(answer: object) -> str:
    return _cut(repr(answer), 80)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _before(hook: str, implementations: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    names = ", ".join(impl.plugin_name for impl in implementations)
    values = ", ".join(f"{key}={value!s}" for key, value in arguments.items())
    print(f"tile: {hook}({values}) asked of {names}", file=sys.stderr)


def _after(outcome: Any, hook: str, implementations: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    shown = f"raised {outcome.exception!r}" if outcome.exception else f"answered {_shown(outcome.get_result())}"
    print(f"tile: {hook} {shown}", file=sys.stderr)
