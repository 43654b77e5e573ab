# ruff: noqa: E501 - texts of kernels
"""Built-in variables and functions of the language."""

import numpy as np
import pytest

from .launches import poison, run

# One kernel for many small checks: each writes its own elements.
BUILTINS = """\
extern "C" __global__ void __launch_bounds__(64) builtins(const float* __restrict__ x, float* out_f, unsigned* out_u, int* totals) {
  extern __shared__ __align__(1024) unsigned char smem[];
  unsigned t = threadIdx.x, lane = t % warpSize;
  unsigned* u = out_u + (blockIdx.x * blockDim.x + t) * 16;
  float* f = out_f + (blockIdx.x * blockDim.x + t) * 8;
  float v = x[t];
  u[0] = gridDim.x * 1000 + blockIdx.x * 100 + blockDim.x;
  u[1] = __shfl_sync(0xffffffffu, t, 5);
  u[2] = __shfl_down_sync(0xffffffffu, t, 3, 8);
  u[3] = (unsigned)(__shfl_xor_sync(0xffffffffu, (long long)t << 33, 1) >> 33);
  u[4] = __ballot_sync(0xffffffffu, lane < 7);
  u[5] = __any_sync(0xffffffffu, lane == 40) + 2 * __all_sync(0xffffffffu, lane < 32) + 4 * __syncthreads_or(t == 63)
       + 8 * __syncthreads_and(t < 63) + 16 * __syncthreads_count(t < 3);
  u[6] = __activemask();
  u[7] = (unsigned)__cvta_generic_to_shared(smem + 64);
  uint4 q = make_uint4(t, t + 1, t + 2, t + 3);
  *(uint4*)(smem + t * 16) = q;
  __syncthreads();
  u[8] = ((const uint4*)smem)[63 - t].w;
  u[9] = __popc(t) + 100 * __clz(t) + 10000 * __ffs(t);
  u[10] = __byte_perm(0x33221100, 0x77665544, 0x7520);
  u[11] = __umulhi(0x80000000u, t) + __brev(t) + __funnelshift_l(t, t, 8);
  u[12] = (unsigned)__float2int_rn(v * 3e9f);
  u[13] = __float2uint_rz(v);
  u[14] = min(3, (int)t) + max(4u, t);
  u[15] = __ldg(totals + 1) + sizeof(float4) + alignof(uint2);
  f[0] = expf(v) + exp2f(v);
  f[1] = rsqrtf(fabsf(v) + 1.0f) + __frcp_rn(v + 9.0f);
  f[2] = fmaf(v, v, v) + fmaxf(v, 0.25f) + fminf(v, NAN);
  f[3] = tanhf(v) + erff(v) + powf(2.0f, v);
  f[4] = __uint_as_float(__float_as_uint(v) ^ 0x80000000u);
  f[5] = floorf(v) + rintf(v) + truncf(v) + copysignf(1.0f, v);
  f[6] = log1pf(fabsf(v)) + sqrtf(fabsf(v)) + sinf(v) * cosf(v);
  f[7] = __saturatef(v) + isnan(v) + fmodf(v, 0.5f);
  atomicAdd(totals, 1);
  atomicMax(totals + 2, (int)t);
  atomicAdd((unsigned*)totals + 3, 2u);
  __threadfence();
  assert(t < 64);
}
"""


