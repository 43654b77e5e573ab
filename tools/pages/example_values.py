"""Examples of value names, one expression each: parallel loops, threads, expert steps."""

from __future__ import annotations

VALUE = """
cast: T.cast(x, "bfloat16")
reinterpret: T.reinterpret(n, "float32")
infinity: T.infinity("float32")
max_value: T.max_value("float16")
min_value: T.min_value("int32")
fma: T.fma(x, y, z)
atan2: T.atan2(y, x)
hypot: T.hypot(x, y)
fmod: T.fmod(x, y)
copysign: T.copysign(x, y)
nextafter: T.nextafter(x, y)
ieee_add: T.ieee_add(x, y)
ieee_sub: T.ieee_sub(x, y)
ieee_mul: T.ieee_mul(x, y)
ieee_fma: T.ieee_fma(x, y, z)
ieee_fmaf: T.ieee_fmaf(x, y, z)
ieee_fdiv: T.ieee_fdiv(x, y)
ieee_frcp: T.ieee_frcp(x)
ieee_fsqrt: T.ieee_fsqrt(x)
ieee_frsqrt: T.ieee_frsqrt(x)
pow: T.pow(x, y)
power: T.power(x, 3)
abs: T.abs(x)
max: T.max(x, y)
min: T.min(x, y, z)
clamp: T.clamp(x, 0.0, 1.0)
if_then_else: T.if_then_else(c, x, y)
Select: T.Select(c, x, y)
where: T.where(c, x, y)
any_of: T.any_of(X[0:3, i])
all_of: T.all_of(X[0:3, i])
ceildiv: T.ceildiv(n, 8)
align_up: T.align_up(n, 8)
floordiv: T.floordiv(n, 8)
floormod: T.floormod(n, 8)
truncdiv: T.truncdiv(n, 8)
truncmod: T.truncmod(n, 8)
shift_left: T.shift_left(n, 2)
shift_right: T.shift_right(n, 2)
bitwise_and: T.bitwise_and(m, n)
bitwise_or: T.bitwise_or(m, n)
bitwise_xor: T.bitwise_xor(m, n)
bitwise_not: T.bitwise_not(n)
popcount: T.popcount(n)
philox: T.philox(7, i)[0] % 10
uniform_of: T.uniform_of(T.philox(7, i)[0])
normal_of: T.normal_of(T.philox(7, i)[0], T.philox(7, i)[1])[0]
""" + "".join(
    f"{name}: T.{name}(x)\n"
    for name in (
        "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh sigmoid erf floor ceil trunc nearbyint rint round isnan isinf isfinite"
    ).split()
)

THREAD = """
shfl_sync: T.shfl_sync(x, 0)
shfl_xor: T.shfl_xor(x, 1)
shfl_up: T.shfl_up(x, 1)
shfl_down: T.shfl_down(x, 1)
ballot: T.cast(T.ballot(c), "float32")
any_sync: T.any_sync(c)
all_sync: T.all_sync(c)
activemask: T.cast(T.popcount(T.activemask()), "float32")
match_any_sync: T.cast(T.match_any_sync(n), "float32")
match_all_sync: T.cast(T.match_all_sync(n), "float32")
syncthreads_count: T.syncthreads_count(c)
syncthreads_and: T.syncthreads_and(c)
syncthreads_or: T.syncthreads_or(c)
warp_reduce_sum: T.warp_reduce_sum(x)
warp_reduce_max: T.warp_reduce_max(x)
warp_reduce_min: T.warp_reduce_min(x)
warp_reduce_bitand: T.warp_reduce_bitand(n)
warp_reduce_bitor: T.warp_reduce_bitor(n)
"""

