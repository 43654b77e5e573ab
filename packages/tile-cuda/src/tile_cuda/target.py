"""The targets ``cuda:sm_XX``: their capabilities, from the table of `tile_cuda_runtime.architectures`."""

from __future__ import annotations

from tile_core.target import Capabilities, Fact, Target, every_atomic
from tile_cuda.machine import machine_of
from tile_cuda.options import MOST_REGISTERS
from tile_cuda_runtime.architectures import GRID_LIMITS, KIND, Architecture, record_of

# Facts that code of this backend queries with ``capabilities.fact(...)``.
CP_ASYNC: Fact[bool] = Fact("cp_async", bool)
"""``cp.async`` and its groups."""
MBARRIER: Fact[bool] = Fact("mbarrier", bool)
"""Barriers in shared memory, without transactions."""
FP8_MMA: Fact[bool] = Fact("fp8_mma", bool)
"""``mma.sync`` (and ``mma.sp``) of e4m3 and e5m2; conversions of them."""
FP8_SPARSE_UNITS: Fact[bool] = Fact("fp8_sparse_units", bool)
"""``mma.sp`` of e4m3 and e5m2 runs on tensor cores; elsewhere the assembler makes slow code of it."""
BLOCK_SCALED_MMA: Fact[bool] = Fact("block_scaled_mma", bool)
"""``mma.sync.kind::mxf8f6f4`` and the other kinds."""
FP4_CONVERT: Fact[bool] = Fact("fp4_convert", bool)
"""``cvt`` from and to e2m1, e2m3 and e3m2."""
STMATRIX: Fact[bool] = Fact("stmatrix", bool)
"""``stmatrix`` of 8 x 8 matrices."""
CLUSTERS: Fact[bool] = Fact("clusters", bool)
"""Clusters of blocks, ``mapa`` and ``barrier.cluster``."""
TRANSACTIONS: Fact[bool] = Fact("transactions", bool)
"""Barriers that count bytes: ``mbarrier.expect_tx``."""
TMA: Fact[bool] = Fact("tma", bool)
"""``cp.async.bulk`` and ``cp.async.bulk.tensor``."""
GATHER4: Fact[bool] = Fact("gather4", bool)
"""``cp.async.bulk.tensor ... tile::gather4`` into the block's own shared memory."""
GATHER4_CLUSTER: Fact[bool] = Fact("gather4_cluster", bool)
"""The same into other blocks of the cluster, with multicast."""
SCATTER4: Fact[bool] = Fact("scatter4", bool)
"""``cp.async.bulk.tensor ... tile::scatter4``."""
SETMAXNREG: Fact[bool] = Fact("setmaxnreg", bool)
"""Warp groups may transfer registers to each other."""
WGMMA: Fact[bool] = Fact("wgmma", bool)
"""``wgmma.mma_async`` and its sparse form."""
TCGEN05: Fact[bool] = Fact("tcgen05", bool)
"""``tcgen05`` and tensor memory."""
BF16_ARITHMETIC: Fact[bool] = Fact("bf16_arithmetic", bool)
"""``add`` and ``mul`` of bfloat16 round once; ``fma`` exists on all architectures."""
BF16_ATOMICS: Fact[bool] = Fact("bf16_atomics", bool)
"""``atom.add.noftz`` of bf16 and bf16x2."""
VECTOR_ATOMICS: Fact[bool] = Fact("vector_atomics", bool)
"""``atom.add`` of up to 16 bytes: ``.v2.f32``, ``.v4.f32``, ``.v8.f16``, ..."""
NATIVE_ATOMICS: Fact[frozenset[tuple[str, str]]] = Fact("native_atomics", frozenset)
"""Pairs (operation, element type) that are one instruction; the other atomics of the target are loops around one."""
COMPUTE: Fact[tuple[int, int]] = Fact("compute", tuple)
"""Compute capability, for example (9, 0)."""
FORWARD: Fact[bool] = Fact("forward", bool)
"""Whether the text also runs on devices of a higher compute capability: false for the architectures with a suffix."""

FEATURES: tuple[Fact[bool], ...] = (
    CP_ASYNC, MBARRIER, FP8_MMA, FP8_SPARSE_UNITS, BLOCK_SCALED_MMA, FP4_CONVERT, STMATRIX, CLUSTERS, TRANSACTIONS, TMA,
    GATHER4, GATHER4_CLUSTER, SCATTER4, SETMAXNREG, WGMMA, TCGEN05, BF16_ARITHMETIC, BF16_ATOMICS, VECTOR_ATOMICS,
)  # fmt: skip


def make_target(arch: str) -> Target:
    """Return the target of an architecture.

    Raises
    ------
    UnknownArchitecture
        Naming the nearest one that is known.
    """
    record, machine = record_of(arch), machine_of(arch)
    facts: dict[str, object] = {fact.name: fact.name in record.features for fact in FEATURES}
    facts |= NATIVE_ATOMICS.value(_native_atomics(record)) | COMPUTE.value(record.compute)
    return Target(
        text=record.text,
        kind=KIND,
        backend="cuda",
        arch=record.arch,
        capabilities=Capabilities(
            execution_width=WARP,
            offset_bits=64,
            max_threads=1024,
            grid_limits=GRID_LIMITS,
            roundings=frozenset({"rn", "rz", "ru", "rd"}),
            shared_bytes=record.shared_bytes,
            shared_banks=32,
            thread_registers=MOST_REGISTERS,
            block_registers=REGISTERS,
            resident_threads=machine.processors * machine.threads,
            vector_bytes=(1, 2, 4, 8, 16),
            partial_barriers=PARTIAL_BARRIERS,
            phase_barriers=TRANSACTIONS.name in record.features,
            max_cluster=MOST_IN_CLUSTER if CLUSTERS.name in record.features else 1,
            async_copies=frozenset(_kinds(record, {CP_ASYNC: "cp.async", TMA: "tma"})),
            # 16-bit floats are stored and converted; their arithmetic is that of float32, rounded once.
            native_dtypes=frozenset({"bool", "float32", "float64", *_INTEGERS}),
            atomics=every_atomic(_INTEGERS, _FLOATS),
            extra=facts | FORWARD.value(record.forward),
        ),
    )


PARTIAL_BARRIERS = 15
"""Barriers of a block that ``bar.sync`` names, beside that of ``__syncthreads`` (PTX ISA, "bar")."""

MOST_IN_CLUSTER = 8
"""Blocks of a cluster that every device with clusters runs (CUDA C++ Programming Guide, "Thread Block Clusters")."""

REGISTERS = 65536
"""Registers of a multiprocessor, the same on all architectures."""

WARP = 32
"""Threads that execute together."""


def overlaps(arch: str) -> bool:
    """Return whether a launch can begin before the one before it has ended (``griddepcontrol``)."""
    return record_of(arch).compute >= (9, 0)


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _native_atomics(record: Architecture) -> frozenset[tuple[str, str]]:
    integers = ("int32", "uint32", "int64", "uint64")
    floats = ["float16", "float32", "float64", *(["bfloat16"] if BF16_ATOMICS.name in record.features else [])]
    adds = [("add", d) for d in (*integers, *floats)]
    return frozenset([*adds, *((op, d) for op in ("max", "min", "and", "or", "xor") for d in integers)])


def _kinds(record: Architecture, names: dict[Fact[bool], str]) -> list[str]:
    return [kind for fact, kind in names.items() if fact.name in record.features]
