"""Kernels written by hand."""

import dataclasses

from tile_core.abi.kernel_text import KernelText, LaunchFacts, LineMap, ParamFact
from tile_core.errors import Where

SCALE = """\
extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i] * by;
}
"""

#: The same, 16 bytes at a time.
SCALE4 = """\
struct alignas(16) four { float v[4]; };
extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (i >= n) return;
  four a = *(const four*)(x + i);
  for (int j = 0; j < 4; ++j) a.v[j] *= by;
  *(four*)(y + i) = a;
}
"""

SHARED = """\
extern "C" __global__ void last(int* y, int n) {
  extern __shared__ int s[];
  s[n - 1] = 42 + blockIdx.x;
  __syncthreads();
  y[blockIdx.x] = s[n - 1];
}
"""


def facts(entry="scale", align=0, **changes):
    base = LaunchFacts(
        entry,
        (
            ParamFact("x", "pointer", "float32", "read", align),
            ParamFact("y", "pointer", "float32", "write", align),
            ParamFact("by", "scalar", "float32"),
            ParamFact("n", "scalar", "int32"),
        ),
        (("ceildiv", "n", 256), 1, 1),
        (256, 1, 1),
        where=Where("user.py", 1),
    )
    return dataclasses.replace(base, **changes)


def kernel(text, **changes):
    """A text, its entry and parameters being of no matter."""
    return KernelText(text, facts(**changes))


def scale():
    return KernelText(SCALE, facts())


def scale4(general=scale):
    """A vectorized kernel, with a general version for other inputs."""
    promises = facts(align=16, divides={"n": 4}, grid=(("ceildiv", "n", 1024), 1, 1))
    return KernelText(SCALE4, promises, general)


def last(shared_bytes):
    params = (ParamFact("y", "pointer", "int32", "write"), ParamFact("n", "scalar", "int32"))
    return KernelText(SHARED, LaunchFacts("last", params, (3, 1, 1), (1, 1, 1), shared_bytes))


def mapped(text, *lines):
    """A text with lines mapped to the user's file, counted from line 1."""
    return KernelText(text, facts(line_map=LineMap.of([None if n is None else Where("user.py", n) for n in lines])))
