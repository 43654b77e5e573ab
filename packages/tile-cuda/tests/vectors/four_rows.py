"""Kernels that gather and scatter rows of a matrix by fours, with replaceable statements."""

import numpy as np

from .copies import LOAD_PARTS, STORE_PARTS, Copy, descriptor_of, random_array, signature, swizzled

GATHER = "cp.async.bulk.tensor.2d.SPACE.global.tile::gather4.mbarrier::complete_tx::bytes"
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
#: Statements that copy the group `g` of four rows.
LOAD_GROUP = (
    f'asm volatile("{GATHER} [%0], [%1, {{%2, %3, %4, %5, %6}}], [%7];" :: "r"(at(to + g * GROUP)), "l"(&map), '
    '"r"(COLUMN), "r"(rows[g * 4]), "r"(rows[g * 4 + 1]), "r"(rows[g * 4 + 2]), "r"(rows[g * 4 + 3]), '
    '"r"(at(full)) : "memory");'
)
STORE_GROUP = (
    f'asm volatile("{SCATTER} [%0, {{%1, %2, %3, %4, %5}}], [%6];" :: "l"(&map), "r"(COLUMN), '
    '"r"(rows[g * 4]), "r"(rows[g * 4 + 1]), "r"(rows[g * 4 + 2]), "r"(rows[g * 4 + 3]), '
    '"r"(at(from + g * GROUP)) : "memory");'
)

LOAD = """
extern "C" __global__ void k(SIGNATURE) {
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char* to = slab;
  unsigned long long* full = (unsigned long long*)(slab + 49152);
  if (threadIdx.x == 0) { INIT }
  __syncthreads();
  if (threadIdx.x == 0) {
    EXPECT
    for (int g = 0; g < GROUPS; g++) { COPY }
  }
  WAIT
  for (int i = threadIdx.x; i < BYTES; i += blockDim.x) out[i] = to[i];
  AFTER
}
"""
STORE = """
extern "C" __global__ void k(SIGNATURE) {
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char* from = slab;
  for (int i = threadIdx.x; i < BYTES; i += blockDim.x) from[i] = given[i];
  PROXY
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int g = 0; g < GROUPS; g++) { COPY }
    COMMIT
    WAIT
  }
  AFTER
}
"""


def gather_of(array, rows, column, width, *, space="shared::cta", parts=None, box=1, **fields):
    """Return a kernel that gathers rows into `out`, and the expected shared memory."""
    expected = np.zeros((len(rows), width), array.dtype)
    for to, row in enumerate(rows):
        inside = array[row, max(column, 0) : column + width] if 0 <= row < len(array) else array[0, :0]
        expected[to, max(-column, 0) : max(-column, 0) + len(inside)] = inside
    arrays = {"A": array, "rows": np.array(rows, "int32"), "out": np.full(expected.nbytes, 0xAB, np.uint8)}
    text = _filled(LOAD, {"COPY": LOAD_GROUP, **LOAD_PARTS, **(parts or {}), "SPACE": space}, arrays, expected, column)
    return Copy(text, arrays, descriptor_of("A", array, (box, width), **fields)), swizzled(
        expected, fields.get("swizzle", 0)
    )


def scatter_of(shape, dtype, rows, column, width, *, parts=None, box=1, **fields):
    """Return a kernel that scatters distinct rows into `out`, and the expected output."""
    before = random_array(shape, dtype, 1)
    given = random_array((len(rows), width), dtype, 2)
    arrays = {"given": swizzled(given, fields.get("swizzle", 0)), "rows": np.array(rows, "int32"), "out": before.copy()}
    text = _filled(STORE, {"COPY": STORE_GROUP, **STORE_PARTS, **(parts or {})}, arrays, given, column)
    expected = before.copy()
    for row, values in zip(rows, given, strict=True):
        if 0 <= row < shape[0]:
            inside = expected[row, column : column + width]
            inside[:] = values[: len(inside)]
    return Copy(text, arrays, descriptor_of("out", before, (box, width), **fields)), expected


def _filled(text, parts, arrays, moved, column):
    sizes = {"BYTES": moved.nbytes, "GROUPS": len(moved) // 4, "GROUP": moved.nbytes // len(moved) * 4}
    for name, code in {**parts, "SIGNATURE": signature(arrays), **sizes, "COLUMN": column}.items():
        text = text.replace(name, str(code))
    return text
