# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""tile: a tile-level kernel language whose kernels run on every target, right or refused."""

__version__: str
from tile_core.runtime.kernel import Kernel as Kernel
from tile_core.layout import Layout as Layout
from tile_core.compat._pass_keys import PassConfigKey as PassConfigKey
from tile_core.errors import TileError as TileError
from tile_core.tuning import autotune as autotune
from tile_core.compiler import compile as compile
from tile_core.runtime.memo import disable_cache as disable_cache
from tile_core import errors as errors
from tile_core.reports import explain as explain
from tile_core.debugging.snapshots import find_nan as find_nan
from tile_core.decorators import jit as jit
from tile_core import language as language
from tile_core import layout as layout
from tile_core.runtime.export import load as load
from tile_core import numerics as numerics
from tile_core.weights import pack_weights as pack_weights
from tile_core.runtime.pointers import pointers as pointers
from tile_core import sparse as sparse
from tile_core.plugins.manager import targets as targets
from tile_core.tiling.api import tilings as tilings
from tile_core.weights import unpack_weights as unpack_weights
from tile_core.debugging.snapshots import watch as watch
from tile_core.weights import with_packed_weights as with_packed_weights

__all__ = [
    "__version__",
    "Kernel",
    "Layout",
    "PassConfigKey",
    "TileError",
    "autotune",
    "compile",
    "disable_cache",
    "errors",
    "explain",
    "find_nan",
    "jit",
    "language",
    "layout",
    "load",
    "numerics",
    "pack_weights",
    "pointers",
    "sparse",
    "targets",
    "tilings",
    "unpack_weights",
    "watch",
    "with_packed_weights",
]