#: Statements of copies, barriers, clusters and products that guarantee an instruction.
STEPS = """
tma_copy: T.tma_copy(A[0:64, 0:64], S)
tma_store_wait:
    T.tma_copy(S, A[0:64, 0:64])
    T.tma_store_wait()
async_copy:
    T.async_copy(A[0:64, 0:64], S)
    T.ptx_wait_group(0)
ptx_commit_group:
    T.async_copy(A[0:64, 0:64], S)
    T.ptx_commit_group()
    T.ptx_wait_group(0)
ptx_wait_group:
    T.async_copy(A[0:64, 0:64], S)
    T.ptx_wait_group(0)
tma_gather4:
    four = T.alloc_shared((4, 64), "float32")
    T.tma_gather4(A, four, 0, [3, 1, 1, 0])
tma_scatter4:
    four = T.alloc_shared((4, 64), "float32")
    T.clear(four)
    T.tma_scatter4(four, B, 0, [3, 1, 2, 0])
tcgen05_gemm:
    x = T.alloc_shared((128, 64), "float16")
    y = T.alloc_fragment((128, 128), "float32")
    T.clear(x)
    T.tcgen05_gemm(x, x, y, False, True, clear_accum=True)
alloc_tmem:
    x = T.alloc_shared((128, 64), "float16")
    sums = T.alloc_tmem((128, 128), "float32")
    y = T.alloc_fragment((128, 128), "float32")
    T.clear(x)
    T.tcgen05_gemm(x, x, sums, False, True, clear_accum=True)
    T.copy(sums, y)
tcgen05_gemm_scaled:
    x, s = T.alloc_shared((128, 64), "float8_e4m3fn"), T.alloc_shared((128, 2), "float8_e8m0fnu")
    y = T.alloc_fragment((128, 128), "float32")
    T.clear(x)
    T.fill(s, 0.5)
    T.tcgen05_gemm_scaled(x, s, x, s, y, False, True, clear_accum=True)
tcgen05_gemm_sp:
    x = T.alloc_shared((128, 32), "float16")
    e = T.alloc_shared((128, 4), "int16")
    y = T.alloc_fragment((128, 64), "float32")
    T.clear(x)
    T.fill(e, 0x4444)
    T.tcgen05_gemm_sp(x, e, H, y, clear_accum=True)
tma_gather4_bytes: T.tma_gather4_bytes(64, "float16")
cluster_arrive:
    T.cluster_arrive()
    T.cluster_wait()
cluster_arrive_relaxed:
    T.cluster_arrive_relaxed()
    T.cluster_wait()
cluster_wait:
    T.cluster_arrive()
    T.cluster_wait()
cluster_sync: T.cluster_sync()
cluster_size: blocks = T.cluster_size()
block_rank_in_cluster: rank = T.block_rank_in_cluster()
alloc_barrier: full = T.alloc_barrier(128)
alloc_cluster_barrier: free = T.alloc_cluster_barrier([128, 128])
barrier_arrive:
    full = T.alloc_barrier(128)
    T.barrier_arrive(full)
barrier_wait:
    full = T.alloc_barrier(128)
    T.barrier_arrive(full)
    T.barrier_wait(full, 0)
mbarrier_arrive:
    full = T.alloc_barrier([128, 128])
    T.mbarrier_arrive(full[1])
mbarrier_wait_parity:
    full = T.alloc_barrier(128)
    T.mbarrier_arrive(full)
    T.mbarrier_wait_parity(full, 0)
mbarrier_expect_tx:
    full = T.alloc_barrier(128)
    T.mbarrier_expect_tx(full, 64 * 64 * 4)
    T.tma_copy(A[0:64, 0:64], S, barrier=full)
    T.mbarrier_arrive(full)
    T.mbarrier_wait_parity(full, 0)
fence_proxy_async: T.fence_proxy_async()
fence_barrier_init: T.fence_barrier_init()
wait_wgmma:
    T.wgmma_gemm(H, H, F)
    T.wait_wgmma(0)
warpgroup_arrive: T.warpgroup_arrive()
warpgroup_commit_batch: T.warpgroup_commit_batch()
warpgroup_fence_operand: T.warpgroup_fence_operand(F)
warpgroup_wait:
    T.wgmma_gemm(H, H, F)
    T.warpgroup_wait(0)
set_max_nreg:
    with T.ws(0):
        T.set_max_nreg(40, False)
wgmma_gemm: T.wgmma_gemm(H, H, F)
wgmma_gemm_sp:
    V, E = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 4), "int16")
    T.copy(values, V)
    T.copy(meta, E)
    T.wgmma_gemm_sp(V, E, H, F)
simdgroup_gemm_sp: T.simdgroup_gemm_sp(values, meta, H, F)
cooperative_tensor_gemm_sp: T.cooperative_tensor_gemm_sp(values, meta, H, F)
"""
