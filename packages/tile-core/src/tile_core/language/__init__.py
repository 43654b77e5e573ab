"""``import tile_core.language as T``: the names for writing kernels.

``tile_core/vocabulary.py`` names the module of everything; nothing is imported before it is used. Names that are not in
it are looked up in the installed backends, which add their own.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from tile_core.vocabulary import NAMES, word

__all__ = sorted(NAMES)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        return _of_backends(name)
    found = word(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*NAMES, *(n for n in globals() if n.startswith("__"))})


def _of_backends(name: str) -> object:
    if name.startswith("_"):
        from tile_core.errors.language import UnknownName

        raise UnknownName(name=name, hint="names that begin with _ are not part of the language")
    others: dict[str, str] = {}
    # `from tile_core.language import threads` looks here first: no backend is loaded for a module of this package.
    if importlib.util.find_spec(f"{__name__}.{name}") is None:
        from tile_core.plugins.manager import installed

        found = installed().language_name(name)
        if found is not None:
            return found
        others = installed().language_names()
    from tile_core.errors.language import UnknownName
    from tile_core.values.foreign_names import WORDS
    from tile_runtime.errors.guess import hint

    raise UnknownName(name=name, hint=hint(name, [*NAMES, *others], "dir(T) lists the names", "T.{}", WORDS))
