"""Tensor memory and its products: functions of ``tcgen05`` for single blocks and pairs.

PTX ISA, "TensorCore 5th Generation Instructions". One thread issues products and commits; whole warps allocate, and
move rows between registers and tensor memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_cuda.ptx.instruction import CHUNKS, TENSOR_MEMORY_ARCHS, Instruction, PtxOperand, function_name

#: Accumulator columns of one load or store, the most first: more need more adjacent registers.
COUNTS = (32, 16)
#: Columns that one store of words writes.
WORD_COUNTS = (32, 16, 8, 4, 2)
#: Kinds of products, and the architectures that have them.
KINDS = {
    "f16": TENSOR_MEMORY_ARCHS,
    "tf32": TENSOR_MEMORY_ARCHS,
    "f8f6f4": TENSOR_MEMORY_ARCHS,
    "i8": "sm_100a sm_110a",
}
#: Kinds with scales.
SCALED_KINDS = (
    "mxf8f6f4.block_scale.scale_vec::1X", "mxf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale.scale_vec::4X",
)  # fmt: skip
GROUPS = (1, 2)
"""Blocks that compute one product: a single one, or a pair of a cluster. A kernel uses one group size."""


def _allocate(group: int) -> str:
    return f"tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32"


def _free(group: int) -> str:
    return f"tcgen05.dealloc.cta_group::{group}.sync.aligned.b32"


def _relinquish(group: int) -> str:
    return f"tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned"


def _commit(group: int, several: bool = False) -> str:
    to = ".multicast::cluster" if group > 1 or several else ""
    return f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{to}.b64"


ALLOCATE, FREE, RELINQUISH, COMMIT = (
    {group: function_name(opcode(group)) for group in GROUPS} for opcode in (_allocate, _free, _relinquish, _commit)
)
"""Functions by the number of blocks: they allocate columns and write their address to shared memory, free them, give up
the permit to allocate, and let products arrive at a barrier. A pair's arrive in all blocks that a mask names."""
COMMIT_TO = function_name(_commit(1, True))
"""Function that lets products of a block arrive in all blocks that a mask names."""
_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64"
ARRIVE, WAIT = function_name(_ARRIVE), "mbarrier_wait_parity_of_cluster"
"""Functions that arrive at a barrier of another block of the cluster, and wait for such a phase: what the threads that
have arrived wrote before, or had written for them, is visible behind the wait."""
_COPY = "tcgen05.cp.cta_group::1.32x128b.warpx4"
COPY = function_name(_COPY)
"""Function that copies 16 bytes of shared memory to each of 32 lanes, and again to those of the three other warps."""
BEFORE, AFTER = "tcgen05_fence_before_thread_sync", "tcgen05_fence_after_thread_sync"
"""Functions that order accesses of tensor memory before and after threads synchronize."""
LOADED, STORED = "tcgen05_wait_ld_sync_aligned", "tcgen05_wait_st_sync_aligned"
"""Functions that wait for a thread's loads, and for its stores."""


def load_name(count: int, integers: bool) -> str:
    """Return the function that reads ``count`` columns of a thread's lane."""
    return f"tcgen05_ld_sync_aligned_32x32b_x{count}_b32_{'s32' if integers else 'f32'}"


def write_name(count: int, integers: bool) -> str:
    """Return the function that writes ``count`` columns of a thread's lane."""
    return f"tcgen05_st_sync_aligned_32x32b_x{count}_b32_{'s32' if integers else 'f32'}"


def words_name(count: int) -> str:
    """Return the function that writes words to ``count`` columns of a thread's lane."""
    return f"tcgen05_st_sync_aligned_32x32b_x{count}_b32_u32"


def product_name(kind: str, sparse: bool = False, held: bool = False, group: int = 1) -> str:
    """Return the function of a product: accumulator, A, B, instruction descriptor, accumulate flag.

    That of a sparse one takes the address of its metadata behind B; one with scales the addresses of these, of A and B.
    That of an A that is ``held`` in tensor memory takes its address there.
    """
    return function_name(_opcode(kind, sparse, group)) + ("_of_held" if held else "")


def tensor_instructions() -> Iterator[Instruction]:
    """Yield the functions."""
    columns, address = PtxOperand("columns", ctype="int"), PtxOperand("address", ctype="unsigned")
    destination = PtxOperand("place", role="shared", ctype="void")
    barrier, blocks = PtxOperand("barrier", role="shared", ctype="void"), PtxOperand("blocks", "h")
    for group in GROUPS:
        yield _made(ALLOCATE[group], _allocate(group), (destination, columns), "{place}, {columns}")
        yield _made(FREE[group], _free(group), (address, columns), "{address}, {columns}")
        yield _made(RELINQUISH[group], _relinquish(group), (), "")
    yield _made(COMMIT[1], _commit(1), (barrier,), "{barrier}")
    yield _made(COMMIT_TO, _commit(1, True), (barrier, blocks), "{barrier}, {blocks}")
    yield _made(COMMIT[2], _commit(2), (barrier, blocks), "{barrier}, {blocks}")
    yield from _handed_over()
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
    for count in reversed(WORD_COUNTS):
        source = PtxOperand("d", "r", count, "in", "unsigned")
        opcode = f"tcgen05.st.sync.aligned.32x32b.x{count}.b32"
        yield _made(words_name(count), opcode, (source, address), "[{address}], {d}")
    yield _descriptor()
    copied = _made(COPY, _COPY, (address, *_matrix("p")), "[{address}], {p}")
    yield replace(copied, needs=("tensor_descriptor",))
    for sparse in (False, True):
        for kind, archs in KINDS.items():
            yield _product(kind, sparse, archs)
    for kind, archs in KINDS.items():
        yield _held_product(kind, archs)
    for kind in SCALED_KINDS:
        yield _scaled_product(kind)
    for kind, archs in KINDS.items():
        yield _product(kind, False, archs, 2)


