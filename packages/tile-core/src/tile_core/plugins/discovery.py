"""Discovery of installed backends from the metadata of distributions only: no backend is imported."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from importlib.metadata import EntryPoint

from tile_core.compat import known_packages
from tile_core.records import dataclass
from tile_runtime.compat import distributions

GROUP = "tile.backends"

NO_DISTRIBUTION = "an unknown distribution"

# The core's own backend, for a core that runs without installed metadata (from a source tree or a bundle). Where the
# metadata is there, this is the same entry point.
BUILTIN = EntryPoint("cpu", "tile_core.cpu.plugin", GROUP)


# The name of a backend, or the kind and name of an add-on.
_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")


class BackendWarning(UserWarning):
    """An installed backend that was not requested by name could not take part.

    Parameters
    ----------
    text
        The reason.
    backend
        Its name.
    """

    def __init__(self, text: str, backend: str = "") -> None:
        super().__init__(text)
        self.backend = backend


@dataclass(frozen=True)
class Offer:
    """One entry point under which a distribution offers a backend.

    Parameters
    ----------
    name
        Name of the entry point: of the backend, or ``kind.name`` of an add-on.
    entry
        The entry point to load.
    distribution, version
        Its origin.
    """

    name: str
    entry: EntryPoint
    distribution: str
    version: str

    @property
    def is_addon(self) -> bool:
        """Whether this only adds to a target kind of another backend."""
        return "." in self.name

    @property
    def source(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.distribution} {self.version}"


def discover(entries: Iterable[EntryPoint] | None = None) -> dict[str, tuple[Offer, ...]]:
    """All offers by name; a name with two offers is reported when it is requested.

    Parameters
    ----------
    entries
        The entry points to use; those of the installed distributions if not given.

    Returns
    -------
    dict
        In the order of names, the built-in backend last. Its name is reserved, and so are those of published packages
        that are installed: other offers of them, and invalid names, are left out with a ``BackendWarning``.
    """
    found: dict[str, dict[tuple[str, str], Offer]] = {}
    for entry in distributions.entry_points(GROUP) if entries is None else entries:
        offer = _offer(entry)
        if _NAME.fullmatch(offer.name) is None:
            _left_out(offer, "which is not a name")
            continue
        if offer.name == BUILTIN.name and entries is None and entry.value != BUILTIN.value:
            _left_out(offer, "which is the name of the built-in backend")
            continue
        # A distribution appears twice if two copies of its metadata are on the path; the first wins, as in import.
        found.setdefault(offer.name, {}).setdefault((offer.distribution.lower(), offer.entry.value), offer)
    offers = {name: _of_its_owner(name, tuple(found[name].values())) for name in sorted(found)}
    builtin = offers.pop(BUILTIN.name, None) or (_offer(BUILTIN),)
    return {**offers, BUILTIN.name: builtin}


def _of_its_owner(name: str, offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return the offers of a name; the published package of this name wins."""
    owner = known_packages.KINDS.get(name)
    own = tuple(offer for offer in offers if offer.distribution == owner)
    for offer in offers if own else ():
        if offer not in own:
            _left_out(offer, f"which is the name of the backend of {owner}")
    return own or offers


def _left_out(offer: Offer, reason: str) -> None:
    text = f"{offer.source} offers a backend {offer.name!r}, {reason}: it is left out"
    warnings.warn(BackendWarning(text, offer.name), stacklevel=5)


def _offer(entry: EntryPoint) -> Offer:
    dist = getattr(entry, "dist", None)
    if dist is None:
        return Offer(entry.name, entry, "tile-core" if entry == BUILTIN else NO_DISTRIBUTION, "source")
    return Offer(entry.name, entry, *distributions.identity_of(dist))
