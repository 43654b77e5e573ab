"""The core's queries of its backends.

``installed()`` returns the backends of this environment. Listing them imports none of them; resolving a target imports
the backend named after its kind, and others only if that one does not answer.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from tile_core.compat import known_packages
from tile_core.errors.base import TileError
from tile_core.errors.naming import alias
from tile_core.errors.plugins import (
    AmbiguousTarget,
    DuplicateName,
    HookFailed,
    HookReturned,
    NotOffered,
    ProvidedElsewhere,
    UnknownTarget,
    UnknownTargetOption,
)
from tile_core.lowering.dispatch import check_variants
from tile_core.lowering.tilings import TilingModel
from tile_core.lowering.variant import Variant
from tile_core.manifest import BackendManifest
from tile_core.plugins.discovery import BUILTIN, BackendWarning, discover
from tile_core.plugins.loading import Registry
from tile_core.records import dataclass
from tile_core.target import Target, split_target
from tile_runtime import knobs
from tile_runtime.errors.guess import nearest
from tile_runtime.errors.interrupts import passed_on

AUTO = "auto"
#: Minimum length of a prefix that identifies a kind.
_ENOUGH = 3


@dataclass(frozen=True)
class BackendInfo:
    """One line of the list of backends.

    Parameters
    ----------
    name
        The backend's name.
    distribution, version
        Its origin.
    status
        ``"ok"``, ``"broken"`` or ``"not loaded"``.
    reason
        Why it is broken; empty otherwise.
    target_kinds
        Target kinds that it owns, if it is loaded.
    architectures
        Targets that it lists, if it is loaded.
    remedy
        One thing to do if it is broken; empty otherwise.
    """

    name: str
    distribution: str
    version: str
    status: str
    reason: str = ""
    target_kinds: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    remedy: str = ""


def installed() -> Plugins:
    """The backends that are installed in this environment, less those that ``TILE_DISABLE_BACKENDS`` names.

    The entry points are read once per process; call ``installed_again`` after installing a package into a running one.
    """
    now = knobs.current()
    return _installed(now.disable_backends, now.trace_plugins)


def installed_again() -> Plugins:
    """Like ``installed``, but re-reads the entry points and forgets failures."""
    _installed.cache_clear()
    return installed()


def targets(load: bool = True) -> tuple[BackendInfo, ...]:
    """The backends of this environment, broken ones with the reason, add-ons included.

    Parameters
    ----------
    load
        Import all of them to see which are broken; without it nothing is imported.
    """
    return installed().targets(load)


class Plugins:
    """A set of backends and the queries on them.

    Parameters
    ----------
    entries
        Entry points to take them from; those of the installed distributions if not given.
    disabled
        Names that are treated as not installed.
    trace
        Print each call of a hook.
    """

    def __init__(
        self,
        entries: Iterable[EntryPoint] | None = None,
        disabled: Iterable[str] = (),
        trace: bool = False,
    ) -> None:
        hidden = set(disabled)
        offers = {name: offer for name, offer in discover(entries).items() if name not in hidden}
        self._hidden = hidden
        self._registry = Registry(offers, trace)
        self._targets: dict[str, Target] = {}
        self._languages: dict[str, Mapping[str, str]] = {}
        self._lowerings: dict[Target, tuple[tuple[Variant, ...], Mapping[str, tuple[Variant, ...]]]] = {}

    # --- what there is ---

    def names(self) -> tuple[str, ...]:
        """Names of the installed backends (without add-ons), the built-in one last. Imports nothing."""
        return tuple(name for name, offers in self._registry.offers.items() if not offers[0].is_addon)

    def all_names(self) -> tuple[str, ...]:
        """The same with the names of add-ons. Imports nothing."""
        return tuple(self._registry.offers)

    def addons(self, kind: str) -> tuple[str, ...]:
        """Names of the add-ons for a target kind. Imports nothing."""
        return tuple(name for name in self._registry.offers if name.startswith(f"{kind}."))

    def targets(self, load: bool = False) -> tuple[BackendInfo, ...]:
        """The installed backends, broken ones included.

        Parameters
        ----------
        load
            Load all of them first, to see which are broken; without it nothing is imported.
        """
        return tuple(self.info(name, load) for name in self.all_names())

    def info(self, name: str, load: bool = True) -> BackendInfo:
        """One line of that list, of an installed backend or add-on; ``load`` as there."""
        offer = self._registry.offers[name][0]
        if load or len(self._registry.offers[name]) > 1:  # a clash of names is found without an import
            self._loadable([name])
        where = (name, offer.distribution, offer.version)
        if name in self._registry.manifests:
            manifest = self._registry.manifests[name]
            return BackendInfo(*where, "ok", "", manifest.target_kinds, manifest.architectures)
        if name in self._registry.failures:
            error = self._registry.failure(name)
            return BackendInfo(*where, "broken", error.message, remedy=error.help)
        return BackendInfo(*where, "not loaded")

    def manifest(self, name: str) -> BackendManifest:
        """The manifest of a backend, which this loads (errors: see ``Registry.load``)."""
        return self._registry.load(name)

    def fingerprint(self, target: Target) -> str:
        """Version text that changes whenever a target's generated code could: its owner's and its add-ons'."""
        return "; ".join(self.manifest(name).fingerprint for name in self._contributions(target)[1])

    # --- targets ---

    def resolve_target(self, target: Target | str = AUTO) -> Target:
        """Find the target named by a text. The same text always gives the same object.

        Parameters
        ----------
        target
            ``"auto"``, ``kind``, ``kind:arch``, ``kind:arch,key=value``, or a target, which is returned.

        Raises
        ------
        MalformedTarget, UnknownTarget, AmbiguousTarget
            If it names none, or several backends answer.
        TileError
            What loading the backend, or the backend itself, raises.
        """
        if isinstance(target, Target):
            return target
        text = str(target).strip()
        if text == AUTO:
            text = knobs.current().target or AUTO
        if text not in self._targets:
            found = self._detect() if text == AUTO else self._find(text)
            self._targets[text] = self._targets.setdefault(found.text, found)
        return self._targets[text]

    def detect(self, name: str) -> Target | None:
        """The target of this machine's device that a backend finds, if any (errors: see ``Registry.ask``)."""
        found: Target | None = self._registry.ask(name, "tile_detect")
        if found is not None:
            self._check_owner(name, "tile_detect", found)
        return found

    # --- the language ---

    def language_name(self, name: str) -> Any:
        """The object that a backend adds to ``T`` as ``name``.

        Loaded backends are queried first, then the one that is listed with such names, then all others.

        Returns
        -------
        Any
            The object, imported now; ``None`` if no backend is known to add the name.

        Raises
        ------
        ProvidedElsewhere
            If a package that is not installed is known to add it.
        NotOffered
            If a package that is known to add it is installed and does not.
        DuplicateName
            If two backends add it.
        TileError
            If the backend that is known to add it is broken.
        """
        package = known_packages.distribution_of(name)
        home = known_packages.BACKENDS.get(package or "", "")
        if home in self._registry.offers:
            self._registry.ask(home, "tile_language")
        loaded = [n for n in self._registry.offers if n in self._registry.manifests]
        owners = self._owners(name, loaded) or self._owners(name, self._registry.offers)
        if len(owners) > 1:
            raise DuplicateName(found=name, first=owners[0][0], second=owners[1][0])
        if owners:
            found = _import_reference(*owners[0])
            return found if owners[0][1].endswith(f":{name}") or not callable(found) else alias(name, found)
        if package is None:
            return None
        if home not in self._registry.offers:
            raise ProvidedElsewhere(found=name, distribution=package, folders=known_packages.folders_of(package))
        if name in known_packages.NAMES:
            raise NotOffered(found=name, distribution=package)
        return None

    def names_of(self, name: str) -> Mapping[str, str]:
        """The names that one backend adds to ``T``, as references (errors: see ``Registry.ask``)."""
        found: Mapping[str, str] = self._registry.ask(name, "tile_language")
        return found

    def language_names(self) -> dict[str, str]:
        """Return all names that backends add to ``T``, with the backend's name.

        Loads all backends; broken ones add none.
        """
        names = ((name, b) for b in reversed(self._loadable(self._registry.offers)) for name in self._language(b))
        return dict(sorted(dict(names).items()))

    # --- compiling and running ---

    def lowerings(self, target: Target) -> tuple[Variant, ...]:
        """Return the variants for a target by op, highest priority first, with those of add-ons.

        An add-on that is broken or clashes is left out with a ``BackendWarning``: it must not break the target.

        Raises
        ------
        DuplicateVariant, AmbiguousPriority
            If the owner's variants clash with each other.
        """
        return self._contributions(target)[0]

    def addon_of(self, target: Target, variant: str) -> str:
        """Return the add-on of a variant with its distribution; empty for the target's owner."""
        for name in self.addons(target.kind) if target.backend in self.names() else ():
            offer = self._registry.offers[name][0]
            if variant in {v.name for v in self._parts(target).get(name, ())}:
                return f"{name} ({offer.source})"
        return ""

    def pipeline(self, target: Target, spine: Any) -> Any:
        """The passes for a target: ``spine`` with its backend's tail and insertions."""
        return self._registry.pipeline(target.backend, target, spine)

    def tilings(self, target: Target) -> TilingModel | None:
        """The model of tile shapes for a target, or ``None``."""
        found: TilingModel | None = self._registry.ask(target.backend, "tile_tilings", target=target)
        return found

    def runtimes(self, target: Target) -> tuple[Any, ...]:
        """The runtime adapters for a target in the order of preference."""
        return tuple(self._registry.ask(target.backend, "tile_runtimes", target=target))

    def emulation(self, target: Target) -> Any:
        """The dialect model for a target, or ``None``."""
        return self._registry.ask(target.backend, "tile_emulation", target=target)

    def strategies(self, target: Target) -> dict[str, Any]:
        """The strategies of the fuzzer that a target's backend adds, imported now."""
        found: Mapping[str, str] = self._registry.ask(target.backend, "tile_strategies", target=target)
        return {name: _import_reference(target.backend, ref, "tile_strategies") for name, ref in found.items()}

    def testing_names(self, target: Target) -> tuple[str, ...]:
        """Return the names of strategies and tables that a target's backend adds, without imports."""
        hooks = ("tile_strategies", "tile_cases")
        return tuple(name for hook in hooks for name in self._registry.ask(target.backend, hook, target=target))

    def case_tables(self, target: Target) -> dict[str, tuple[Any, ...]]:
        """Return the units of the conformance kit that a target's backend adds, by table."""
        found: Mapping[str, str] = self._registry.ask(target.backend, "tile_cases", target=target)
        return {name: _called(target.backend, "tile_cases", reference, target) for name, reference in found.items()}

    # --- inside ---

    def _loadable(self, names: Iterable[str]) -> list[str]:
        """Return the ``names`` that load; failures of the others are recorded."""
        loaded = []
        for name in names:
            try:
                self._registry.load(name)
            except TileError:
                continue
            loaded.append(name)
        return loaded

    def _find(self, text: str) -> Target:
        kind = split_target(text).kind
        if kind in self.names():  # no other may own it: see `Registry.load`
            if (found := self._ask_target(kind, text)) is not None:
                return found
            raise UnknownTarget(found=text, known=", ".join(self.names()), hint=self._other(kind, text))
        owners = [n for n in self._loadable(self.names()) if kind in self._registry.manifests[n].target_kinds]
        answers = [t for t in (self._ask_target(name, text) for name in owners) if t is not None]
        if len(answers) > 1:
            raise AmbiguousTarget(found=text, backends=", ".join(t.backend for t in answers))
        if not answers:
            raise UnknownTarget(found=text, known=", ".join(self.names()), hint=self._hint(text))
        return answers[0]

    def _other(self, kind: str, text: str) -> str:
        """Return the remedy for a target that its backend does not support."""
        listed = self._registry.manifests[kind].architectures
        if text in listed or not listed:
            return f"backend {kind!r} does not support its own target: please report it to its authors"
        return f"it lists: {', '.join(listed)}"

    def _hint(self, text: str) -> str:
        kind = split_target(text).kind
        if kind in self._hidden:
            return "TILE_DISABLE_BACKENDS excludes its backend: unset it, or choose another target"
        package = known_packages.KINDS.get(kind)
        if package is not None and kind not in self._registry.offers:
            return (
                f"it is provided by {package}: pip install {known_packages.folders_of(package)} in a checkout of tile"
            )
        near = nearest(kind, self.names()) or self._fuller(text)
        broken = "; ".join(f"{name} is broken: {self._registry.failure(name).message}"
                           for name in self._registry.failures)  # fmt: skip
        if near and near[0] != kind:
            return f"did you mean {' or '.join(map(repr, near))}?"
        return broken or "install the package that provides it, or choose one of the installed targets"

    def _fuller(self, text: str) -> list[str]:
        """Return the completion of a partial target text, such as an architecture alone."""
        known = [a for name in self._loadable(self.names()) for a in self._registry.manifests[name].architectures]
        full = [a for a in known if a.partition(":")[2] == text]
        if full or len(text) < _ENOUGH:
            return full
        return [name for name in self.names() if name.startswith(text.lower())]

    def _ask_target(self, name: str, text: str) -> Target | None:
        found: Target | None = self._registry.ask(name, "tile_target", text=text)
        if found is not None:
            self._check_owner(name, "tile_target", found)
            again = self._registry.ask(name, "tile_target", text=found.text)
            if again != found:
                expected = f"an equal target again for its own text {found.text!r}"
                raise HookReturned(backend=name, hook="tile_target", found=repr(again), expected=expected)
            for key in split_target(text).options:
                if key not in found.options:
                    raise UnknownTargetOption(target=text, found=key, backend=name, known=found.text)
        return found

    def _check_owner(self, name: str, hook: str, found: Target) -> None:
        if found.backend != name:
            shown = f"a target of backend {found.backend!r}"
            raise HookReturned(backend=name, hook=hook, found=shown, expected="one of its own")
        kinds = self._registry.manifests[name].target_kinds
        if found.kind not in kinds:
            expected = f"one of the kinds in its manifest: {', '.join(kinds)}"
            raise HookReturned(backend=name, hook=hook, found=f"a target of kind {found.kind!r}", expected=expected)

    def _detect(self) -> Target:
        """Query each backend for a device; the built-in one, available everywhere, is the last."""
        for name in self.names():
            try:
                found = self.detect(name)
                if found is not None:
                    return found
            except TileError as error:
                if name == BUILTIN.name:
                    raise
                _warn(name, f"target 'auto' passes over backend {name!r}: {error.message}")
        if BUILTIN.name in self.names():
            return self._find(BUILTIN.name)
        raise UnknownTarget(found=AUTO, known=", ".join(self.names()), hint="name a target")

    def _contributions(self, target: Target) -> tuple[tuple[Variant, ...], Mapping[str, tuple[Variant, ...]]]:
        """The variants of a target, and the same by backend name."""
        if target not in self._lowerings:
            owner = target.backend
            parts = {owner: tuple(self._registry.ask(owner, "tile_lowerings", target=target))}
            variants = check_variants(target.text, parts)
            for name in self.addons(target.kind):
                try:
                    more = {**parts, name: tuple(self._registry.ask(name, "tile_lowerings", target=target))}
                    variants, parts = check_variants(target.text, more), more
                except TileError as error:
                    _warn(name, f"add-on {name!r} is left out: {error.message}")
            self._lowerings[target] = (variants, parts)
        return self._lowerings[target]

    def _parts(self, target: Target) -> Mapping[str, tuple[Variant, ...]]:
        return self._contributions(target)[1]

    def _language(self, backend: str) -> Mapping[str, str]:
        """The names that a loaded backend adds to ``T``; none if its hook fails."""
        if backend not in self._languages:
            try:
                self._languages[backend] = self.names_of(backend)
            except TileError as error:
                self._languages[backend] = {}
                _warn(backend, f"backend {backend!r} adds no names: {error.message}")
        return self._languages[backend]

    def _owners(self, name: str, backends: Iterable[str]) -> list[tuple[str, str]]:
        tables = ((backend, self._language(backend)) for backend in self._loadable(backends))
        return [(backend, table[name]) for backend, table in tables if name in table]


@functools.lru_cache(maxsize=8)
def _installed(disabled: tuple[str, ...], trace: bool) -> Plugins:
    plugins = Plugins(disabled=disabled, trace=trace)
    knobs.check_environment(plugins.names())
    return plugins


def _warn(backend: str, text: str) -> None:
    warnings.warn(BackendWarning(text, backend), stacklevel=4)


def _called(backend: str, hook: str, reference: str, *args: object) -> tuple[Any, ...]:
    """Return the result of the function behind a reference, as a tuple."""
    function = _import_reference(backend, reference, hook)
    try:
        return tuple(function(*args))
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        passed_on(error)
        reason = f"{type(error).__name__} in {reference!r}: {error}"
        raise HookFailed(backend=backend, hook=hook, reason=reason) from error


def _import_reference(backend: str, reference: str, hook: str = "tile_language") -> Any:
    module, _, attribute = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        passed_on(error)
        reason = f"{type(error).__name__} for {reference!r}: {error}"
        raise HookFailed(backend=backend, hook=hook, reason=reason) from error
