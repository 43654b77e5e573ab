"""Kernels that copy boxes of tensors and wait for them, with replaceable statements.

The same texts run on the models and on a device, where ``record_copies.py`` keeps what comes out.
"""

import operator
from dataclasses import dataclass

import numpy as np

from tile_core.abi.descriptor import TensorDescriptor
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.dtypes import dtype

PRELUDE = """
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(unsigned long long* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void expect(unsigned long long* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes) : "memory");
}
__device__ void arrive(unsigned long long* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory");
}
__device__ void wait(unsigned long long* b, int parity) {
  asm volatile("{\\n.reg .pred p;\\nAGAIN:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n"
      "@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void wait_group() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ void wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
"""


@dataclass
class Copy:
    """A kernel `k(arrays..., map)` with its arguments; arrays named `out...` are written."""

    text: str
    arrays: dict
    descriptor: TensorDescriptor
    grid: tuple = (1, 1, 1)
    cluster: tuple = (1, 1, 1)
    shared_bytes: int = 65536

    def kernel(self):
        """Return the text with its facts."""
        pointers = [
            ParamFact(name, "pointer", str(a.dtype), "readwrite" if name.startswith("out") else "read", 16)
            for name, a in self.arrays.items()
        ]
        constant = ParamFact("map", "opaque", "", "read", 64, 128, self.descriptor)
        facts = LaunchFacts(
            "k", (*pointers, constant), self.grid, (64, 1, 1), self.shared_bytes, cluster=self.cluster
        )  # fmt: skip
        head = "__cluster_dims__({}, {}, {}) ".format(*self.cluster) if self.cluster != (1, 1, 1) else ""
        return KernelText(PRELUDE + self.text.replace("__global__ void k(", f"__global__ void {head}k("), facts)


def load(rank, tail=""):
    """Return a statement that copies the box at `x0, x1, ...` (innermost first) to `to`."""
    regs = ", ".join(f"%{i + 2}" for i in range(rank))
    given = ", ".join(f'"r"(x{i})' for i in range(rank))
    opcode = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    operands = f'"r"(at(to)), "l"(&map), {given}, "r"(at(full))'
    return f'asm volatile("{opcode} [%0], [%1, {{{regs}}}], [%{rank + 2}];" :: {operands} : "memory");{tail}'


def store(rank, operation=""):
    """Return a statement that copies or reduces a box from `from` to the tensor."""
    regs = ", ".join(f"%{i + 1}" for i in range(rank))
    given = ", ".join(f'"r"(x{i})' for i in range(rank))
    head = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile.bulk_group"
    opcode = head if operation else f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
    return f'asm volatile("{opcode} [%0, {{{regs}}}], [%{rank + 1}];" :: "l"(&map), {given}, "r"(at(from)) : "memory");'


def signature(arrays, scalars=()):
    """Return the parameters of such a kernel."""
    kinds = {"uint8": "unsigned char", "uint16": "unsigned short", "int32": "int", "uint32": "unsigned",
             "float32": "float", "float64": "double", "uint64": "unsigned long long", "int64": "long long"}  # fmt: skip
    pointers = [f"{kinds[str(a.dtype)]}* {name}" for name, a in arrays.items()]
    return ", ".join([*pointers, *(f"int {s}" for s in scalars), "const __grid_constant__ CUtensorMap map"])


def box_of(array, at, box, fill=0):
    """Return the elements of a box of an array, `fill` out of bounds."""
    found = np.full(box, fill, array.dtype)
    inside = [(max(a, 0), max(a, 0, min(a + n, size))) for a, n, size in zip(at, box, array.shape, strict=True)]
    to = tuple(slice(low - a, high - a) for (low, high), a in zip(inside, at, strict=True))
    found[to] = array[tuple(slice(*part) for part in inside)]
    return found


