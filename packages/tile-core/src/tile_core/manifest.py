"""A backend's one declaration, and the version of the contract that it is made for."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import itertools
import operator
import os
import re
from collections.abc import Collection, Iterator
from typing import Any

from tile_core.errors.plugins import InvalidManifest
from tile_core.records import dataclass
from tile_core.target import KIND
from tile_runtime.compat.distributions import version_of

API_VERSION = (1, 0)
"""Version of the plugin contract, major and minor. What is added (a hook, an argument of a hook, a field with a
default) raises the minor number: an implementation may take fewer arguments than its hook has. Removing or redefining
something raises the major number."""


@dataclass(frozen=True)
class BackendManifest:
    """A backend's description of itself, checked when it is made.

    Parameters
    ----------
    name
        The backend's name, equal to the name of its entry point. An *add-on*, which only adds variants to a target
        kind that another backend owns, is named ``"<kind>.<name>"``.
    api
        Range of the plugin contract's versions that it is made for, for example ``">=1,<2"``; ``">=1.3,<2"`` if it
        uses what API 1.3 added.
    target_kinds
        Target kinds that it owns, usually its name alone; empty for an add-on.
    fingerprint
        Text that changes whenever the backend could generate other code; see ``fingerprint_of``.
        It is part of every cache key.
    options
        Type of the backend's options: a frozen dataclass whose fields all have defaults; ``None`` if it has none.
    summary
        One line for listings.
    architectures
        Targets that ``tile targets --load`` names, as texts (``"kind:arch"``) of its kinds; none where they are not
        listed. `tile_target` answers for each of them.

    Raises
    ------
    InvalidManifest
        If a field contradicts its meaning.
    """

    name: str
    api: str
    target_kinds: tuple[str, ...]
    fingerprint: str
    options: type[Any] | None = None
    summary: str = ""
    architectures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and NAME.fullmatch(self.name) is not None
        self._require(named, "name", 'lower case letters, digits, "_" and "-"; an add-on is "kind.name"')
        self._require(isinstance(self.api, str) and _parse(self.api) is not None, "api", 'a range like ">=1,<2"')
        kinds = self.target_kinds
        legal = isinstance(kinds, tuple) and all(isinstance(k, str) and KIND.fullmatch(k) for k in kinds)
        self._require(legal and len(set(kinds)) == len(kinds), "target_kinds", "a tuple of different target kinds")
        self._require(bool(kinds) != self.is_addon, "target_kinds", "at least one kind, or none for an add-on")
        marked = isinstance(self.fingerprint, str) and bool(self.fingerprint)
        self._require(marked, "fingerprint", "a text, for example fingerprint_of(__package__)")
        self._require(_is_options(self.options), "options", "None or a frozen dataclass with defaults only")
        self._require(isinstance(self.summary, str), "summary", "a line of text")
        listed = self.architectures
        known = isinstance(listed, tuple) and all(isinstance(a, str) and a.partition(":")[0] in kinds for a in listed)
        self._require(known, "architectures", 'a tuple of targets of its kinds, as ("kind:arch",)')

    @property
    def is_addon(self) -> bool:
        """Whether this only adds to a target kind of another backend."""
        return "." in self.name

    def accepts_api(self, version: tuple[int, int] = API_VERSION) -> bool:
        """Whether the backend supports this version of the contract.

        A bound without a minor number includes all of them.
        """
        return all(compare(version[: len(bound)], bound) for compare, bound in _parse(self.api) or ())

    def needs_newer_api(self, version: tuple[int, int] = API_VERSION) -> bool:
        """Whether it is made for later versions of the contract than this one."""
        newer = (operator.ge, operator.gt, operator.eq)
        bounds = [bound for compare, bound in _parse(self.api) or () if compare in newer]
        return not self.accepts_api(version) and any(bound >= version[: len(bound)] for bound in bounds)

    def _require(self, holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise InvalidManifest(backend=self.name, field=name, found=getattr(self, name), expected=expected)


@functools.cache
def fingerprint_of(package: str, distribution: str | None = None) -> str:
    """Fingerprint of a package: its distribution's version and a hash of its files.

    The hash covers every file of the package that is not byte code (sources, and preludes that emitted text includes),
    so that an edited checkout never finds kernels of the unedited one in the cache. Of the core it leaves out what is
    above the compiler, and therefore takes no part in making code.

    Parameters
    ----------
    package
        Import name of the top-level package.
    distribution
        Its distribution; by default the package's name with dashes.
    """
    package = package.partition(".")[0]
    version = version_of(distribution or package.replace("_", "-")) or "source"
    digest = hashlib.sha256()
    for path, content in sorted(_files(package)):
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{package} {version} {digest.hexdigest()[:32]}"


NAME = re.compile(rf"{KIND.pattern}(\.{KIND.pattern})?")
#: Folders of a package that nothing below imports: the contract "layers of the core" in pyproject.toml sees to it.
_ABOVE_THE_COMPILER = {"tile_core": ("cli", "testing")}
_COMPARISONS = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def _parse(api: str) -> list[tuple[Any, tuple[int, ...]]] | None:
    out = []
    for part in api.split(","):
        match = re.fullmatch(r"\s*(>=|<=|==|!=|>|<)\s*(\d+)(?:\.(\d+))?\s*", part)
        if match is None:
            return None
        out.append((_COMPARISONS[match[1]], tuple(int(number) for number in match.groups()[1:] if number)))
    return out


def _is_options(kind: Any) -> bool:
    if kind is None:
        return True
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return False
    missing = dataclasses.MISSING
    defaults = all(f.default is not missing or f.default_factory is not missing for f in dataclasses.fields(kind))
    return defaults and bool(getattr(kind, "__dataclass_params__").frozen)  # noqa: B009 - not in the type stubs


def _files(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of a package that counts."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    apart = _ABOVE_THE_COMPILER.get(package, ())
    if folders and all(map(os.path.isdir, folders)):  # nearly always; much faster than the general way
        return itertools.chain.from_iterable(_in_folder(folder, "", apart) for folder in folders)
    from importlib.resources import files

    return _in_archive(files(package), "", apart)


def _in_folder(folder: str, prefix: str, apart: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__" and entry.name not in apart:
                    yield from _in_folder(entry.path, f"{prefix}{entry.name}/")
            elif not entry.name.endswith((".pyc", ".pyo")):
                with open(entry.path, "rb", buffering=0) as file:
                    yield prefix + entry.name, file.read()


def _in_archive(folder: Any, prefix: str, apart: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__" and entry.name not in apart:
                yield from _in_archive(entry, f"{prefix}{entry.name}/")
        elif not entry.name.endswith((".pyc", ".pyo")):
            yield prefix + entry.name, entry.read_bytes()
