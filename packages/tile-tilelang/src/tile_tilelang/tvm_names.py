"""``tvm`` and ``tvm.tirx`` in scripts: expressions are the language's, all else is TVM's.

TileLang's programs build expressions by TVM's names. Here values are built by ``T``, which promotes and checks them.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import tile_core.language as T
from tile_core.dtypes import DType, dtype
from tile_core.values.value import Value, as_value
from tile_tilelang.errors import NotAnswered, NotOnHost
from tile_tilelang.host import target_of
from tile_tilelang.modules import is_import
from tile_tilelang.spellings import PrimExpr, Var
from tile_tilelang.testing import requires_package


class _DataTypes(type):
    """Makes element types of tile instances of `DataType`."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, DType)


class DataType(metaclass=_DataTypes):
    """``tvm.DataType``: an element type by its name."""

    def __new__(cls, name: Any) -> Any:
        """Return tile's type."""
        return dtype(name)


#: Name of ``tvm.tirx`` -> its counterpart; others are looked up in the language, then in TVM.
EXPRESSIONS: dict[str, Any] = {
    **dict.fromkeys(("Call", "PrimExpr"), PrimExpr),
    "Cast": lambda to, value, span=None: T.cast(value, to),
    "Max": lambda a, b, span=None: T.max(a, b),
    "Min": lambda a, b, span=None: T.min(a, b),
    "const": lambda value, dtype="int32", span=None: _constant(value, dtype),
    "convert": lambda value: value if isinstance(value, Value) else as_value(value),
    "Var": Var,
    "reinterpret": lambda to, value, span=None: T.reinterpret(value, to),
}
_TIRX = "tvm.tirx"
#: Module -> its names that have a counterpart.
_KNOWN: dict[str, dict[str, Any]] = {
    "tvm": {"DataType": DataType},
    _TIRX: EXPRESSIONS,
    "tvm.target": {"Target": lambda target, host=None: _target(target, host)},
    "tvm.ir.transform": {"PassContext": lambda *levels, **keywords: _context(*levels, **keywords)},
    "tvm.testing": {"requires_package": requires_package},
}
#: Packages whose code means TVM itself.
_OWN = ("tile_", "tvm")


class TranslatedModule(ModuleType):
    """A module of TVM as scripts see it."""

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update({n: v for n, v in vars(real).items() if n.startswith("__") and n != "__getattr__"})
        self._real = real

    def __getattr__(self, name: str) -> Any:
        own = sys._getframe(1).f_globals.get("__name__", "").startswith(_OWN)
        if own or name.startswith("__"):
            return getattr(self._real, name)
        known = _KNOWN.get(self._real.__name__, {})
        if name == "tirx":
            return TranslatedModule(sys.modules[_TIRX])
        if name in known or (known is EXPRESSIONS and name in T.__all__):
            return known.get(name) or getattr(T, name)
        return self._other(name)

    def _other(self, name: str) -> Any:
        """Return a name of TVM, loading modules that its copy in TileLang has loaded."""
        full = f"{self._real.__name__}.{name}"
        if not hasattr(self._real, name) and importlib.util.find_spec(full) is None:
            instead = "tile has the TVM of apache-tvm; write it in the language"
            if is_import(depth=2):
                raise NotAnswered(module=f"from {self._real.__name__} import {name}", instead=instead)
            raise NotOnHost(name=full, instead=instead)
        found = getattr(self._real, name) if hasattr(self._real, name) else importlib.import_module(full)
        return TranslatedModule(found) if isinstance(found, ModuleType) and found.__name__.startswith("tvm.") else found


def _target(target: Any, host: Any) -> Any:
    """Return a target of TVM, or tile's for texts with options and added kinds."""
    made = importlib.import_module("tvm").target.Target
    if (isinstance(target, str) and " -" in target) or (
        isinstance(target, Mapping) and target.get("kind") not in made.list_kinds()
    ):
        return target_of(target)
    return made(target, host)


def _context(*levels: Any, config: Mapping[str, Any] | None = None, **keywords: Any) -> Any:
    """Return a context of TVM's passes without the settings of TileLang's, which are hints."""
    given = {str(getattr(k, "value", k)): v for k, v in (config or {}).items()}
    known = {k: v for k, v in given.items() if not k.startswith("tl.")}
    return importlib.import_module("tvm.ir.transform").PassContext(*levels, config=known, **keywords)


def _constant(value: Any, to: Any) -> Value:
    kind = dtype(to)
    return as_value(float(value) if kind.is_float else int(value), kind)
