"""Names of other languages and libraries, with what this language has instead."""

from __future__ import annotations

#: Names -> what to write instead.
_INSTEAD = {
    "sum mean reduce_mean": "T.reduce_sum(src, dst, dim=...) reduces a tile into another one",
    "amax reduce_maximum": "T.reduce_max(src, dst, dim=...) reduces a tile into another one",
    "amin reduce_minimum": "T.reduce_min(src, dst, dim=...) reduces a tile into another one",
    "any": "T.reduce_any(src, dst, dim=...) reduces a tile into another one; T.any_of(...) takes conditions",
    "all": "T.reduce_all(src, dst, dim=...) reduces a tile into another one; T.all_of(...) takes conditions",
    "prod": "T.reduce_prod(src, dst, dim=...) reduces a tile into another one",
    "dot matmul mm bmm mma tensordot einsum": "T.gemm(A, B, C) adds A @ B to C",
    "load store": "T.copy(src, dst) moves tiles; A[i, j] reads and writes one element",
    "ifelse cond": "T.if_then_else(condition, a, b) chooses",
    "arange map vmap": "compute element by element: `for i, j in T.Parallel(M, N): ...`",
    "add sub subtract mul multiply div divide neg negative square": (
        "operators take whole tiles, x * 2 + y, or their elements in `for i, j in T.Parallel(M, N): ...`"
    ),
    "zeros ones full zeros_like ones_like full_like array asarray": (
        "allocate with T.alloc_fragment or T.alloc_shared, then T.fill(buffer, value)"
    ),
    "rand randn randint random seed": "T.philox(seed, seq) gives random words, T.uniform_of(word) a float of one",
    "argsort": "T.topk(src, values, indices) gives the indices of elements in order; T.sort sorts values",
    "associative_scan": "T.scan_with(function, src, dst, dim=..., identity=...)",
    "fold": "T.reduce_with(function, src, dst, dim=..., identity=...)",
    "clip": "T.clamp(value, min_val, max_val)",
    "maximum": "T.max(a, b)",
    "minimum": "T.min(a, b)",
    "astype to type": "T.cast(value, dtype), or value.astype(dtype)",
    "absolute": "T.abs(value)",
    "popcnt": "T.popcount(value)",
    "permute": "T.transpose(src, dst)",
    "program_id": "the names of `with T.Kernel(...) as (bx, by)` are the block's numbers",
    "num_programs": "the extents given to T.Kernel are the numbers of blocks",
    "syncthreads sync_block debug_barrier": "T.sync_threads()",
    "get_thread_idx thread_idx threadIdx thread_id tid": "T.get_thread_binding(axis) is the number of a thread",
    "get_block_idx block_idx blockIdx block_id": (
        "the names of `with T.Kernel(...) as (bx, by)` are the block's numbers"
    ),
    "lane_id laneid get_lane_id": "T.get_lane_idx()",
    "warp_id warpid get_warp_id": "T.get_warp_idx()",
    "shfl_xor_sync": "T.shfl_xor(value, mask)",
    "shfl_up_sync": "T.shfl_up(value, delta)",
    "shfl_down_sync": "T.shfl_down(value, delta)",
    "alloc_register alloc_registers alloc_reg": (
        "T.alloc_fragment(shape, dtype) is a tile in registers, T.alloc_local an array of each thread"
    ),
    "atomic_cas atomic_xchg atomic_exch compare_and_swap": (
        "T.atomic_add, atomic_max, atomic_min, atomic_and, atomic_or and atomic_xor update an element"
    ),
    "logical_and": "a & b, or T.all_of(a, b)",
    "logical_or": "a | b, or T.any_of(a, b)",
    "logical_not": "~a of conditions",
    "relu": "T.max(x, 0)",
    "device_print printf": "T.print(value)",
    "static_assert": "Python's assert",
    "cdiv": "T.ceildiv(a, b)",
    "range": "write `for i in range(n)` or T.serial(n)",
}

#: Name -> what to write instead.
WORDS: dict[str, str] = {name: instead for names, instead in _INSTEAD.items() for name in names.split()}

#: Our keyword -> its names in other libraries.
_KEYWORDS = {
    "transpose_A": "trans_A trans_a transA transa tA adj_a a_transposed transpose_a",
    "transpose_B": "trans_B trans_b transB transb tB adj_b b_transposed transpose_b",
    "dim": "axis axes dims",
    "threads": "num_threads nthreads block_size blockDim block_dim thread_count",
    "num_stages": "stages pipeline_depth",
    "dtype": "type data_type element_type",
    "src": "source input inp x",
    "dst": "dest destination output out",
    "out": "dst dest destination output",
    "shape": "size sizes",
    "clear": "zero clear_dst",
    "clear_accum": "clear zero_init init_zero",
    "init": "initial value initial_value",
    "step": "stride",
    "min_val": "min a_min low lower",
    "max_val": "max a_max high upper",
}

#: Keyword of another library -> the keywords that it may be here, the likeliest first.
KEYWORDS: dict[str, list[str]] = {}
for _ours, _theirs in _KEYWORDS.items():
    for _name in _theirs.split():
        KEYWORDS.setdefault(_name, []).append(_ours)
