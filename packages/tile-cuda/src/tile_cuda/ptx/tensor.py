"""Tensor memory, and the products whose sums are there: functions of ``tcgen05`` for blocks of their own.

PTX ISA, "TensorCore 5th Generation Instructions". One thread issues products and commits; whole warps allocate, and
move rows between registers and tensor memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_cuda.ptx.instruction import TENSOR_MEMORY_ARCHS, Instruction, PtxOperand, function_name

#: Columns that one load or store moves, the most first: more need as many adjacent registers.
COUNTS = (32, 16)
#: Kinds of products, and the architectures that have them.
KINDS = {
    "f16": TENSOR_MEMORY_ARCHS,
    "tf32": TENSOR_MEMORY_ARCHS,
    "f8f6f4": TENSOR_MEMORY_ARCHS,
    "i8": "sm_100a sm_110a",
}
_GROUP = "cta_group::1"
_ALLOCATE = f"tcgen05.alloc.{_GROUP}.sync.aligned.shared::cta.b32"
_FREE = f"tcgen05.dealloc.{_GROUP}.sync.aligned.b32"
_RELINQUISH = f"tcgen05.relinquish_alloc_permit.{_GROUP}.sync.aligned"
_COMMIT = f"tcgen05.commit.{_GROUP}.mbarrier::arrive::one.shared::cluster.b64"

ALLOCATE, FREE, RELINQUISH, COMMIT = map(function_name, (_ALLOCATE, _FREE, _RELINQUISH, _COMMIT))
"""Functions that allocate columns and write their address to shared memory, free them, give up the permit to allocate,
and let products arrive at a barrier."""
BEFORE, AFTER = "tcgen05_fence_before_thread_sync", "tcgen05_fence_after_thread_sync"
"""Functions that order accesses of tensor memory before and after threads synchronize."""
LOADED, STORED = "tcgen05_wait_ld_sync_aligned", "tcgen05_wait_st_sync_aligned"
"""Functions that wait for a thread's loads, and for its stores."""


def load_name(count: int, integers: bool) -> str:
    """Return the function that reads so many columns of a thread's lane."""
    return f"tcgen05_ld_sync_aligned_32x32b_x{count}_b32_{'s32' if integers else 'f32'}"


def write_name(count: int, integers: bool) -> str:
    """Return the function that writes so many columns of a thread's lane."""
    return f"tcgen05_st_sync_aligned_32x32b_x{count}_b32_{'s32' if integers else 'f32'}"


def product_name(kind: str) -> str:
    """Return the function of a product: sums, A, B, instruction descriptor, whether it adds to what is there."""
    return function_name(f"tcgen05.mma.{_GROUP}.kind::{kind}")


def tensor_instructions() -> Iterator[Instruction]:
    """Yield the functions."""
    columns, address = PtxOperand("columns", ctype="int"), PtxOperand("address", ctype="unsigned")
    place = PtxOperand("place", role="shared", ctype="void")
    yield _made(ALLOCATE, _ALLOCATE, (place, columns), "{place}, {columns}")
    yield _made(FREE, _FREE, (address, columns), "{address}, {columns}")
    yield _made(RELINQUISH, _RELINQUISH, (), "")
    yield _made(COMMIT, _COMMIT, (PtxOperand("barrier", role="shared", ctype="void"),), "{barrier}")
    yield _made(BEFORE, "tcgen05.fence::before_thread_sync", (), "")
    yield _made(AFTER, "tcgen05.fence::after_thread_sync", (), "")
    yield _made(LOADED, "tcgen05.wait::ld.sync.aligned", (), "")
    yield _made(STORED, "tcgen05.wait::st.sync.aligned", (), "")
    for count in reversed(COUNTS):
        for integers in (False, True):
            register, ctype = ("r", "int") if integers else ("f", "float")
            opcode = f"32x32b.x{count}.b32"
            to = PtxOperand("d", register, count, "out", ctype)
            form = "{d}, [{address}]"
            yield _made(load_name(count, integers), f"tcgen05.ld.sync.aligned.{opcode}", (to, address), form)
            source = PtxOperand("d", register, count, "in", ctype)
            form = "[{address}], {d}"
            yield _made(write_name(count, integers), f"tcgen05.st.sync.aligned.{opcode}", (source, address), form)
    yield _descriptor()
    for kind, archs in KINDS.items():
        operands = (
            address, *_matrix("a"), *_matrix("b"), PtxOperand("kind", ctype="unsigned"), PtxOperand("adds", ctype="int")
        )  # fmt: skip
        form = "{ .reg .pred p; setp.ne.b32 p, {adds}, 0; {opcode} [{address}], {a}, {b}, {kind}, p; }"
        opcode = f"tcgen05.mma.{_GROUP}.kind::{kind}"
        yield replace(_made(product_name(kind), opcode, operands, form, archs), needs=("tensor_descriptor",))


_FIELDS = ("leading", "stride", "swizzle")


def _made(
    name: str, opcode: str, operands: tuple[PtxOperand, ...], form: str, archs: str = TENSOR_MEMORY_ARCHS
) -> Instruction:
    return Instruction(name, opcode, operands, form, archs, volatile=True, memory=True)


def _matrix(name: str) -> tuple[PtxOperand, ...]:
    fields = (PtxOperand(f"{name}_{field}", ctype="int", role="given") for field in _FIELDS)
    return (PtxOperand(name, "l", role="tensor", ctype="const void"), *fields)


def _descriptor() -> Instruction:
    """Return the function that makes a descriptor of a matrix in shared memory: Table 40 of the PTX ISA."""
    result = PtxOperand("bits", "l", role="result")
    where = (PtxOperand("p", ctype="const void*"), *(PtxOperand(n, ctype="int") for n in _FIELDS))
    body = (
        "const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;",
        "const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;",
        "return (unsigned long long)high << 32 | low;",
    )
    return Instruction(
        "tensor_descriptor", operands=(result, *where), arch=TENSOR_MEMORY_ARCHS, body=body, needs=("shared_address",)
    )