@pytest.mark.parametrize(("completion", "order"), [("early", "forward"), ("late", "random")])
def test_builtins(completion, order):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=64) * 2).astype("float32")
    totals = np.array([0, 5, -9, 0], "int32")
    args = [x, poison(2, 64, 8), poison(2, 64, 16, dtype="uint32"), totals]
    result = run(BUILTINS, args, (2, 1, 1), (64, 1, 1), 1024, completion=completion, order=order)
    assert result.ok, [str(r) for r in result.reports]
    t = np.arange(64)
    lane, u = t % 32, result.outputs["out_u"]
    assert result.outputs["totals"].tolist() == [128, 5, 63, 256]
    down = np.where(lane % 8 + 3 < 8, t + 3, t)
    clz = [32 - int(i).bit_length() for i in t]
    ffs = [(int(i) & -int(i)).bit_length() for i in t]
    brev = [int(f"{i:032b}"[::-1], 2) for i in t]
    rotated = ((t << 8) | (t >> 24)) & 0xFFFFFFFF
    wide = np.rint((x * np.float32(3e9)).astype("float64"))
    expected = {
        1: t - lane + 5, 2: down, 3: t ^ 1, 4: np.full(64, 127), 5: np.full(64, 2 + 4 + 16 * 3), 6: np.full(64, 2**32 - 1),
        7: np.full(64, 1024 + 64), 8: 63 - t + 3, 9: [bin(i).count("1") for i in t] + 100 * np.array(clz) + 10000 * np.array(ffs),
        10: np.full(64, 0x77552200), 11: (t // 2 + np.array(brev) + rotated) & 0xFFFFFFFF,
        12: np.clip(wide, -(2**31), 2**31 - 1).astype("int64") & 0xFFFFFFFF, 13: np.maximum(np.trunc(x), 0),
        14: np.minimum(3, t) + np.maximum(4, t), 15: np.full(64, 5 + 16 + 8),
    }  # fmt: skip
    for block in range(2):
        assert (u[block, :, 0] == 2000 + 100 * block + 64).all()
        for i, values in expected.items():
            assert np.array_equal(u[block, :, i], np.asarray(values).astype("uint64")), i
    check_floats(x.astype("float64"), result.outputs["out_f"][1])


def check_floats(v, f):
    from math import erf

    errors = np.array([erf(i) for i in v])
    expected = [
        np.exp(v) + 2**v, 1 / np.sqrt(abs(v) + 1) + 1 / (v + 9), v * v + v + np.maximum(v, 0.25) + v,
        np.tanh(v) + errors + 2**v, -v, np.floor(v) + np.rint(v) + np.trunc(v) + np.copysign(1, v),
        np.log1p(abs(v)) + np.sqrt(abs(v)) + np.sin(v) * np.cos(v), np.clip(v, 0, 1) + np.fmod(v, 0.5),
    ]  # fmt: skip
    for i, values in enumerate(expected):
        np.testing.assert_allclose(f[:, i], values, rtol=3e-6, atol=3e-6, err_msg=str(i))


BARRIERS = """\
extern "C" __global__ void barriers(const int* x, int* out) {
  extern __shared__ int s[];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = x[t];
    asm volatile("bar.arrive 1, 96;" ::: "memory");
    asm volatile("barrier.sync.aligned %0, %1;" : : "r"(2), "n"(64) : "memory");
    out[t] = s[63 - t];
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[t] = s[t - 64];
  }
  asm volatile("fence.acq_rel.gpu; membar.gl; bar.sync 0;" ::: "memory");
  s[t] = t;
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  unsigned active;
  asm volatile("activemask.b32 %0;" : "=r"(active));
  out[t + 96] = s[t ^ 1] + (active == 0xffffffffu ? 1000 : 0);
}
"""


def test_barriers():
    x = np.random.default_rng(5).integers(0, 99, 64).astype("int32")
    for completion, order in (("early", "forward"), ("late", "reverse"), ("early", "random")):
        result = run(BARRIERS, [x, poison(192, dtype="int32")], block=(96, 1, 1), shared_bytes=384,
                     completion=completion, order=order)  # fmt: skip
        assert result.ok, [str(r) for r in result.reports]
        out = result.outputs["out"]
        assert np.array_equal(out[:96], np.concatenate([x[::-1], x[:32]]))
        assert np.array_equal(out[96:], (np.arange(96) ^ 1) + 1000)


@pytest.mark.parametrize("value", [3, 4])
def test_a_trap_is_a_report_where_it_is_reached(value):
    text = (
        'extern "C" __global__ void stops(const int* x, int* out) {\n'
        '  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 4; @p trap; }" : : "r"(x[0]));\n  out[threadIdx.x] = 7;\n}\n'
    )
    result = run(text, [np.array([value], "int32"), poison(32, dtype="int32")])
    assert result.ok == (value != 4), [str(r) for r in result.reports]
    assert (result.outputs["out"] == 7).all() == (value != 4)
