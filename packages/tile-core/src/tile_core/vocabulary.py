"""The names of ``T`` as data: where each is defined, and the look-up by name.

Nothing is imported before a name is used. ``T`` is this table; below it, the implementation of the language looks names
up: Python's operators on values (``x ** y`` is ``T.pow``), calling an element type (``T.cast``), and messages.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from tile_core.errors.naming import alias
from tile_runtime.dtype_table import TABLE

#: Page of the reference -> module below ``tile_core`` -> its names, as ``name`` or ``public=name``.
_PAGES = {
    "programs": {
        "trace.decorators": "prim_func macro",
        "ir.program": "PrimFunc=Program",
        "values.types": "Tensor StridedTensor Buffer ptr Ref dynamic symbolic=dynamic",
        "language.pointers": "make_tensor",
        "language.declarations": "const empty",
    },
    "launch": {
        "language.launch": "Kernel Persistent sync_grid",
        "language.schedulers": "PersistentTileScheduler",
        "language.annotate": "annotate_layout annotate_safe_value annotate_l2_hit_ratio use_swizzle",
        "language.alloc": "alloc_shared alloc_fragment alloc_local alloc_var alloc_global",
    },
    "loops": {
        "trace.loops": "serial Parallel Pipelined unroll vectorized grid static_range",
        "trace.assertions": "print device_assert assume",
        "trace.choices": "if_then_else Select where any_of all_of",
    },
    "moves": {
        "ops.copy": "copy",
        "ops.fill": "fill clear",
        "ops.transpose": "transpose",
        "ops.view": "reshape view",
        "ops.gather": "gather scatter",
        "ops.im2col": "c2d_im2col im2col=c2d_im2col",
    },
    "products": {
        "ops.gemm": "gemm gemm_v2=gemm GemmWarpPolicy",
        "ops.gemm_sp": "gemm_sp gemm_sp_v2=gemm_sp",
        "ops.gemm_scaled": "gemm_scaled",
        "ops.fp8": "fp8_scaled_matmul",
        "ops.dp4a": "dp4a",
    },
    "reductions": {
        "language.reducers": "alloc_reducer reducer_init reducer_update finalize_reducer",
        "ops.reduce": (
            "reduce_sum reduce_max reduce_min reduce_abssum reduce_absmax reduce_bitand reduce_bitor reduce_bitxor "
            "reduce_prod reduce_any reduce_all reduce"
        ),
        "ops.fold": "reduce_with scan_with argmax argmin",
        "ops.topk": "topk",
        "ops.sort": "sort",
        "ops.logsumexp": "logsumexp",
        "ops.scan": "cumsum cumprod cummax",
        "ops.atomic": (
            "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_addx2 atomic_addx4 atomic_load "
            "atomic_store"
        ),
    },
    "scalars": {
        "values.conversions": "cast reinterpret infinity max_value min_value",
        "values.math": (
            "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh "
            "asinh acosh atanh sigmoid erf floor ceil trunc nearbyint rint round isnan isinf isfinite fma"
        ),
        "language.binary": "atan2 hypot fmod copysign nextafter",
        "language.rounding": (
            "ieee_add ieee_sub ieee_mul ieee_fma ieee_fmaf=ieee_fma ieee_fdiv ieee_frcp ieee_fsqrt ieee_frsqrt"
        ),
        "language.regions": "numerics",
        "values.powers": "pow power=pow",
        "values.extremes": "abs max min clamp",
        "language.integers": (
            "ceildiv align_up floordiv floormod truncdiv truncmod shift_left shift_right bitwise_and bitwise_or "
            "bitwise_xor bitwise_not popcount"
        ),
        "language.random": "philox uniform_of normal_of rng_init rng_rand rng_rand_float",
    },
    "threads": {
        "language.threads": (
            "get_thread_binding get_thread_bindings get_block_binding get_block_bindings get_lane_idx get_warp_idx "
            "sync_threads sync_warp shfl_sync shfl_xor shfl_up shfl_down ballot any_sync all_sync warp_reduce_sum "
            "warp_reduce_max warp_reduce_min warp_reduce_bitand warp_reduce_bitor"
        ),
        "language.votes": "activemask match_any_sync match_all_sync syncthreads_count syncthreads_or syncthreads_and",
        "language.roles": "ws",
    },
    "layouts": {
        "layout": "Layout Fragment",
    },
}

#: Module below ``tile_core`` -> the page of the reference that has its names.
PAGE_OF = {"dtypes": "types", **{module: page for page, modules in _PAGES.items() for module in modules}}


def _table() -> dict[str, tuple[str, str]]:
    table = {name: ("dtypes", row.name) for row in TABLE for name in (row.name, *row.words)}
    table["dtype"] = ("dtypes", "dtype")
    for modules in _PAGES.values():
        for module, names in modules.items():
            for item in names.split():
                public, _, name = item.partition("=")
                table[public] = (module, name or public)
    return table


#: Every name of ``T`` that the core has -> the module below ``tile_core`` and the attribute that defines it.
NAMES = _table()


@cache
def word(name: str) -> Any:
    """Return the object of ``T.<name>``.

    Raises
    ------
    KeyError
        If the core has no such name.
    """
    module, attribute = NAMES[name]
    defined = importlib.import_module(f"tile_core.{module}")
    if module == "dtypes" and attribute != "dtype":
        return defined.DTYPES[attribute]
    found = getattr(defined, attribute)
    return found if name == attribute or isinstance(found, type) else alias(name, found)
