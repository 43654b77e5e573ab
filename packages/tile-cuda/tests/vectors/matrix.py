"""Boxes of every element type, swizzle, fill and rank, with and without multicast.

The text of a case depends only on its dimensions and on the blocks, so that a device runs hundreds of cases in seconds:
coordinates are read from an array, and the rest is in the tensor map.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from . import copies

KINDS = {
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "int32": "int32", "uint64": "uint64", "int64": "int64",
    "float16": "uint16", "bfloat16": "uint16", "float32": "float32", "float64": "float64",
}  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
#: The slower dimensions of tensors, of boxes and where these begin; some reach over an end.
OUTER = {
    1: ((), (), ()), 2: ((37,), (24,), (-3,)), 3: ((5, 9), (3, 8), (3, 4)), 4: ((3, 4, 7), (2, 3, 4), (2, -1, 3)),
    5: ((3, 2, 3, 3), (2, 2, 3, 2), (1, 1, -1, 2)),
}  # fmt: skip
SWIZZLES = (0, 32, 64, 128)
#: Blocks of a cluster, ranks that take the copy, and which of them issues it.
CLUSTERS = {"alone": (1, 0b1, 0), "pair": (2, 0b11, 0), "four": (4, 0b1011, 1), "eight": (8, 0xFF, 7)}

TEXT = """
extern "C" __global__ void k({signature}) {{
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char* to = slab;
  unsigned long long* full = (unsigned long long*)(slab + 8192);
  if (threadIdx.x == 0) {{ init(full, 1); fence_init(); }}
  JOIN
  unsigned rank = blockIdx.x % {blocks};
  if (threadIdx.x == 0) {{
    int x0 = where[0], x1 = where[1], x2 = where[2], x3 = where[3], x4 = where[4];
    expect(full, where[5]);
    if (rank == {issuer}) {{ {shared} }}
    else if (!({mask} >> rank & 1)) {{ {alone} }}
  }}
  wait(full, 0);
  for (int i = threadIdx.x; i < where[5]; i += blockDim.x) out[blockIdx.x * where[5] + i] = to[i];
  LEAVE
}}
"""


@dataclass(frozen=True)
class Case:
    """A case: name, kernel, and expected bytes of each block with zeros out of bounds."""

    name: str
    copy: copies.Copy
    held: np.ndarray

    @property
    def is_known(self) -> bool:
        """Whether ``held`` is right, except NaNs that only a device determines."""
        return self.copy.descriptor.fill == "zero"


def cases() -> Iterator[Case]:
    """Yield all cases: boxes with and without multicast, and block-to-block copies."""
    for kind in KINDS:
        for rank in OUTER:
            for swizzle in SWIZZLES[: None if rank > 1 else 1]:
                for fill in ("zero", "nan") if kind in FLOATS else ("zero",):
                    for cluster in CLUSTERS:
                        yield case(kind, rank, swizzle, fill, cluster)
    for blocks in (1, 2, 3, 4, 8):
        for by in sorted({0, 1, blocks - 1}):
            for size in (16, 48, 2048):
                for way in WAYS:
                    yield handed(blocks, by, size, way)


#: How a thread writes to another block: by one copy of all bytes, or by stores of n bits.
WAYS = ("bulk", "b8", "b16", "b32", "b64")
HANDED = """
__device__ unsigned other(const void* p, int rank) {{
  unsigned d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(at(p)), "r"(rank));
  return d;
}}
extern "C" __global__ void k({signature}) {{
  extern __shared__ __align__(1024) unsigned char slab[];
  unsigned char *from = slab, *to = slab + 4096;
  unsigned long long* full = (unsigned long long*)(slab + 8192);
  if (threadIdx.x == 0) {{ init(full, 1); fence_init(); }}
  for (int i = threadIdx.x; i < {size}; i += blockDim.x) from[i] = A[blockIdx.x * {size} + i];
  fence_proxy();
  JOIN
  unsigned there = (blockIdx.x % {blocks} + {by}) % {blocks};
  {sent}
  for (int i = threadIdx.x; i < {size}; i += blockDim.x) out[blockIdx.x * {size} + i] = to[i];
  JOIN
}}
"""
_BULK = """if (threadIdx.x == 0) {{
    asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;"
        :: "r"(other(full, there)), "r"({size}) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(other(to, there)), "r"(at(from)), "r"({size}), "r"(other(full, there)) : "memory");
  }}
  wait(full, 0);"""
_STORE = """for (int i = threadIdx.x; i < {size} / {bytes}; i += blockDim.x)
    asm volatile("st.shared::cluster.{way} [%0], %1;"
        :: "r"(other(to + i * {bytes}, there)), "{register}"(({passed})(({ctype}*)from)[i]) : "memory");
  JOIN"""
_REGISTERS = {"b8": ("h", "unsigned char"), "b16": ("h", "unsigned short"), "b32": ("r", "unsigned"),
              "b64": ("l", "unsigned long long")}  # fmt: skip


def handed(blocks: int, by: int, size: int, way: str) -> Case:
    """Return a case that copies each block's tile ``by`` ranks further on."""
    array = np.random.default_rng([9, blocks, by, size]).integers(0, 256, (2 * blocks, size), np.uint8)
    arrays = {"A": array.reshape(-1), "out": np.full(array.size, 171, "uint8")}
    register, ctype = _REGISTERS.get(way, ("", ""))
    text = _BULK if way == "bulk" else _STORE
    store = {
        "size": size, "way": way, "register": register, "ctype": ctype,
        "bytes": 0 if way == "bulk" else int(way[1:]) // 8, "passed": "unsigned short" if way == "b8" else ctype,
    }  # fmt: skip
    sent = text.format(**store)
    made = HANDED.format(signature=copies.signature(arrays), size=size, blocks=blocks, by=by, sent=sent)
    if blocks == 1 and way == "bulk":
        # Without clusters this copy was an illegal instruction on an H100.
        made = made.replace("__global__ void k(", "__global__ void __cluster_dims__(1, 1, 1) k(")
    descriptor = copies.descriptor_of("A", array, (1, 16), dtype="uint8")
    copy = copies.Copy(made.replace("JOIN", copies.CLUSTER), arrays, descriptor, (2 * blocks, 1, 1), (blocks, 1, 1))
    number = np.arange(2 * blocks)
    held = array[number - number % blocks + (number % blocks - by) % blocks]
    return Case(f"handed_{blocks}_{by}_{size}_{way}", copy, held)


