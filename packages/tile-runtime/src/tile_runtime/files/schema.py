"""Schema of an artefact's facts: types and ranges of every value, checked before use.

A schema is a predicate on one value. Names are restricted so that no text from a foreign file can affect a terminal, a
command line or a compiler.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tile_runtime.abi.signature import OPERATORS
from tile_runtime.dtypes import DTYPES

Check = Callable[[Any], bool]

_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_TARGET = re.compile(r"[\w.:,=+-]{1,200}", re.ASCII)
_MOST = 1 << 63


def check(facts: Any) -> None:
    """Refuse facts that `artefact.to_bytes` never writes.

    Raises
    ------
    ValueError
        The text names the first value that is wrong.
    """
    _require("facts", facts, lambda x: isinstance(x, dict))
    for name, holds in _FACTS.items():
        _require(name, facts.get(name, _ABSENT), holds)
    _each("signature", facts["signature"], _SIGNATURE)
    for param in facts["signature"]["params"]:
        _each("parameter", param, _PARAM)
    names = [p["name"] for p in facts["signature"]["params"]]
    _require("parameters", names, lambda x: len(set(x)) == len(x))
    out = facts["signature"]["out_idx"]
    _require("out_idx", out, lambda x: all(i < len(names) for i in x) and len(set(x)) == len(x))
    _require("workspaces", facts["signature"].get("workspaces", 0), lambda x: x <= len(out))
    _require("parts", facts["parts"], lambda x: bool(x) != ("launches" in facts))
    for part in facts["parts"]:
        _each("text", part, {"facts": _is(dict), "built": lambda x: x is None or isinstance(x, dict)})
        _each("launch", part["facts"], _LAUNCH)
        if part["built"] is not None:
            _each("built", part["built"], _BUILT)


_ABSENT = object()


def _each(what: str, value: Any, fields: dict[str, Check]) -> None:
    _require(what, value, _is(dict))
    for name, holds in fields.items():
        _require(f"{what}: {name}", value.get(name, _ABSENT), holds)


def _require(what: str, value: object, holds: Check) -> None:
    if not holds(value):
        raise ValueError(f"{what} is {repr(value)[:60] if value is not _ABSENT else 'missing'}")


def _is(kind: type) -> Check:
    return lambda x: type(x) is kind


def _optional(holds: Check) -> Check:
    return lambda x: x is _ABSENT or holds(x)


def _integer(low: int, high: int = _MOST) -> Check:
    return lambda x: type(x) is int and low <= x < high


def _one_of(*values: object) -> Check:
    return lambda x: isinstance(x, (str, int)) and not isinstance(x, bool) and x in values


def _list_of(holds: Check, low: int = 0, high: int = 1 << 20) -> Check:
    return lambda x: isinstance(x, list) and low <= len(x) <= high and all(holds(item) for item in x)


def _row(*holds: Check) -> Check:
    return lambda x: isinstance(x, list) and len(x) == len(holds) and all(h(v) for h, v in zip(holds, x, strict=True))


def _map_of(holds: Check) -> Check:
    return lambda x: isinstance(x, dict) and all(_line(k) and holds(v) for k, v in x.items())


def _name(x: object) -> bool:
    return isinstance(x, str) and x.isidentifier()


def _line(x: object) -> bool:
    """Text that can be shown: one line without control characters."""
    return isinstance(x, str) and len(x) <= 10000 and x.isprintable()


def _plain(x: object) -> bool:
    return isinstance(x, (bool, int, float)) or (isinstance(x, str) and len(x) <= 1 << 20)


def _dim(x: object) -> bool:
    if isinstance(x, list):
        return len(x) == 3 and isinstance(x[0], str) and x[0] in OPERATORS and _dim(x[1]) and _dim(x[2])
    return _name(x) or _integer(-_MOST)(x)


def _where(x: object) -> bool:
    return x is None or _row(_line, _integer(0))(x)


def _dtype(x: object) -> bool:
    return isinstance(x, str) and (not x or x in DTYPES)


def _power(x: object) -> bool:
    return isinstance(x, int) and _integer(0, 1 << 40)(x) and x & (x - 1) == 0


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda x: isinstance(x, str) and pattern.fullmatch(x) is not None


_ACCESS = _one_of("read", "write", "readwrite")
_launch_value = _row(_name, _one_of("pointer", "scalar"), _dtype, _ACCESS, _power)
_OPAQUE = (_name, _one_of("opaque"), _one_of(""), _ACCESS, _power, _integer(1, 1 << 20))
_launch_opaque = _row(*_OPAQUE)
_dims = _list_of(_dim, 1, 64)
_DESCRIPTOR: dict[str, Check] = {
    "source": _name,
    "dtype": _one_of(*DTYPES),
    "shape": _dims,
    "strides": _dims,
    "box": _list_of(_integer(1, 1 << 31), 1, 64),
    "offset": _dim,
    "swizzle": _power,
    "fill": _one_of("zero", "nan"),
    "details": _map_of(_plain),
}


def _descriptor(x: object) -> bool:
    return isinstance(x, dict) and x.keys() == _DESCRIPTOR.keys() and all(_DESCRIPTOR[k](v) for k, v in x.items())


_launch_descriptor = _row(*_OPAQUE, _descriptor)


def _launch_param(x: object) -> bool:
    return _launch_value(x) or _launch_opaque(x) or _launch_descriptor(x)


_FACTS: dict[str, Check] = {
    "tile-core": _line,
    "versions": _map_of(_line),
    "target": _matches(_TARGET),
    "backend": _matches(_PACKAGE),
    "package": lambda x: x == "" or _matches(_PACKAGE)(x),
    "signature": _is(dict),
    "hidden": _list_of(_name),
    "has_general": _is(bool),
    "key": lambda x: isinstance(x, str) and re.fullmatch("[0-9a-f]*", x) is not None,
    "parts": _list_of(_is(dict), 0, 64),
    "launches": _optional(_integer(2, 10000)),
}
_SIGNATURE: dict[str, Check] = {
    "name": _name,
    "params": _list_of(_is(dict), 0, 10000),
    "out_idx": _list_of(_integer(0)),
    "index_bits": _one_of(32, 64),
    "offset_bits": _optional(_one_of(32, 64)),  # younger than the format
    "workspaces": _optional(_integer(0, 10000)),
    "where": _where,
}
_PARAM: dict[str, Check] = {
    "name": _name,
    "kind": _one_of("tensor", "scalar", "pointer"),
    "dtype": _dtype,
    "shape": _list_of(_dim, 0, 64),
    "strides": lambda x: x is None or _list_of(_dim, 0, 64)(x),
    "access": _ACCESS,
    "align": _power,
    "addresses": _optional(_is(bool)),  # younger than the format
    "narrow": _optional(_list_of(_row(_dim, _line), 0, 64)),
}
_LAUNCH: dict[str, Check] = {
    "entry": _name,
    "params": _list_of(_launch_param),
    "grid": _list_of(_dim, 3, 3),
    "block": _list_of(_integer(1, 1 << 31), 3, 3),
    "shared_bytes": _integer(0),
    "shared": _list_of(_row(_line, _integer(0), _integer(0), _dtype)),
    "attributes": _map_of(_plain),
    "line_map": _list_of(_row(_integer(1), _where)),
    "where": _where,
    "divides": _map_of(_integer(1)),
    "cluster": _optional(_list_of(_integer(1, 1 << 31), 3, 3)),  # younger than the first format
    "name": _optional(_name),
}
_BUILT: dict[str, Check] = {
    "runtime": _line, "kind": _line, "arch": _line, "facts": _map_of(_plain),
}  # fmt: skip
