"""The modules of TileLang: the home of each name, one refusal for all others.

``import tilelang.X`` and ``from tilelang.X import Y`` end in the module here, or in an error of the catalogue with a
remedy, never in a plain ``AttributeError``.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

from tile_tilelang.errors import NotAnswered, NotOnHost
from tile_tilelang.words import host_remedy, is_protocol, known_remedy

NAME = "tilelang"

_DEVICES = {n: f"devices:{n}" for n in ("get_device_name", "get_num_sms", "get_shared_memory_per_block")}
_LOWER = {"lower": "compiling:lower"}
_POLICY = {"GemmWarpPolicy": "language:GemmWarpPolicy"}
_DTYPES = {"dtype": "language:dtype", "_TORCH_DTYPE_TO_STR": "dtypes:TORCH_NAMES", "_all_dtypes": "dtypes:NAMES"}
_SPARSE = {n: f"sparse_layout:{n}" for n in ("GROUP_CONFIG", "get_e_factor", "get_e_replicate_factor")}
_TARGET = {"determine_target": "utils:determine_target"}

#: Module of TileLang -> module of this package that has its names, and names that are elsewhere: ``module:name``.
MODULES: dict[str, tuple[str, Mapping[str, str]]] = {
    "autotuner": ("autotuner", {}),
    "backend": ("", {}),
    "backend.target": ("", _TARGET),
    "carver": ("", {}),
    "carver.arch": ("", {"CUDA": "devices:Arch", "CDNA": "devices:Arch"}),
    "carver.arch.driver": ("", _DEVICES),
    "contrib": ("", {}),
    "contrib.nvcc": ("devices", {"get_target_compute_version": "devices:get_target_compute_version"}),
    "cuda": ("", {"language": "language:"}),
    "cuda.intrinsics": ("", _SPARSE),
    "cuda.intrinsics.sparse_layout": ("sparse_layout", {}),
    "cuda.language": ("language", {}),
    "cuda.target": ("", {"normalize_cutedsl_target": "host:target_of"}),
    "engine": ("", _LOWER),
    "engine.callback": ("", {}),
    "engine.lower": ("", _LOWER),
    "engine.param": ("params", {}),
    "jit": ("compiling", {}),
    "jit.kernel": ("kernel", {}),
    "jit.param": ("params", {}),
    "language.dtypes": ("language", _DTYPES),
    "language.fp8": ("dtypes", {}),
    "layout": ("layout", {}),
    "math": ("host", {}),
    "metal": ("", {}),
    "metal.target": ("", {"check_metal4_availability": "devices:is_metal4"}),
    "profiler": ("profiler", {}),
    "profiler.bench": ("profiler", {}),
    "rocm": ("", {}),
    "rocm.target": ("", {n: f"devices:{n}" for n in ("check_hip_availability", "target_is_gfx950")}),
    "testing": ("testing", {}),
    "tileop": ("", {}),
    "tileop.base": ("", _POLICY),
    "tools": ("", {"Analyzer": "devices:WorkAnalyzer", "AnalysisResult": "devices:AnalysisResult"}),
    "tools.cuda": ("", {}),
    "tools.cuda.iket": ("iket", {}),
    "transform": ("host", {}),
    "transform.pass_config": ("host", {}),
    "transform.simplify": ("host", {}),
    "utils": ("utils", {}),
    "utils.target": ("utils", _TARGET),
    "utils.tensor": ("supply", {"torch_assert_close": "testing:torch_assert_close"}),
}


class Unanswered:
    """A name of TileLang without a counterpart: imported freely, refused where it is used."""

    def __init__(self, name: str, instead: str) -> None:
        self.__refused = name, instead

    def __refuse(self, *args: object, **keywords: object) -> NoReturn:
        name, instead = self.__refused
        raise NotOnHost(name=name, instead=instead)

    __call__ = __getitem__ = __iter__ = __enter__ = __mro_entries__ = __refuse

    def __getattr__(self, name: str) -> NoReturn:
        if is_protocol(name) and name != "__all__":
            raise AttributeError(name)
        self.__refuse()


class Answered(ModuleType):
    """A module of TileLang whose names are those of this package."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{NAME}.{name}", f"{NAME}.{name}, answered by tile-tilelang")
        self.__path__: list[str] = []
        self._below = name
        self._module, self._names = MODULES.get(name, ("", {}))

    def __getattr__(self, name: str) -> Any:
        below = f"{self._below}.{name}"
        if below in MODULES:
            return importlib.import_module(f"{NAME}.{below}")
        if name in self._names:
            return found(self._names[name])
        if self._module and not name.startswith("__"):
            own = importlib.import_module(f"tile_tilelang.{self._module}")
            if name in getattr(own, "__all__", dir(own)) or self._module == "language":
                return getattr(own, name)
        if name == "__all__":  # for ``from tilelang.X import *``
            return [n for n in dir(self) if not n.startswith("_")]
        instead = known_remedy(below)
        if instead and not name.startswith("__"):
            return Unanswered(f"{NAME}.{below}", instead)
        refuse(self.__name__, name, [*MODULES, *self._names])

    def __refuse(self, *args: object, **keywords: object) -> NoReturn:
        raise NotOnHost(name=self.__name__, instead=known_remedy(self._below) or "it is a module here")

    __call__ = __iter__ = __getitem__ = __refuse

    def __dir__(self) -> list[str]:
        own = importlib.import_module(f"tile_tilelang.{self._module}") if self._module else None
        return sorted({*self._names, *getattr(own, "__all__", ())})


def found(where: str) -> Any:
    """Return the object of ``module:name`` below this package; an empty name is the module itself."""
    module, _, name = where.partition(":")
    own = importlib.import_module(f"tile_tilelang.{module}")
    return getattr(own, name) if name else own


def outside(name: str, known: Sequence[str]) -> Any:
    """Return a module of TileLang, while it is answered; refuse other names."""
    loaded = sys.modules.get(f"{NAME}.{name}")
    if isinstance(loaded, Answered):
        return loaded
    refuse(NAME, name, known, depth=3)


def refuse(module: str, name: str, known: Sequence[str], depth: int = 2) -> NoReturn:
    """Refuse a name that a module does not have.

    Raises
    ------
    NotAnswered
        For ``from module import name``, which would replace an ``AttributeError`` by one without a remedy.
    NotOnHost
        For ``module.name``.
    """
    if is_protocol(name):
        raise AttributeError(name)
    below = f"{module}.{name}".partition(".")[2]
    instead = host_remedy(below, known)
    if is_import(depth):
        raise NotAnswered(module=f"from {module} import {name}", instead=instead)
    raise NotOnHost(name=f"{module}.{name}", instead=instead)


def is_import(depth: int) -> bool:
    """Return whether the code that asks a module for a name is an import statement."""
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
