# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""``import tile_tilelang.language as T``: the language of tile, with TileLang's spellings."""

from tile_core.language import Buffer as Buffer
from tile_core.language import Fragment as Fragment
from tile_core.language import GemmWarpPolicy as GemmWarpPolicy
from tile_core.language import Kernel as Kernel
from tile_core.language import Layout as Layout
from tile_core.language import Parallel as Parallel
from tile_core.language import Persistent as Persistent
from tile_core.language import Pipelined as Pipelined
from tile_core.language import PrimFunc as PrimFunc
from tile_core.language import Ref as Ref
from tile_core.language import Select as Select
from tile_core.language import StridedTensor as StridedTensor
from tile_core.language import Tensor as Tensor
from tile_core.language import abs as abs
from tile_core.language import acos as acos
from tile_core.language import acosh as acosh
from tile_core.language import activemask as activemask
from tile_core.language import align_up as align_up
from tile_core.language import all_of as all_of
from tile_core.language import all_sync as all_sync
from tile_core.language import alloc_global as alloc_global
from tile_core.language import alloc_local as alloc_local
from tile_core.language import alloc_reducer as alloc_reducer
from tile_core.language import alloc_shared as alloc_shared
from tile_core.language import alloc_var as alloc_var
from tile_core.language import annotate_l2_hit_ratio as annotate_l2_hit_ratio
from tile_core.language import annotate_layout as annotate_layout
from tile_core.language import annotate_safe_value as annotate_safe_value
from tile_core.language import any_of as any_of
from tile_core.language import any_sync as any_sync
from tile_core.language import argmax as argmax
from tile_core.language import argmin as argmin
from tile_core.language import asin as asin
from tile_core.language import asinh as asinh
from tile_core.language import assume as assume
from tile_core.language import atan as atan
from tile_core.language import atan2 as atan2
from tile_core.language import atanh as atanh
from tile_core.language import atomic_add as atomic_add
from tile_core.language import atomic_and as atomic_and
from tile_core.language import atomic_max as atomic_max
from tile_core.language import atomic_min as atomic_min
from tile_core.language import atomic_or as atomic_or
from tile_core.language import atomic_xor as atomic_xor
from tile_core.language import ballot as ballot
from tile_core.language import bfloat16 as bfloat16
from tile_core.language import bitwise_and as bitwise_and
from tile_core.language import bitwise_not as bitwise_not
from tile_core.language import bitwise_or as bitwise_or
from tile_core.language import bitwise_xor as bitwise_xor
from tile_core.language import bool as bool
from tile_core.language import c2d_im2col as c2d_im2col
from tile_core.language import cbrt as cbrt
from tile_core.language import ceil as ceil
from tile_core.language import ceildiv as ceildiv
from tile_core.language import clamp as clamp
from tile_core.language import clear as clear
from tile_core.language import const as const
from tile_core.language import copysign as copysign
from tile_core.language import cos as cos
from tile_core.language import cosh as cosh
from tile_core.language import cummax as cummax
from tile_core.language import cumprod as cumprod
from tile_core.language import cumsum as cumsum
from tile_core.language import device_assert as device_assert
from tile_core.language import double as double
from tile_core.language import dp4a as dp4a
from tile_core.language import dtype as dtype
from tile_core.language import dynamic as dynamic
from tile_core.language import erf as erf
from tile_core.language import exp as exp
from tile_core.language import exp10 as exp10
from tile_core.language import exp2 as exp2
from tile_core.language import expm1 as expm1
from tile_core.language import fill as fill
from tile_core.language import float as float
from tile_core.language import float16 as float16
from tile_core.language import float32 as float32
from tile_core.language import float4_e2m1fn as float4_e2m1fn
from tile_core.language import float64 as float64
from tile_core.language import float8_e4m3 as float8_e4m3
from tile_core.language import float8_e4m3fn as float8_e4m3fn
from tile_core.language import float8_e4m3fnuz as float8_e4m3fnuz
from tile_core.language import float8_e5m2 as float8_e5m2
from tile_core.language import float8_e5m2fnuz as float8_e5m2fnuz
from tile_core.language import float8_e8m0fnu as float8_e8m0fnu
from tile_core.language import floor as floor
from tile_core.language import floordiv as floordiv
from tile_core.language import floormod as floormod
from tile_core.language import fma as fma
from tile_core.language import fmod as fmod
from tile_core.language import fp8_scaled_matmul as fp8_scaled_matmul
from tile_core.language import gather as gather
from tile_core.language import gemm_scaled as gemm_scaled
from tile_core.language import gemm_sp as gemm_sp
from tile_core.language import gemm_sp_v2 as gemm_sp_v2
from tile_core.language import gemm_v2 as gemm_v2
from tile_core.language import get_block_binding as get_block_binding
from tile_core.language import get_block_bindings as get_block_bindings
from tile_core.language import get_thread_binding as get_thread_binding
from tile_core.language import get_thread_bindings as get_thread_bindings
from tile_core.language import grid as grid
from tile_core.language import half as half
from tile_core.language import hypot as hypot
from tile_core.language import ieee_add as ieee_add
from tile_core.language import ieee_fdiv as ieee_fdiv
from tile_core.language import ieee_fma as ieee_fma
from tile_core.language import ieee_fmaf as ieee_fmaf
from tile_core.language import ieee_frcp as ieee_frcp
from tile_core.language import ieee_frsqrt as ieee_frsqrt
from tile_core.language import ieee_fsqrt as ieee_fsqrt
from tile_core.language import ieee_mul as ieee_mul
from tile_core.language import ieee_sub as ieee_sub
from tile_core.language import if_then_else as if_then_else
from tile_core.language import im2col as im2col
from tile_core.language import infinity as infinity
from tile_core.language import int as int
from tile_core.language import int16 as int16
from tile_core.language import int32 as int32
from tile_core.language import int4 as int4
from tile_core.language import int64 as int64
from tile_core.language import int8 as int8
from tile_core.language import isfinite as isfinite
from tile_core.language import isinf as isinf
from tile_core.language import isnan as isnan
from tile_core.language import log as log
from tile_core.language import log10 as log10
from tile_core.language import log1p as log1p
from tile_core.language import log2 as log2
from tile_core.language import logsumexp as logsumexp
from tile_core.language import long as long
from tile_core.language import macro as macro
from tile_core.language import make_tensor as make_tensor
from tile_core.language import match_all_sync as match_all_sync
from tile_core.language import match_any_sync as match_any_sync
from tile_core.language import max as max
from tile_core.language import max_value as max_value
from tile_core.language import min as min
from tile_core.language import min_value as min_value
from tile_core.language import nearbyint as nearbyint
from tile_core.language import nextafter as nextafter
from tile_core.language import normal_of as normal_of
from tile_core.language import numerics as numerics
from tile_core.language import philox as philox
from tile_core.language import popcount as popcount
from tile_core.language import pow as pow
from tile_core.language import power as power
from tile_core.language import prim_func as prim_func
from tile_core.language import print as print
from tile_core.language import ptr as ptr
from tile_core.language import reduce as reduce
from tile_core.language import reduce_absmax as reduce_absmax
from tile_core.language import reduce_abssum as reduce_abssum
from tile_core.language import reduce_all as reduce_all
from tile_core.language import reduce_any as reduce_any
from tile_core.language import reduce_bitand as reduce_bitand
from tile_core.language import reduce_bitor as reduce_bitor
from tile_core.language import reduce_bitxor as reduce_bitxor
from tile_core.language import reduce_max as reduce_max
from tile_core.language import reduce_min as reduce_min
from tile_core.language import reduce_prod as reduce_prod
from tile_core.language import reduce_sum as reduce_sum
from tile_core.language import reduce_with as reduce_with
from tile_core.language import reducer_update as reducer_update
from tile_core.language import reshape as reshape
from tile_core.language import rint as rint
from tile_core.language import rng_rand as rng_rand
from tile_core.language import rng_rand_float as rng_rand_float
from tile_core.language import rsqrt as rsqrt
from tile_core.language import scan_with as scan_with
from tile_core.language import scatter as scatter
from tile_core.language import serial as serial
from tile_core.language import shfl_down as shfl_down
from tile_core.language import shfl_sync as shfl_sync
from tile_core.language import shfl_up as shfl_up
from tile_core.language import shfl_xor as shfl_xor
from tile_core.language import shift_left as shift_left
from tile_core.language import shift_right as shift_right
from tile_core.language import short as short
from tile_core.language import sigmoid as sigmoid
from tile_core.language import sin as sin
from tile_core.language import sinh as sinh
from tile_core.language import sort as sort
from tile_core.language import sqrt as sqrt
from tile_core.language import static_range as static_range
from tile_core.language import symbolic as symbolic
from tile_core.language import sync_grid as sync_grid
from tile_core.language import sync_threads as sync_threads
from tile_core.language import sync_warp as sync_warp
from tile_core.language import syncthreads_and as syncthreads_and
from tile_core.language import syncthreads_count as syncthreads_count
from tile_core.language import syncthreads_or as syncthreads_or
from tile_core.language import tan as tan
from tile_core.language import tanh as tanh
from tile_core.language import tfloat32 as tfloat32
from tile_core.language import topk as topk
from tile_core.language import transpose as transpose
from tile_core.language import trunc as trunc
from tile_core.language import truncdiv as truncdiv
from tile_core.language import truncmod as truncmod
from tile_core.language import uint as uint
from tile_core.language import uint16 as uint16
from tile_core.language import uint32 as uint32
from tile_core.language import uint4 as uint4
from tile_core.language import uint64 as uint64
from tile_core.language import uint8 as uint8
from tile_core.language import uniform_of as uniform_of
from tile_core.language import use_swizzle as use_swizzle
from tile_core.language import vectorized as vectorized
from tile_core.language import view as view
from tile_core.language import warp_reduce_bitand as warp_reduce_bitand
from tile_core.language import warp_reduce_bitor as warp_reduce_bitor
from tile_core.language import warp_reduce_max as warp_reduce_max
from tile_core.language import warp_reduce_min as warp_reduce_min
from tile_core.language import warp_reduce_sum as warp_reduce_sum
from tile_core.language import where as where
from tile_core.language import ws as ws
from tile_core.language import Buffer as FragmentBuffer
from tile_core.language import Buffer as LocalBuffer
from tile_core.language import serial as Serial
from tile_core.language import Buffer as SharedBuffer
from tile_core.language import unroll as Unroll
from tile_core.language import vectorized as Vectorized
from tile_core.language import ws as WarpSpecialize
from tile_core.language import macro as inline
from tile_core.language import Parallel as parallel
from tile_core.language import cos as __cos
from tile_core.language import exp as __exp
from tile_core.language import exp10 as __exp10
from tile_core.language import log as __log
from tile_core.language import log10 as __log10
from tile_core.language import log2 as __log2
from tile_core.language import sin as __sin
from tile_core.language import tan as __tan
from tile_tilelang.spellings import __ffs as __ffs
from tile_tilelang.spellings import __ldg as __ldg
from tile_tilelang.spellings import Cast as Cast
from tile_tilelang.spellings import BaseTileScheduler as BaseTileScheduler
from tile_tilelang.spellings import PersistentTileScheduler as PersistentTileScheduler
from tile_tilelang.spellings import PrimExpr as PrimExpr
from tile_tilelang.spellings import Var as Var
from tile_tilelang.spellings import WSID as WSID
from tile_tilelang.spellings import WSInstr as WSInstr
from tile_tilelang.spellings import WSOpRef as WSOpRef
from tile_tilelang.spellings import WSPipeline as WSPipeline
from tile_tilelang.spellings import WSRole as WSRole
from tile_tilelang.spellings import WSSchedule as WSSchedule
from tile_tilelang.spellings import WSScope as WSScope
from tile_tilelang.spellings import WSSync as WSSync
from tile_tilelang.spellings import WSSyncKind as WSSyncKind
from tile_tilelang.spellings import access_ptr as access_ptr
from tile_tilelang.spellings import alloc_buffer as alloc_buffer
from tile_tilelang.spellings import alloc_fragment as alloc_fragment
from tile_tilelang.spellings import alloc_tmem as alloc_tmem
from tile_tilelang.spellings import atomic_load as atomic_load
from tile_tilelang.spellings import atomic_store as atomic_store
from tile_tilelang.spellings import attr as attr
from tile_tilelang.spellings import ballot_sync as ballot_sync
from tile_tilelang.spellings import call_extern as call_extern
from tile_tilelang.spellings import cast as cast
from tile_tilelang.spellings import comm_reducer as comm_reducer
from tile_tilelang.spellings import copy as copy
from tile_tilelang.spellings import cp_async_barrier_noinc as cp_async_barrier_noinc
from tile_tilelang.spellings import empty as empty
from tile_tilelang.spellings import evaluate as evaluate
from tile_tilelang.spellings import finalize_reducer as finalize_reducer
from tile_tilelang.spellings import gemm as gemm
from tile_tilelang.spellings import get_lane_idx as get_lane_idx
from tile_tilelang.spellings import get_warp_group_idx as get_warp_group_idx
from tile_tilelang.spellings import get_warp_idx as get_warp_idx
from tile_tilelang.spellings import get_warp_idx_sync as get_warp_idx_sync
from tile_tilelang.spellings import import_source as import_source
from tile_tilelang.spellings import likely as likely
from tile_tilelang.spellings import make_full_bank_swizzled_layout as make_full_bank_swizzled_layout
from tile_tilelang.spellings import make_half_bank_swizzled_layout as make_half_bank_swizzled_layout
from tile_tilelang.spellings import make_linear_layout as make_linear_layout
from tile_tilelang.spellings import make_quarter_bank_swizzled_layout as make_quarter_bank_swizzled_layout
from tile_tilelang.spellings import make_swizzled_layout as make_swizzled_layout
from tile_tilelang.spellings import mbarrier_wait_parity as mbarrier_wait_parity
from tile_tilelang.spellings import meta_class as meta_class
from tile_tilelang.spellings import ptx_cp_async as ptx_cp_async
from tile_tilelang.spellings import reducer_init as reducer_init
from tile_tilelang.spellings import reinterpret as reinterpret
from tile_tilelang.spellings import rng_init as rng_init
from tile_tilelang.spellings import round as round
from tile_tilelang.spellings import shuffle_elect as shuffle_elect
from tile_tilelang.spellings import tcgen05_gemm as tcgen05_gemm
from tile_tilelang.spellings import thread_binding as thread_binding
from tile_tilelang.spellings import tvm_thread_allreduce as tvm_thread_allreduce
from tile_tilelang.spellings import tvm_warp_shuffle as tvm_warp_shuffle
from tile_tilelang.spellings import tvm_warp_shuffle_down as tvm_warp_shuffle_down
from tile_tilelang.spellings import tvm_warp_shuffle_up as tvm_warp_shuffle_up
from tile_tilelang.spellings import unroll as unroll
from tile_tilelang.spellings import ws_op as ws_op
from tile_tilelang.vectors import VectorType as VectorType
from tile_tilelang.vectors import atomic_addx2 as atomic_addx2
from tile_tilelang.vectors import atomic_addx4 as atomic_addx4
from tile_tilelang.vectors import extract_lane as extract_lane
from tile_tilelang.vectors import ldg32 as ldg32
from tile_tilelang.vectors import ldg64 as ldg64
from tile_tilelang.vectors import ldg128 as ldg128
from tile_tilelang.vectors import ldg256 as ldg256
from tile_tilelang.vectors import lds32 as lds32
from tile_tilelang.vectors import lds64 as lds64
from tile_tilelang.vectors import lds128 as lds128
from tile_tilelang.vectors import lds256 as lds256
from tile_tilelang.vectors import stg32 as stg32
from tile_tilelang.vectors import stg64 as stg64
from tile_tilelang.vectors import stg128 as stg128
from tile_tilelang.vectors import stg256 as stg256
from tile_tilelang.vectors import sts32 as sts32
from tile_tilelang.vectors import sts64 as sts64
from tile_tilelang.vectors import sts128 as sts128
from tile_tilelang.vectors import sts256 as sts256
from tile_tilelang._names import annotate_compile_flags as annotate_compile_flags
from tile_tilelang._names import annotate_consumer_reg_alloc as annotate_consumer_reg_alloc
from tile_tilelang._names import annotate_min_blocks_per_sm as annotate_min_blocks_per_sm
from tile_tilelang._names import annotate_pass_configs as annotate_pass_configs
from tile_tilelang._names import annotate_producer_reg_dealloc as annotate_producer_reg_dealloc
from tile_tilelang._names import annotate_restrict_buffers as annotate_restrict_buffers
from tile_tilelang._names import annotate_ws_schedule as annotate_ws_schedule
from tile_tilelang._names import deallocate_tmem as deallocate_tmem
from tile_tilelang._names import dec_max_nreg as dec_max_nreg
from tile_tilelang._names import disable_warp_group_reg_alloc as disable_warp_group_reg_alloc
from tile_tilelang._names import func_attr as func_attr
from tile_tilelang._names import inc_max_nreg as inc_max_nreg
from tile_tilelang._names import no_set_max_nreg as no_set_max_nreg
from tile_tilelang._names import pdl_sync as pdl_sync
from tile_tilelang._names import pdl_trigger as pdl_trigger
from tile_tilelang._names import set_max_nreg as set_max_nreg
from tile_tilelang._names import tcgen05_after_thread_sync as tcgen05_after_thread_sync
from tile_tilelang._names import tcgen05_before_thread_sync as tcgen05_before_thread_sync
from tile_tilelang._names import wait_wgmma as wait_wgmma

