"""``import tile_tilelang.language as T``: the language of tile, with TileLang's spellings.

A name is looked up in `tile_tilelang.spellings` first, then in ``tile_core.language`` and the installed backends, then
among the hints, and is refused with a remedy if `tile_tilelang.words` has one.
"""

from __future__ import annotations

from inspect import isfunction
from typing import Any

import tile_core.language as _language
from tile_core.errors.language import UnknownName
from tile_core.errors.naming import alias
from tile_core.errors.plugins import NotOffered, ProvidedElsewhere
from tile_tilelang import spellings as _spellings
from tile_tilelang import vectors as _vectors
from tile_tilelang.errors import NotInLanguage
from tile_tilelang.parameters import translated
from tile_tilelang.vectors import VectorType
from tile_tilelang.words import HINTS, KEYWORDS, ONLY_HINTS, is_protocol, refusal

__all__ = sorted({*_language.__all__, *_spellings.__all__, *_spellings.RENAMED, *_vectors.__all__, *HINTS})

#: While a script runs, this is a package: modules of TileLang below it are answered or refused by name.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if is_protocol(name):
        raise AttributeError(name)
    found = translated(name, _found(name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)


def _found(name: str) -> Any:
    if name in _spellings.__all__:
        return _tolerant(name, _called(name, getattr(_spellings, name)))
    if name in _vectors.__all__:
        return _called(name, getattr(_vectors, name))
    if name in ONLY_HINTS:
        return _spellings.without_meaning(name)
    if name.startswith("__") and name in _spellings.RENAMED:
        return _spellings.of_floats(name, _called(name, _found(_spellings.RENAMED[name])))
    try:
        found = getattr(_language, name)
    except (UnknownName, NotOffered, ProvidedElsewhere, AttributeError) as error:
        if name in _spellings.RENAMED:
            return _called(name, _found(_spellings.RENAMED[name]))
        if name in HINTS:
            return _spellings.without_meaning(name)
        vector = VectorType.named(name)
        if vector is not None:
            return vector
        known = refusal(name)
        if known is None or isinstance(error, ProvidedElsewhere):
            raise
        raise NotInLanguage(name=name, reason=known[0], instead=known[1]) from None
    if name in ("Kernel", "ClusterKernel"):
        return _spellings.saturating(found)
    if name.startswith("reduce_") and isfunction(found):
        found = _spellings.into_variable(found)
    return _tolerant(name, found)


def _called(name: str, found: Any) -> Any:
    """Return a function whose errors use TileLang's name; other objects unchanged."""
    return alias(name, found) if isfunction(found) else found


def _tolerant(name: str, found: Any) -> Any:
    return _spellings.tolerant(found, KEYWORDS[name]) if name in KEYWORDS else found
