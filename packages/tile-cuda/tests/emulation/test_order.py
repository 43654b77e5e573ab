"""Flags in memory that order data: no race, unless any part is missing."""

import numpy as np
import pytest

from .launches import kinds, poison, report_text, run

pytestmark = pytest.mark.sweep(3)

# Every block leaves a part; the last one to come adds them up.
LAST_BLOCK = """
extern "C" __global__ void k(float* parts, unsigned* count, float* out) {
  __shared__ int last;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x + threadIdx.x;
  RELEASE
  __syncthreads();
  if (threadIdx.x == 0) {
    BEFORE
    unsigned old = COUNT;
    AFTER
    last = old == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; b++) sum += parts[b * blockDim.x + threadIdx.x];
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0) *count = 0;
  }
}
"""
FENCED = {"RELEASE": "", "BEFORE": "__threadfence();", "COUNT": "atomicAdd(count, 1u)", "AFTER": "__threadfence();"}


def atom(order):
    return f'0; asm volatile("atom.{order}.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(count), "r"(1u) : "memory")'


def last_block(blocks=5, order="forward", **parts):
    text = LAST_BLOCK
    for name, code in {**FENCED, **parts}.items():
        text = text.replace(name, code)
    threads = 64
    args = {"parts": poison(blocks * threads), "count": np.zeros(1, np.uint32), "out": poison(threads)}
    result = run(text, args, (blocks, 1, 1), (threads, 1, 1), order=order)
    expected = blocks * (blocks - 1) / 2 + blocks * np.arange(threads)
    return result, expected


RIGHT = {
    "fences": {},
    "a release and an acquire": {"BEFORE": "", "AFTER": "", "COUNT": atom("acq_rel.gpu")},
    "of the whole system": {"BEFORE": "", "AFTER": "", "COUNT": atom("acq_rel.sys")},
    "a fence and an acquire": {"AFTER": "", "COUNT": atom("acquire.gpu")},
    "a release and a fence": {"BEFORE": "", "COUNT": atom("release.gpu")},
    "fences of PTX": {"BEFORE": 'asm volatile("fence.acq_rel.gpu;" ::: "memory");',
                      "AFTER": 'asm volatile("membar.gl;" ::: "memory");'},
    "a fence of the block besides": {"BEFORE": "__threadfence(); __threadfence_block();"},
}  # fmt: skip
WRONG = {
    "no fence before": {"BEFORE": ""},
    "no fence after": {"AFTER": ""},
    "no fence": {"BEFORE": "", "AFTER": ""},
    "a fence of the block before": {"BEFORE": "__threadfence_block();"},
    "a fence of the block after": {"AFTER": "__threadfence_block();"},
    "only a release": {"BEFORE": "", "AFTER": "", "COUNT": atom("release.gpu")},
    "only an acquire": {"BEFORE": "", "AFTER": "", "COUNT": atom("acquire.gpu")},
    "an order of the block": {"BEFORE": "", "AFTER": "", "COUNT": atom("acq_rel.cta")},
    "fences before the barrier, none by the thread that counts": {"RELEASE": "__threadfence();", "BEFORE": ""},
    "a fence too early": {"BEFORE": "", "parts[blockIdx.x * blockDim.x + threadIdx.x] =":
                          "__threadfence(); parts[blockIdx.x * blockDim.x + threadIdx.x] ="},
}  # fmt: skip


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("name", RIGHT)
def test_the_last_block_reads_writes_of_the_others(name, order):
    result, expected = last_block(order=order, **RIGHT[name])
    assert result.ok, report_text(result)
    assert np.array_equal(np.asarray(result.outputs["out"]), expected)
    assert np.asarray(result.outputs["count"])[0] == 0


@pytest.mark.parametrize("name", WRONG)
def test_the_last_block_needs_both_sides(name):
    result, _ = last_block(**WRONG[name])
    assert kinds(result) == {"race"}, report_text(result)


def test_a_part_written_after_the_release_is_a_race():
    text = "last = old == gridDim.x - 1; parts[blockIdx.x * blockDim.x] = 1;"
    result, _ = last_block(AFTER="__threadfence();", **{"last = old == gridDim.x - 1;": text})
    assert kinds(result) == {"race"}, report_text(result)


# Blocks add to one tile, one after the other.
SEMAPHORE = """
extern "C" __global__ void k(float* tile, float* seen, unsigned* turn, const float* x) {
  if (threadIdx.x == 0) {
    unsigned now;
    do {
      asm volatile("ld.LOAD.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    } while (now != blockIdx.x);
  }
  BARRIER
  float old = blockIdx.x ? tile[threadIdx.x] : 0.0f;
  tile[threadIdx.x] = old + x[blockIdx.x * blockDim.x + threadIdx.x];
  if (blockIdx.x == 1) seen[threadIdx.x] = old;
  if (blockIdx.x == gridDim.x - 1) tile[threadIdx.x] += seen[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.STORE.gpu.global.u32 [%0], %1;" : : "l"(turn), "r"(blockIdx.x + 1) : "memory");
}
"""


def semaphore(load="acquire", store="release", barrier="__syncthreads();"):
    rng = np.random.default_rng(5)
    x = rng.integers(-9, 9, (7, 33)).astype(np.float32)
    text = SEMAPHORE.replace("LOAD", load).replace("STORE", store).replace("BARRIER", barrier)
    args = {"tile": poison(33), "seen": poison(33), "turn": np.zeros(1, np.uint32), "x": x}
    result = run(text, args, (7, 1, 1), (33, 1, 1))
    return result, x.sum(axis=0) + x[0][::-1]


def test_alternating_blocks():
    result, expected = semaphore()
    assert result.ok, report_text(result)
    assert np.array_equal(np.asarray(result.outputs["tile"]), expected)


@pytest.mark.parametrize("what", [{"load": "relaxed"}, {"store": "relaxed"}, {"barrier": ""}], ids=str)
def test_alternating_blocks_need_the_whole_order(what):
    result, _ = semaphore(**what)
    assert kinds(result) == {"race"}, report_text(result)


# Within a block: thread 0 gives, the threads of another warp take.
FLAG = """
extern "C" __global__ void k(float* data, unsigned* flag, float* out) {
  if (threadIdx.x == 0) {
    data[0] = 7;
    asm volatile("st.STORE.global.u32 [%0], %1;" : : "l"(flag), "r"(1u) : "memory");
  } else if (threadIdx.x >= 32) {
    unsigned now;
    do {
      asm volatile("ld.LOAD.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
    } while (!now);
    FENCE
    out[threadIdx.x] = data[0];
  }
}
"""


@pytest.mark.parametrize(("load", "store", "after", "right"), [
    ("acquire.gpu", "release.gpu", "", True), ("acquire.cta", "release.cta", "", True),
    ("relaxed.cta", "release.cta", "__threadfence_block();", True), ("relaxed.gpu", "release.gpu", "", False),
    ("acquire.gpu", "relaxed.gpu", "", False), ("relaxed.gpu", "relaxed.gpu", "__threadfence();", False),
])  # fmt: skip
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_a_flag_within_a_block(load, store, after, right, order):
    text = FLAG.replace("LOAD", load).replace("STORE", store).replace("FENCE", after)
    args = {"data": poison(1), "flag": np.zeros(1, np.uint32), "out": np.zeros(64, np.float32)}
    result = run(text, args, block=(64, 1, 1), order=order)
    assert kinds(result) == (set() if right else {"race"}), report_text(result)
    if right:
        assert (np.asarray(result.outputs["out"])[32:] == 7).all()