_FIELDS = ("leading", "stride", "swizzle", CHUNKS)


def _opcode(kind: str, sparse: bool, group: int) -> str:
    return f"tcgen05.mma.{'sp.' if sparse else ''}cta_group::{group}.kind::{kind}"


def _handed_over() -> Iterator[Instruction]:
    """Yield the signals between a block and the block that issues a product for both."""
    barrier, rank = PtxOperand("barrier", role="place", ctype="void"), PtxOperand("rank", ctype="int")
    form = "{ .reg .b32 there; mapa.shared::cluster.u32 there, {barrier}, {rank}; {opcode} _, [there]; }"
    yield _made(ARRIVE, _ARRIVE, (barrier, rank), form, "sm_90")
    own, parity = PtxOperand("barrier", role="shared", ctype="void"), PtxOperand("parity", ctype="int")
    form = "{ .reg .pred p; {opcode} p, {barrier}, {parity}; selp.u32 {ended}, 1, 0, p; }"
    opcode = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
    tried = _made(function_name(opcode), opcode, (PtxOperand("ended", role="result"), own, parity), form, "sm_90")
    yield tried
    body = (f"while (!{tried.name}(barrier, parity)) {{}}",)
    yield Instruction(WAIT, operands=(own, parity), arch="sm_90", body=body, needs=(tried.name,))


def _product(kind: str, sparse: bool, archs: str, group: int = 1) -> Instruction:
    address, descriptor = PtxOperand("address", ctype="unsigned"), PtxOperand("kind", ctype="unsigned")
    metadata = (PtxOperand("metadata", ctype="unsigned"),) if sparse else ()
    operands = (address, *_matrix("a"), *_matrix("b"), *metadata, descriptor, PtxOperand("adds", ctype="int"))
    operands_text = "[{address}], {a}, {b}, " + ("[{metadata}], " if sparse else "")
    form = f"{{ .reg .pred p; setp.ne.b32 p, {{adds}}, 0; {{opcode}} {operands_text}{{kind}}, p; }}"
    made = _made(product_name(kind, sparse, group=group), _opcode(kind, sparse, group), operands, form, archs)
    return replace(made, needs=("tensor_descriptor",))


def _held_product(kind: str, archs: str) -> Instruction:
    address, descriptor = PtxOperand("address", ctype="unsigned"), PtxOperand("kind", ctype="unsigned")
    a = PtxOperand("a", ctype="unsigned")
    operands = (address, a, *_matrix("b"), descriptor, PtxOperand("adds", ctype="int"))
    form = "{ .reg .pred p; setp.ne.b32 p, {adds}, 0; {opcode} [{address}], [{a}], {b}, {kind}, p; }"
    made = _made(product_name(kind, held=True), _opcode(kind, False, 1), operands, form, archs)
    return replace(made, needs=("tensor_descriptor",))


def _scaled_product(kind: str) -> Instruction:
    address, descriptor = PtxOperand("address", ctype="unsigned"), PtxOperand("kind", ctype="unsigned")
    scales = (PtxOperand("a_scale", ctype="unsigned"), PtxOperand("b_scale", ctype="unsigned"))
    operands = (address, *_matrix("a"), *_matrix("b"), *scales, descriptor, PtxOperand("adds", ctype="int"))
    operands_text = "[{address}], {a}, {b}, {kind}, [{a_scale}], [{b_scale}]"
    form = f"{{ .reg .pred p; setp.ne.b32 p, {{adds}}, 0; {{opcode}} {operands_text}, p; }}"
    made = _made(product_name(kind), _opcode(kind, False, 1), operands, form, "sm_100a sm_103a sm_110a")
    return replace(made, needs=("tensor_descriptor",))


def _made(
    name: str, opcode: str, operands: tuple[PtxOperand, ...], form: str, archs: str = TENSOR_MEMORY_ARCHS
) -> Instruction:
    return Instruction(name, opcode, operands, form, archs, volatile=True, memory=True)


def _matrix(name: str) -> tuple[PtxOperand, ...]:
    fields = (PtxOperand(f"{name}_{field}", ctype="int", role="given") for field in _FIELDS)
    return (PtxOperand(name, "l", role="tensor", ctype="const void"), *fields)


def _descriptor() -> Instruction:
    """Return the function that makes a shared-memory descriptor: Table 40 of the PTX ISA."""
    result = PtxOperand("bits", "l", role="result")
    where = (PtxOperand("p", ctype="const void*"), *(PtxOperand(n, ctype="int") for n in _FIELDS))
    body = (
        "const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;",
        "const unsigned high = (unsigned)stride >> 4 | 1u << 14 | (unsigned)swizzle << 29;",
        "return (unsigned long long)high << 32 | (low + chunks);",
    )
    return Instruction(
        "tensor_descriptor", operands=(result, *where), arch=TENSOR_MEMORY_ARCHS, body=body, needs=("shared_address",)
    )