__all__ = [
    "BaseTileScheduler",
    "Buffer",
    "Cast",
    "Fragment",
    "FragmentBuffer",
    "GemmWarpPolicy",
    "Kernel",
    "Layout",
    "LocalBuffer",
    "Parallel",
    "Persistent",
    "PersistentTileScheduler",
    "Pipelined",
    "PrimExpr",
    "PrimFunc",
    "Ref",
    "Select",
    "Serial",
    "SharedBuffer",
    "StridedTensor",
    "Tensor",
    "Unroll",
    "Var",
    "VectorType",
    "Vectorized",
    "WSID",
    "WSInstr",
    "WSOpRef",
    "WSPipeline",
    "WSRole",
    "WSSchedule",
    "WSScope",
    "WSSync",
    "WSSyncKind",
    "WarpSpecialize",
    "__cos",
    "__exp",
    "__exp10",
    "__ffs",
    "__ldg",
    "__log",
    "__log10",
    "__log2",
    "__sin",
    "__tan",
    "abs",
    "access_ptr",
    "acos",
    "acosh",
    "activemask",
    "align_up",
    "all_of",
    "all_sync",
    "alloc_buffer",
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_reducer",
    "alloc_shared",
    "alloc_tmem",
    "alloc_var",
    "annotate_compile_flags",
    "annotate_consumer_reg_alloc",
    "annotate_l2_hit_ratio",
    "annotate_layout",
    "annotate_min_blocks_per_sm",
    "annotate_pass_configs",
    "annotate_producer_reg_dealloc",
    "annotate_restrict_buffers",
    "annotate_safe_value",
    "annotate_ws_schedule",
    "any_of",
    "any_sync",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "assume",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_addx2",
    "atomic_addx4",
    "atomic_and",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_xor",
    "attr",
    "ballot",
    "ballot_sync",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "c2d_im2col",
    "call_extern",
    "cast",
    "cbrt",
    "ceil",
    "ceildiv",
    "clamp",
    "clear",
    "comm_reducer",
    "const",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "cp_async_barrier_noinc",
    "cummax",
    "cumprod",
    "cumsum",
    "deallocate_tmem",
    "dec_max_nreg",
    "device_assert",
    "disable_warp_group_reg_alloc",
    "double",
    "dp4a",
    "dtype",
    "dynamic",
    "empty",
    "erf",
    "evaluate",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "extract_lane",
    "fill",
    "finalize_reducer",
    "float",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "fp8_scaled_matmul",
    "func_attr",
    "gather",
    "gemm",
    "gemm_scaled",
    "gemm_sp",
    "gemm_sp_v2",
    "gemm_v2",
    "get_block_binding",
    "get_block_bindings",
    "get_lane_idx",
    "get_thread_binding",
    "get_thread_bindings",
    "get_warp_group_idx",
    "get_warp_idx",
    "get_warp_idx_sync",
    "grid",
    "half",
    "hypot",
    "ieee_add",
    "ieee_fdiv",
    "ieee_fma",
    "ieee_fmaf",
    "ieee_frcp",
    "ieee_frsqrt",
    "ieee_fsqrt",
    "ieee_mul",
    "ieee_sub",
    "if_then_else",
    "im2col",
    "import_source",
    "inc_max_nreg",
    "infinity",
    "inline",
    "int",
    "int16",
    "int32",
    "int4",
    "int64",
    "int8",
    "isfinite",
    "isinf",
    "isnan",
    "ldg128",
    "ldg256",
    "ldg32",
    "ldg64",
    "lds128",
    "lds256",
    "lds32",
    "lds64",
    "likely",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsumexp",
    "long",
    "macro",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "make_tensor",
    "match_all_sync",
    "match_any_sync",
    "max",
    "max_value",
    "mbarrier_wait_parity",
    "meta_class",
    "min",
    "min_value",
    "nearbyint",
    "nextafter",
    "no_set_max_nreg",
    "normal_of",
    "numerics",
    "parallel",
    "pdl_sync",
    "pdl_trigger",
    "philox",
    "popcount",
    "pow",
    "power",
    "prim_func",
    "print",
    "ptr",
    "ptx_cp_async",
    "reduce",
    "reduce_absmax",
    "reduce_abssum",
    "reduce_all",
    "reduce_any",
    "reduce_bitand",
    "reduce_bitor",
    "reduce_bitxor",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_with",
    "reducer_init",
    "reducer_update",
    "reinterpret",
    "reshape",
    "rint",
    "rng_init",
    "rng_rand",
    "rng_rand_float",
    "round",
    "rsqrt",
    "scan_with",
    "scatter",
    "serial",
    "set_max_nreg",
    "shfl_down",
    "shfl_sync",
    "shfl_up",
    "shfl_xor",
    "shift_left",
    "shift_right",
    "short",
    "shuffle_elect",
    "sigmoid",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "static_range",
    "stg128",
    "stg256",
    "stg32",
    "stg64",
    "sts128",
    "sts256",
    "sts32",
    "sts64",
    "symbolic",
    "sync_grid",
    "sync_threads",
    "sync_warp",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "tan",
    "tanh",
    "tcgen05_after_thread_sync",
    "tcgen05_before_thread_sync",
    "tcgen05_gemm",
    "tfloat32",
    "thread_binding",
    "topk",
    "transpose",
    "trunc",
    "truncdiv",
    "truncmod",
    "tvm_thread_allreduce",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "uint",
    "uint16",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "uniform_of",
    "unroll",
    "use_swizzle",
    "vectorized",
    "view",
    "wait_wgmma",
    "warp_reduce_bitand",
    "warp_reduce_bitor",
    "warp_reduce_max",
    "warp_reduce_min",
    "warp_reduce_sum",
    "where",
    "ws",
    "ws_op",
]
