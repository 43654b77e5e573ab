"""Tables of TileLang's names and keywords: hints here, and rejections with replacements.

The language itself is searched first: a name of tile or an installed backend is never looked up here.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from tile_core.errors.guess import nearest

_FENCES = "fences between products and threads are placed by tile"
_REGISTERS = "the target's compiler distributes registers; results do not depend on it"

#: Calls that carry no meaning for tile -> the reason. They are accepted anywhere and do nothing.
HINTS = {
    "annotate_consumer_reg_alloc": _REGISTERS,
    "annotate_producer_reg_dealloc": _REGISTERS,
    "annotate_min_blocks_per_sm": _REGISTERS,
    "dec_max_nreg": _REGISTERS,
    "disable_warp_group_reg_alloc": _REGISTERS,
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

_NOTES = "notes for another compiler's passes"
_INSTRUCTION = "tile chooses the instruction; `variant=` demands one by tile's own names"

#: Op or loop -> keyword that is dropped -> the reason. Other ops define such keywords themselves.
KEYWORDS: dict[str, dict[str, str]] = {
    **{
        op: {"annotations": _NOTES}
        for op in "fill clear transpose cumsum cumprod cummax gather scatter grid Persistent unroll vectorized".split()
    },
    "copy": {"prefer_instruction": _INSTRUCTION},
    "gemm": {"prefer_instruction": _INSTRUCTION},
    "tcgen05_gemm": {"annotations": _NOTES},
    "finalize_reducer": {"annotations": _NOTES, "batch": "how many results are combined at a time"},
}

_TEXT = "a kernel has one meaning on every target, and foreign code has none"
_TIR = "it is a statement of the compiler below"
_BARRIER = "barriers are placed by tile"
_ROLE = "roles are named by the group that does the work"

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
    "get_warp_idx_sync canonical_warp_idx": ("all lanes of a warp agree on it anyway", "write T.get_warp_idx()"),
    "shuffle_elect elect_one* get_warp_group_idx": ("who issues an operation is the target's choice", "leave it out"),
    "ldg* stg* __ldg": ("loads are as wide as they may be", "write A[i], or T.copy"),
    "fence_*": (_BARRIER, "leave it out: tile orders what depends on each other"),
    "WSSchedule WSRole ws_op": (_ROLE, "write `with T.ws(0): ...` and `with T.ws(1): ...`"),
    "cdiv": ("it is a function of the host", "write T.ceildiv(a, b)"),
    "make_tensor_map *_descriptor *_descriptor_offset": ("descriptors are made by tile", "write T.copy of the tensor"),
    "call_extern call_pure_extern call_intrin call_packed call_* import_source": (
        _TEXT,
        "write what it computes in the language",
    ),
    "access_ptr address_of tvm_access_ptr": ("memory is named by buffers", "pass the buffer or a slice of it, A[i:j]"),
    "ptx_* tvm_* ldmatrix* stmatrix* mma_*": (
        "an instruction of one target",
        "write T.copy and T.gemm: the target chooses instructions",
    ),
    "*x2 *x4 *x8 *x16 *x32 *x64": (
        "element types are scalar",
        "write the scalar type: loads and stores become as wide as they may",
    ),
    "block reads writes init match_buffer decl_buffer alloc_buffer attr evaluate LetStmt Let launch_thread env_thread "
    "sblock* handle Var var": (_TIR, "write T.alloc_shared, T.alloc_fragment, T.Parallel and T.copy"),
    "*Emitter *IntrinEmitter": ("instructions are chosen by tile", "write T.gemm(A, B, C)"),
    "loop_break": ("Python's word is the language's", "write break"),
    "quantize* dequantize* decode_*": (
        "it is a library of code for one target",
        "write the arithmetic with >>, & and T.cast",
    ),
}

#: Names of the host interface -> what to write instead.
_HOST = {
    "lower": "write tilelang.compile(program, target=...).kernel_source",
    "engine": "write tilelang.compile(program, target=...).kernel_source",
    "carver": "write the configurations as a list: @tilelang.autotune(configs=[...])",
    "carver.*": "write the configurations as a list: @tilelang.autotune(configs=[...])",
    "contrib": "what it generates for one vendor's compiler, tile builds itself",
    "contrib.*": "what it generates for one vendor's compiler, tile builds itself",
    "intrinsics": "write T.gemm: the target chooses the instruction",
    "intrinsics.*": "write T.gemm: the target chooses the instruction",
    "quantize": "write the arithmetic with >>, & and T.cast, or pass a type of 4 or 8 bits",
    "quantize.*": "write the arithmetic with >>, & and T.cast, or pass a type of 4 or 8 bits",
    "tools": "write print(kernel.explain()), or `tile explain FILE`",
    "tools.*": "write print(kernel.explain()), or `tile explain FILE`",
    "analysis": "write print(kernel.explain())",
    "env": "write tilelang.disable_cache(), or set a variable that `tile doctor` lists",
    "tvm": "tile does not pass TVM on: import what is needed from tvm itself",
    "ir": "write print(kernel.program)",
    "nvcc": "print(kernel.kernel_source)",
}


def refusal(name: str) -> tuple[str, str] | None:
    """Return why tile has no ``T.<name>``, and what to write instead; ``None`` for unknown names."""
    for patterns, answer in REFUSED.items():
        if any(fnmatch.fnmatchcase(name, p) for p in patterns.split()):
            return answer
    return None


def host_remedy(name: str, known: Sequence[str]) -> str:
    """Return the replacement of a name of the host interface."""
    for pattern, answer in _HOST.items():
        if fnmatch.fnmatchcase(name, pattern):
            return answer
    near = nearest(name, list(known))
    return f"did you mean {near[0]}?" if near else f"tile-tilelang has: {', '.join(n for n in known if n[0] != '_')}"
