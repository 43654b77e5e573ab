"""TileLang's names on tile: ``import tile_tilelang as tilelang; import tile_tilelang.language as T``.

Host calls are thin aliases of tile's, the language is tile's own with a few more spellings, and what tile lacks is
rejected by name with a replacement. ``python -m tile_tilelang SCRIPT`` runs a script with ``import tilelang``
unchanged. Everything is resolved on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_core.runtime.freeze import OWN

OWN.add(__name__)
__version__ = "0.1.0"

#: Name -> module below this package, and the attribute that it is; an empty one is the module itself.
_LAZY = {
    "AutoTuner": "autotuner:AutoTuner",
    "JITImpl": "compiling:JITImpl",
    "JITKernel": "kernel:JITKernel",
    "PassConfigKey": "host:PassConfigKey",
    "DataType": "tvm_names:DataType",
    "Profiler": "profiler:Profiler",
    "TensorSupplyType": "supply:TensorSupplyType",
    "autotune": "autotuner:autotune",
    "autotuner": "autotuner:",
    "cdiv": "host:cdiv",
    "compile": "compiling:compile",
    "disable_cache": "host:disable_cache",
    "do_bench": "profiler:do_bench",
    "dtypes": "language:",
    "enable_cache": "host:enable_cache",
    "is_cache_enabled": "host:is_cache_enabled",
    "jit": "compiling:jit",
    "lower": "compiling:lower",
    "math": "host:",
    "language": "language:",
    "layout": "layout:",
    "next_power_of_2": "host:next_power_of_2",
    "par_compile": "compiling:par_compile",
    "profiler": "profiler:",
    "set_log_level": "host:set_log_level",
    "testing": "testing:",
    "transform": "host:",
    "tvm": "host:tvm",
    "utils": "utils:",
}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        from tile_tilelang.modules import outside

        return outside(name, __all__)
    module, _, attribute = _LAZY[name].partition(":")
    found = importlib.import_module(f"tile_tilelang.{module}")
    value = getattr(found, attribute) if attribute else found
    if name != "tvm":  # which is another one while a script runs
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
