"""Matrix instructions as data: where each operand resides, and how long it must stay unchanged."""

from __future__ import annotations

import enum

from tile_core.errors.plugins import InvalidDeclaration
from tile_core.records import dataclass


class OperandKind(enum.Enum):
    """Where an instruction finds an operand."""

    REGISTERS = "registers"
    """In registers, distributed over the threads that execute it."""
    DESCRIPTOR = "shared-memory descriptor"
    """In shared memory, at the address and in the layout given by a descriptor: no thread reads it."""
    TENSOR_MEMORY = "tensor memory"
    """In memory of the matrix unit itself, which threads access only by copies."""

    def __str__(self) -> str:
        return self.value


class Lifetime(enum.Enum):
    """How long an operand must stay unchanged; for a result, when it becomes available."""

    EXECUTED = "executed"
    """The thread's next statement may change it: the instruction is synchronous for this operand."""
    WAITED = "waited for"
    """Only after the threads have waited for the instruction: it runs asynchronously."""


@dataclass(frozen=True)
class MatrixOperand:
    """One operand of a matrix instruction."""

    kind: OperandKind = OperandKind.REGISTERS
    until: Lifetime = Lifetime.EXECUTED


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix instruction: ``C += A B`` of the shape ``m x n x k``.

    Attributes
    ----------
    m, n, k
        Its shape; K counts the elements of B, also where A is sparse.
    threads
        Threads that execute it together: a warp or a group of warps, or one that issues it for the block.
    a, b, c
        The operands; C is added to.
    metadata
        Operand with the indices of the stored elements of a sparse A; ``None`` if A is dense.

    Raises
    ------
    InvalidDeclaration
        No instruction can have this form: the backend is at fault.
    """

    m: int
    n: int
    k: int
    threads: int
    a: MatrixOperand = MatrixOperand()
    b: MatrixOperand = MatrixOperand()
    c: MatrixOperand = MatrixOperand()
    metadata: MatrixOperand | None = None

    def __post_init__(self) -> None:
        shape = f"{self.m} x {self.n} x {self.k} of {self.threads} threads"
        descriptor, registers = OperandKind.DESCRIPTOR, OperandKind.REGISTERS
        for holds, field, found, expected in (
            (min(self.m, self.n, self.k) > 0, "m, n, k", shape, "positive extents"),
            (self.threads > 0 and self.threads & (self.threads - 1) == 0, "threads", shape, "a power of two"),
            (self.c.kind is not registers or self.m * self.n % max(self.threads, 1) == 0, "c", shape,
             "as many elements of C in each thread"),
            (self.c.kind is not descriptor, "c", self.c.kind, "registers or tensor memory"),
            (self.metadata is None or self.metadata.kind is not descriptor, "metadata", descriptor,
             "registers or tensor memory"),
            (not self.asynchronous or self.c.until is Lifetime.WAITED, "c", self.c.until,
             "a result that is waited for, as other operands are"),
        ):  # fmt: skip
            if not holds:
                raise InvalidDeclaration(what="MatrixInstruction", field=field, found=str(found), expected=expected)

    @property
    def operands(self) -> tuple[MatrixOperand, ...]:
        """A, B and C, and the metadata if there is any."""
        return (self.a, self.b, self.c, *([self.metadata] if self.metadata is not None else []))

    @property
    def asynchronous(self) -> bool:
        """Whether it is asynchronous."""
        return any(o.until is Lifetime.WAITED for o in self.operands)

    @property
    def in_registers(self) -> bool:
        """Whether all operands are registers that the next statement may change."""
        return all(o == MatrixOperand() for o in self.operands)

    @property
    def accumulators(self) -> int:
        """Elements of C per thread, if C is in registers."""
        return self.m * self.n // self.threads
