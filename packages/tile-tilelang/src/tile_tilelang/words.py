"""Tables of TileLang's names and keywords: hints here, and rejections with replacements.

The language itself is searched first: a name of tile or an installed backend is never looked up here.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from tile_runtime.errors.guess import nearest

_FENCES = "fences between products and threads are placed by tile"
_REGISTERS = "the target's compiler distributes registers; results do not depend on it"

#: Calls that carry no meaning for tile -> the reason. They are accepted anywhere and do nothing.
HINTS = {
    "annotate_consumer_reg_alloc": _REGISTERS,
    "annotate_producer_reg_dealloc": _REGISTERS,
    "annotate_compile_flags": "flags of a vendor's compiler; options of the target have names of their own",
    "annotate_min_blocks_per_sm": _REGISTERS,
    "annotate_pass_configs": "notes for another compiler's passes",
    "annotate_ws_schedule": "tile chooses the roles of warps; results do not depend on them",
    "annotate_restrict_buffers": "whether arrays overlap is checked at every call",
    "dec_max_nreg": _REGISTERS,
    "disable_warp_group_reg_alloc": _REGISTERS,
    "func_attr": "notes for another compiler's passes",
    "inc_max_nreg": _REGISTERS,
    "no_set_max_nreg": _REGISTERS,
    "set_max_nreg": _REGISTERS,
    "deallocate_tmem": "columns of tensor memory are freed at the end of the block",
    "tcgen05_after_thread_sync": _FENCES,
    "tcgen05_before_thread_sync": _FENCES,
    "wait_wgmma": "products have finished where their results are read",
    "pdl_sync": "launches are in order: one that follows another in a stream sees all that it wrote",
    "pdl_trigger": "launches are in order: the next one may not begin earlier than tile lets it",
}

_INSTRUCTION = "tile chooses the instruction; `variant=` demands one by tile's own names"

#: Op -> keyword that is dropped -> the reason; `tile_tilelang.parameters` has those of all functions.
KEYWORDS: dict[str, dict[str, str]] = {
    "copy": {"prefer_instruction": _INSTRUCTION},
    "gemm": {"prefer_instruction": _INSTRUCTION},
    "tcgen05_gemm": {"annotations": "notes for another compiler's passes"},
}

_TEXT = "a kernel has one meaning on every target, and foreign code has none"
_TIR = "it is a statement of the compiler below"
_BARRIER = "barriers are placed by tile"

#: Hints that tile takes at their word, and refuses where they have none: here they remain hints.
ONLY_HINTS = frozenset({"pdl_sync", "pdl_trigger", "set_max_nreg"})

#: Pattern of a name -> why tile does not have it, and what to write instead. The first that matches counts.
REFUSED = {
    "tcgen05_gemm_blockscaled": (
        "scales are tiles in shared memory",
        "write T.tcgen05_gemm_scaled(A, A_scale, B, B_scale, C)",
    ),
    "tcgen05_mma_arrive": (
        "products name their own barrier",
        "give the last product the barrier: T.tcgen05_gemm(..., mbar=...)",
    ),
    "tcgen05_*": (
        "an instruction of one architecture",
        "write T.gemm(A, B, C), or T.tcgen05_gemm(A, B, C) with an accumulator of T.alloc_tmem",
    ),
    "wgmma_* warpgroup_*": (
        "an instruction of one architecture",
        "write T.gemm(A, B, C): the target chooses the instruction",
    ),
    "alloc_cluster_barrier cluster_* block_rank_in_cluster": (
        "blocks do not share memory",
        "write T.Kernel, and T.copy",
    ),
    "ClusterKernel": ("blocks do not share memory", "write T.Kernel(*blocks, threads=...)"),
    "mbarrier_* barrier_*": (_BARRIER, "leave it out: T.copy and T.gemm wait for what they read"),
    "sync_barrier named_barrier_*": (_BARRIER, "write T.sync_threads()"),
    "tma_copy async_copy tma_load*": ("T.copy describes the transfer", "write T.copy(src, dst) in T.Pipelined"),
    "tma_store*": (
        "T.copy describes the transfer",
        "write T.copy(src, dst): its data is there when the kernel ends",
    ),
    "ptx_commit_group ptx_wait_group cp_async_*": (_BARRIER, "write T.copy in T.Pipelined(n, num_stages=2)"),
    "create_list_of_mbarrier get_mbarrier": (
        _BARRIER,
        "write T.alloc_barrier([count, ...]), on targets that have them",
    ),
    "sync_global": (
        "blocks of one launch do not wait",
        "write T.sync_grid(), which ends the launch, or another T.Kernel",
    ),
    "canonical_warp_idx": ("all lanes of a warp agree on it anyway", "write T.get_warp_idx()"),
    "elect_one*": ("who issues an operation is the target's choice", "leave it out"),
    "__tilelang_*": ("every name is one of all targets", "leave it out"),
    "__*": ("an instruction of one target", "write the arithmetic in the language"),
    "fence_*": (_BARRIER, "leave it out: tile orders what depends on each other"),
    "clc_*": ("the target distributes blocks", "write T.PersistentTileScheduler(m_tiles, n_tiles)"),
    "CUDASourceCodeKernel": (_TEXT, "write what it computes in the language"),
    "make_tensor_from_addr retrieve_ptr isnullptr lookup_param": (
        "memory is named by buffers",
        "pass the buffer, or write T.make_tensor(table[i], shape)",
    ),
    "print_*": ("one function prints everything", "write T.print(x, msg=...) under `if`"),
    "get_*_extent get_*_extents": ("it is known while tracing", "write the number that T.Kernel was given"),
    "make_*_layout get_mma_* get_ldmatrix_* get_swizzle_* alloc_*_desc alloc_tcgen05_*": (
        "layouts and descriptors are the target's choice",
        "leave it out, or write T.make_swizzled_layout(buffer)",
    ),
    "is_f8f6f4_family is_float4* get_tvm_dtype resolve_torch_storage_dtype validate_gemm_ab_dtypes DataType* *DType": (
        "element types have attributes",
        "write T.dtype(name).bits, .is_float, .as_torch()",
    ),
    "float4_*_unpacked": ("4-bit floats are packed", "write T.float4_e2m1fn"),
    "abs2 add2 sub2 mul2 fma2 min2 vector* undef": (
        "values are scalar",
        "write the scalar arithmetic: it becomes as wide as it may",
    ),
    "cdiv": ("it is a function of the host", "write T.ceildiv(a, b)"),
    "make_tensor_map *_descriptor *_descriptor_offset": ("descriptors are made by tile", "write T.copy of the tensor"),
    "call_extern call_pure_extern call_intrin call_packed call_* import_source": (
        _TEXT,
        "write what it computes in the language",
    ),
    "address_of tvm_access_ptr": ("memory is named by buffers", "pass the buffer or a slice of it, A[i:j]"),
    "ptx_* tvm_* ldmatrix* stmatrix* mma_*": (
        "an instruction of one target",
        "write T.copy and T.gemm: the target chooses instructions",
    ),
    "*x2 *x4 *x8 *x16 *x32 *x64": (
        "element types are scalar",
        "write the scalar type: loads and stores become as wide as they may",
    ),
    "comm_reducer allocate frame int_ ir ret tirx tvm IntImm StringImm BufferLoad Shuffle *Frame anylist_* "
    "TVMBackend* q_multiply_shift* vscale register_object get_let_value has_let_value *_profile_intrinsic "
    "create_barriers index_to_coordinates block reads writes init match_buffer decl_buffer attr evaluate "
    "LetStmt Let launch_thread env_thread "
    "sblock* handle var": (_TIR, "write T.alloc_shared, T.alloc_fragment, T.Parallel and T.copy"),
    "*Emitter *IntrinEmitter": ("instructions are chosen by tile", "write T.gemm(A, B, C)"),
    "loop_break": ("Python's word is the language's", "write break"),
    "quantize* dequantize* decode_*": (
        "it is a library of code for one target",
        "write the arithmetic with >>, & and T.cast",
    ),
}

_CHOSEN = "write T.gemm and T.copy: the target chooses instructions and layouts"

#: Names of the host interface -> what to write instead.
_HOST = {
    "carver": "write the configurations as a list: @tilelang.autotune(configs=[...])",
    "carver.*": "write the configurations as a list: @tilelang.autotune(configs=[...])",
    "contrib": "what it generates for one vendor's compiler, tile builds itself",
    "contrib.*": "what it generates for one vendor's compiler, tile builds itself",
    "intrinsics": _CHOSEN,
    "intrinsics.*": _CHOSEN,
    "cuda": _CHOSEN,
    "cuda.*": _CHOSEN,
    "rocm": _CHOSEN,
    "rocm.*": _CHOSEN,
    "metal.*": _CHOSEN,
    "cache.*": "write tilelang.disable_cache(), or set TILE_CACHE_DIR",
    "engine": "write tilelang.compile(program, target=...).kernel_source",
    "engine.*": "write tilelang.compile(program, target=...).kernel_source",
    "env.*": "set a variable that `tile doctor` lists",
    "_ffi_api": "it is code of another compiler",
    "errors": "errors of tile are those of tile_core.errors",
    "errors.*": "errors of tile are those of tile_core.errors",
    "jit.adapter.*": "tile's runtimes launch kernels; `tile targets` lists them",
    "layout.*": _CHOSEN,
    "math.*": "it is a function of the host: write it in Python",
    "profiler.*": "write kernel.get_profiler(), or tilelang.profiler.do_bench(f)",
    "tileop.*": _CHOSEN,
    "transform.*": "passes of another compiler have no meaning here; leave it out",
    "utils.*": "it belongs to another compiler; leave it out",
    "webgpu": "name a target that `tile targets` lists",
    "webgpu.*": "name a target that `tile targets` lists",
    "language.*": "write `import tilelang.language as T`, whose names are tile's",
    "ir.*": "write print(kernel.program)",
    "utils.pass_diff*": "set TILE_DUMP_DIR to a folder: every pass is written there",
    "quantize": "write the arithmetic with >>, & and T.cast, or pass a type of 4 or 8 bits",
    "quantize.*": "write the arithmetic with >>, & and T.cast, or pass a type of 4 or 8 bits",
    "tools": "write print(kernel.explain()), or `tile explain FILE`",
    "tools.*": "write print(kernel.explain()), or `tile explain FILE`",
    "analysis": "write print(kernel.explain())",
    "env": "write tilelang.disable_cache(), or set a variable that `tile doctor` lists",
    "ir": "write print(kernel.program)",
    "nvcc": "print(kernel.kernel_source)",
}


def is_protocol(name: str) -> bool:
    """Return whether a name is one of Python's own, ``__path__``."""
    return name.startswith("__") and name.endswith("__") and not name.startswith("__tilelang")


def refusal(name: str) -> tuple[str, str] | None:
    """Return why tile has no ``T.<name>``, and what to write instead; ``None`` for unknown names."""
    for patterns, answer in REFUSED.items():
        if any(fnmatch.fnmatchcase(name, p) for p in patterns.split()):
            return answer
    return None


def known_remedy(name: str) -> str:
    """Return the replacement of a host name that tile is known to lack, else nothing."""
    return next((answer for pattern, answer in _HOST.items() if fnmatch.fnmatchcase(name, pattern)), "")


def host_remedy(name: str, known: Sequence[str]) -> str:
    """Return the replacement of a name of the host interface."""
    remedy = known_remedy(name)
    if remedy:
        return remedy
    near = nearest(name, list(known))
    return f"did you mean {near[0]}?" if near else f"tile-tilelang has: {', '.join(n for n in known if n[0] != '_')}"
