# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""TileLang's names on tile: ``import tile_tilelang as tilelang; import tile_tilelang.language as T``."""

__version__: str
from tile_tilelang.autotuner import AutoTuner as AutoTuner
from tile_tilelang.compiling import JITImpl as JITImpl
from tile_tilelang.kernel import JITKernel as JITKernel
from tile_core.compat._pass_keys import PassConfigKey as PassConfigKey
from tile_tilelang.tvm_names import DataType as DataType
from tile_tilelang.profiler import Profiler as Profiler
from tile_tilelang.supply import TensorSupplyType as TensorSupplyType
from tile_tilelang.autotuner import autotune as autotune
from tile_tilelang import autotuner as autotuner
from tile_tilelang.host import cdiv as cdiv
from tile_tilelang.compiling import compile as compile
from tile_tilelang.host import disable_cache as disable_cache
from tile_tilelang.profiler import do_bench as do_bench
from tile_tilelang import language as dtypes
from tile_tilelang.host import enable_cache as enable_cache
from tile_tilelang.host import is_cache_enabled as is_cache_enabled
from tile_tilelang.compiling import jit as jit
from tile_tilelang.compiling import lower as lower
from tile_tilelang import host as math
from tile_tilelang import language as language
from tile_tilelang import layout as layout
from tile_tilelang.host import next_power_of_2 as next_power_of_2
from tile_tilelang.compiling import par_compile as par_compile
from tile_tilelang import profiler as profiler
from tile_tilelang.host import set_log_level as set_log_level
from tile_tilelang import testing as testing
from tile_tilelang import host as transform
from tile_tilelang.host import tvm as tvm
from tile_tilelang import utils as utils

__all__ = [
    "__version__",
    "AutoTuner",
    "DataType",
    "JITImpl",
    "JITKernel",
    "PassConfigKey",
    "Profiler",
    "TensorSupplyType",
    "autotune",
    "autotuner",
    "cdiv",
    "compile",
    "disable_cache",
    "do_bench",
    "dtypes",
    "enable_cache",
    "is_cache_enabled",
    "jit",
    "language",
    "layout",
    "lower",
    "math",
    "next_power_of_2",
    "par_compile",
    "profiler",
    "set_log_level",
    "testing",
    "transform",
    "tvm",
    "utils",
]