def case(kind: str, rank: int, swizzle: int, fill: str, cluster: str) -> Case:
    """Return one case."""
    stored, (outer, outer_box, outer_at) = KINDS[kind], OUTER[rank]
    size = np.dtype(stored).itemsize
    row, chunk = (swizzle or 48) // size, 16 // size
    # Rows end inside of a box, at a multiple of 16 bytes, or begin in one.
    shape, box = (*outer, 2 * row), (*outer_box, row)
    at = (*outer_at, -chunk if rank % 2 else row + chunk)
    rng = np.random.default_rng([7, rank, swizzle, *map(ord, kind)])
    array = rng.integers(0, 256, (*shape, size), np.uint8).view(stored)[..., 0]
    rows = copies.box_of(array, at, box)
    blocks, mask, issuer = CLUSTERS[cluster]
    where = np.array([*(*reversed(at), 0, 0, 0, 0)[:5], rows.nbytes], "int32")
    out = np.full(2 * blocks * rows.nbytes, 171, "uint8")
    arrays = {"A": array.view(np.uint8).reshape(-1), "where": where, "out": out}
    alone = copies.load(rank)
    text = TEXT.format(
        signature=copies.signature(arrays), blocks=blocks, mask=mask, issuer=issuer, alone=alone,
        shared=multicast(rank, mask) if blocks > 1 else alone,
    )  # fmt: skip
    meet = copies.CLUSTER if blocks > 1 else "__syncthreads();"
    text = text.replace("JOIN", meet).replace("LEAVE", meet if blocks > 1 else "")
    descriptor = copies.descriptor_of("A", array, box, dtype=kind, swizzle=swizzle, fill=fill)
    copy = copies.Copy(text, arrays, descriptor, (2 * blocks, 1, 1), (blocks, 1, 1))
    return Case(f"{kind}_{rank}d_{swizzle}_{fill}_{cluster}", copy, copies.swizzled(rows, swizzle))


def multicast(rank: int, mask: int) -> str:
    """Return a statement that copies a box to several blocks."""
    regs = ", ".join(f"%{i + 2}" for i in range(rank))
    given = ", ".join(f'"r"(x{i})' for i in range(rank))
    opcode = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
    operands = f'"r"(at(to)), "l"(&map), {given}, "r"(at(full)), "h"((unsigned short){mask})'
    return f'asm volatile("{opcode} [%0], [%1, {{{regs}}}], [%{rank + 2}], %{rank + 3};" :: {operands} : "memory");'


def digest(found: np.ndarray) -> np.ndarray:
    """Return a digest of an output."""
    return np.frombuffer(hashlib.sha256(np.ascontiguousarray(found).tobytes()).digest()[:16], np.uint8)
