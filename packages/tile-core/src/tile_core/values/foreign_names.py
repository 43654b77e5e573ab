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
    "arange add sub subtract mul multiply div divide neg negative square map vmap": (
        "compute element by element: `for i, j in T.Parallel(M, N): ...`"
    ),
    "zeros ones full zeros_like ones_like full_like array asarray": (
        "allocate with T.alloc_fragment or T.alloc_shared, then T.fill(buffer, value)"
    ),
    "rand randn randint random seed": "T.philox(seed, seq) gives random words, T.uniform_of(word) a float of one",
    "argsort": "T.topk(src, values, indices) gives the indices of elements in order; T.sort sorts values",
    "associative_scan": "T.scan_with(function, src, dst, dim=..., identity=...)",
    "fold": "T.reduce_with(function, src, dst, dim=..., identity=...)",
    "clip": "T.clamp(value, low, high)",
    "maximum": "T.max(a, b)",
    "minimum": "T.min(a, b)",
    "astype": "T.cast(value, dtype)",
    "absolute": "T.abs(value)",
    "popcnt": "T.popcount(value)",
    "permute": "T.transpose(src, dst)",
    "program_id": "the names of `with T.Kernel(...) as (bx, by)` are the block's numbers",
    "num_programs": "the extents given to T.Kernel are the numbers of blocks",
    "syncthreads": "T.sync_threads()",
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
    "low": "min a_min lower",
    "high": "max a_max upper",
}

#: Keyword of another library -> the keywords that it may be here, the likeliest first.
KEYWORDS: dict[str, list[str]] = {}
for _ours, _theirs in _KEYWORDS.items():
    for _name in _theirs.split():
        KEYWORDS.setdefault(_name, []).append(_ours)
