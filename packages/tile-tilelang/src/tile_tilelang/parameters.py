"""TileLang's parameters of the language's functions: its names, positions and defaults, translated to tile's.

``signatures.txt`` has them as data. A parameter is tile's of the same name, else the one at its position; one without
a counterpart is a hint of `WITHOUT_EFFECT`, or refused unless it has its default.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from tile_tilelang.errors import BadCall

#: Parameter -> why tile needs none; it may be given and changes nothing.
WITHOUT_EFFECT = {
    "annotations": "notes for another compiler's passes",
    "batch": "how many results are combined at a time",
    "coalesced_width": "accesses are as wide as they may be",
    "eviction_policy": "a hint for caches",
    "leader_scope_threads": "who issues a copy is the target's choice",
    "loop_layout": "which thread computes an element is the target's choice",
    "no_stack_info": "the error names the line",
    "span": "errors name the user's line anyway",
    "swizzle": "the layout of the tile decides",
    "wg_wait": "products have finished where their results are read",
}
#: Function -> its parameter -> tile's, where neither the name nor the position agrees.
DIFFERENT: dict[str, dict[str, str | None]] = {
    "shfl_xor": {"delta": "mask", "mask": None},
    "alloc_var": {},
    "make_tensor": {"ptr": "pointer"},
}
#: Function -> values of tile's parameters that are not given, where TileLang's defaults are others.
DEFAULTS: dict[str, dict[str, Any]] = {}
_NOT_GIVEN = inspect.Parameter.empty


@functools.cache
def signatures() -> dict[str, inspect.Signature]:
    """Return the parameters of TileLang's functions."""
    lines = resources.files(__package__).joinpath("signatures.txt").read_text(encoding="utf-8").splitlines()
    made: dict[str, Any] = {}
    for line in lines:
        if not line.startswith("#"):
            exec(f"def {line}: ...", made)
    return {name: inspect.signature(f) for name, f in made.items() if not name.startswith("__")}


def matched(name: str, own: inspect.Signature) -> dict[str, str | None]:
    """Return for each parameter of TileLang's function the one of tile's; ``None`` without a counterpart."""
    theirs, known = signatures()[name].parameters, DIFFERENT.get(name, {})
    accepts_more = any(p.kind is p.VAR_KEYWORD for p in own.parameters.values())
    positional = [n for n, p in own.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    found: dict[str, str | None] = {}
    for position, parameter in enumerate(theirs):
        opposite = positional[position] if position < len(positional) else None
        if parameter in known:
            found[parameter] = known[parameter]
        elif parameter in own.parameters or accepts_more:
            found[parameter] = parameter
        elif parameter in WITHOUT_EFFECT or opposite is None or opposite in theirs:
            found[parameter] = None
        else:
            found[parameter] = opposite
    return found


def translated(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes TileLang's parameters, and tile's in other calls."""
    if name not in signatures() or isinstance(function, type):
        return function
    theirs, own = signatures()[name], inspect.signature(function)
    kinds = {p.kind for p in (*theirs.parameters.values(), *own.parameters.values())}
    to = {} if inspect.Parameter.VAR_POSITIONAL in kinds else matched(name, own)
    if not to or (list(to) == list(own.parameters)[: len(to)] and name not in DEFAULTS):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        others = {k: v for k, v in keywords.items() if k not in theirs.parameters}
        try:
            given = theirs.bind(*args, **{k: v for k, v in keywords.items() if k not in others}).arguments
        except TypeError:
            return function(*args, **keywords)
        values = {mine: v for k, v in given.items() if (mine := to[k]) is not None}
        _only_defaults(name, theirs, {k: v for k, v in given.items() if to[k] is None})
        return function(**{**DEFAULTS.get(name, {}), **values, **others})

    return call


def _only_defaults(name: str, theirs: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Refuse values of parameters without a counterpart, except defaults and hints."""
    for parameter, value in given.items():
        default = theirs.parameters[parameter].default
        if parameter in WITHOUT_EFFECT or value is default or (isinstance(value, int) and value == default):
            continue
        expected = "nothing" if default is _NOT_GIVEN else repr(default)
        raise BadCall(
            function=f"T.{name}", name=parameter, found=repr(value), expected=expected, instead="leave it out"
        )