def swizzled(rows, swizzle):
    """Return the bytes of rows in shared memory at a multiple of 1024."""
    data = np.ascontiguousarray(rows).view(np.uint8).ravel()
    placed = np.zeros_like(data)
    mask = swizzle // 16 - 1 if swizzle else 0
    chunk = np.arange(data.size // 16)
    whole = data.size // 16 * 16
    placed[:whole].reshape(-1, 16)[chunk ^ (chunk >> 3 & mask)] = data[:whole].reshape(-1, 16)
    return placed


def descriptor_of(name, array, box, **fields):
    """Return the descriptor of a whole array, which may be a view with strides."""
    kind = fields.pop("dtype", str(array.dtype))
    size = dtype(kind).bits // 8
    strides = tuple(n // size for n in array.strides)
    return TensorDescriptor(name, kind, array.shape, strides, tuple(box), **fields)


LOAD = """
extern "C" __global__ void k({signature}) {{
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char* to = slab;
  unsigned long long* full = (unsigned long long*)(slab + 49152);
  if (threadIdx.x == 0) {{ INIT }}
  __syncthreads();
  if (threadIdx.x == 0) {{
    int x0 = {at[0]}, x1 = {at[1]}, x2 = {at[2]}, x3 = {at[3]}, x4 = {at[4]};
    EXPECT
    {load}
  }}
  WAIT
  for (int i = threadIdx.x; i < {bytes}; i += blockDim.x) out[i] = to[i];
  AFTER
}}
"""
LOAD_PARTS = {
    "INIT": "init(full, 1); fence_init();",
    "EXPECT": "expect(full, BYTES);",
    "WAIT": "wait(full, 0);",
    "AFTER": "",
}


def load_of(array, at, box, *, parts=None, fields=None):
    """Return a kernel that loads one box into `out`, and the expected shared memory."""
    rank = len(box)
    rows = box_of(array, at, box)
    out = np.full(rows.nbytes, 0xAB, np.uint8)
    arrays = {"A": array, "out": out}
    text = LOAD.format(
        signature=signature(arrays), at=(*reversed(at), 0, 0, 0, 0)[:5], load=load(rank), bytes=rows.nbytes
    )  # fmt: skip
    for name, code in {**LOAD_PARTS, **(parts or {})}.items():
        text = text.replace(name, code)
    text = text.replace("BYTES", str(rows.nbytes))
    descriptor = descriptor_of("A", array, box, **(fields or {}))
    return Copy(text, arrays, descriptor), swizzled(rows, (fields or {}).get("swizzle", 0))


def random_array(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(1, 120, shape).astype(dtype)


STORE = """
extern "C" __global__ void k({signature}) {{
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char* from = slab;
  for (int i = threadIdx.x; i < {bytes}; i += blockDim.x) from[i] = given[i];
  PROXY
  __syncthreads();
  if (threadIdx.x == 0) {{
    int x0 = {at[0]}, x1 = {at[1]}, x2 = {at[2]}, x3 = {at[3]}, x4 = {at[4]};
    {store}
    COMMIT
    WAIT
  }}
  AFTER
}}
"""
STORE_PARTS = {"PROXY": "fence_proxy();", "COMMIT": "commit();", "WAIT": "wait_read();", "AFTER": ""}


COMBINED = {"": lambda old, new: new, "add": operator.add, "max": max, "xor": operator.xor}


def store_of(shape, dtype, at, box, *, operation="", parts=None, fields=None):
    """Return a kernel that stores or reduces one box into `out`, and the expected output."""
    before = random_array(shape, dtype, 1)
    rows = random_array(box, dtype, 2)
    arrays = {"given": swizzled(rows, (fields or {}).get("swizzle", 0)), "out": before.copy()}
    given = (*reversed(at), 0, 0, 0, 0)[:5]
    text = STORE.format(signature=signature(arrays), at=given, store=store(len(box), operation), bytes=rows.nbytes)
    for name, code in {**STORE_PARTS, **(parts or {})}.items():
        text = text.replace(name, code)
    copy = Copy(text, arrays, descriptor_of("out", before, box, **(fields or {})))
    expected = before.copy()
    for index in np.ndindex(*box):
        where = tuple(a + i for a, i in zip(at, index, strict=True))
        if all(0 <= w < n for w, n in zip(where, shape, strict=True)):
            old, new = expected[where], rows[index]
            expected[where] = COMBINED[operation](old, new)
    return copy, expected


#: The blocks of a cluster of 2 share a box: each loads one half, and both halves go to both. The slot is used twice.
MULTICAST = """
__device__ unsigned other(const void* p, int rank) {
  unsigned d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(at(p)), "r"(rank));
  return d;
}
extern "C" __global__ void k({signature}) {{
  extern __shared__ __align__(1024) unsigned char slab[];
  float* box = (float*)slab;
  unsigned long long* full = (unsigned long long*)(slab + 4096);
  unsigned long long* empty = full + 1;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {{ init(full, 1); init(empty, EMPTY); fence_init(); }}
  JOIN
  float sum = 0;
  for (int trip = 0; trip < 3; trip++) {{
    if (threadIdx.x == 0) {{
      REUSE
      expect(full, 16 * 32 * 4);
      unsigned short blocks = BLOCKS;
      int x0 = 0, x1 = trip * 16 + rank * 8;
      float* to = box + rank * 8 * 32;
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1, {{%2, %3}}], [%4], %5;"
          :: "r"(at(to)), "l"(&map), "r"(x0), "r"(x1), "r"(at(full)), "h"(blocks) : "memory");
    }}
    wait(full, trip & 1);
    for (int i = threadIdx.x; i < 16 * 32; i += 64) sum += box[i];
    __syncthreads();
    if (threadIdx.x < 2) {{ RELEASE }}
  }}
  out[blockIdx.x * 64 + threadIdx.x] = sum;
  LEAVE
}}
"""
CLUSTER = 'asm volatile("barrier.cluster.arrive.release;\\nbarrier.cluster.wait.acquire;" ::: "memory");'
MULTICAST_PARTS = {
    "EMPTY": "2", "JOIN": CLUSTER, "REUSE": "wait(empty, (trip & 1) ^ 1);", "BLOCKS": "3", "LEAVE": CLUSTER,
    "RELEASE": 'asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(other(empty, threadIdx.x)));',
}  # fmt: skip


def multicast_of(parts=None):
    """Return a kernel with multicast boxes, and the expected checksums of its threads."""
    array = np.random.default_rng(0).integers(-50, 50, (48, 32)).astype("float32")
    out = np.full(4 * 64, np.nan, "float32")
    arrays = {"A": array, "out": out}
    text = MULTICAST.replace("{{", "{").replace("}}", "}").replace("{signature}", signature(arrays))
    for name, code in {**MULTICAST_PARTS, **(parts or {})}.items():
        text = text.replace(name, code)
    copy = Copy(text, arrays, descriptor_of("A", array, (8, 32)), (4, 1, 1), (2, 1, 1))
    expected = np.tile(array.reshape(-1, 64).sum(0), 4)
    return copy, expected


BULK = """
extern "C" __global__ void k({signature}) {
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned long long* full = (unsigned long long*)(slab + 8192);
  if (threadIdx.x == 0) { init(full, 1); fence_init(); }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(full, SIZE);
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(at(slab)), "l"(A + FROM), "r"(SIZE), "r"(at(full)) : "memory");
  }
  wait(full, 0);
  int* v = (int*)slab;
  if (threadIdx.x < SIZE / 4) v[threadIdx.x] += 1;
  PROXY
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("STORE [%0], [%1], %2;" :: "l"(out + FROM), "r"(at(slab)), "r"(SIZE) : "memory");
    commit();
    wait_group();
  }
}
"""


def bulk_of(size=256, start=4, opcode="cp.async.bulk.global.shared::cta.bulk_group", proxy="fence_proxy();"):
    """Return a kernel that copies bytes there and back, and the expected output."""
    array = np.random.default_rng(1).integers(0, 99, 256).astype("int32")
    out = np.random.default_rng(2).integers(0, 99, 256).astype("int32")
    arrays = {"A": array, "out": out}
    text = BULK.replace("{signature}", signature(arrays)).replace("SIZE", str(size)).replace("FROM", str(start))
    text = text.replace("STORE", opcode).replace("PROXY", proxy)
    expected, part = out.copy(), slice(start, start + size // 4)
    stored = array[part] + 1
    expected[part] = expected[part] + stored if ".add." in opcode else stored
    return Copy(text, arrays, descriptor_of("A", array, (32,))), expected
