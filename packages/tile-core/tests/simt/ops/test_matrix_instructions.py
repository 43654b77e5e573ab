"""What a matrix instruction takes: records of the kinds that exist, and those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.errors.plugins import InvalidDeclaration
from tile_core.simt.ops.products.instruction import Lifetime, MatrixInstruction, MatrixOperand, OperandKind

REGISTERS = MatrixOperand(OperandKind.REGISTERS, Lifetime.WAITED)
DESCRIPTOR = MatrixOperand(OperandKind.DESCRIPTOR, Lifetime.WAITED)
TENSOR = MatrixOperand(OperandKind.TENSOR_MEMORY, Lifetime.WAITED)


class TestRecords:
    def test_a_synchronous_instruction_of_a_warp(self) -> None:
        mma = MatrixInstruction(16, 8, 16, 32)
        assert (mma.in_registers, mma.asynchronous, mma.accumulators) == (True, False, 4)
        assert len(mma.operands) == 3

    @pytest.mark.parametrize("a", [REGISTERS, DESCRIPTOR])
    @pytest.mark.parametrize("metadata", [None, REGISTERS])
    def test_an_asynchronous_instruction_of_a_group_of_warps(self, a: Any, metadata: Any) -> None:
        wgmma = MatrixInstruction(64, 256, 32, 128, a, DESCRIPTOR, REGISTERS, metadata)
        assert (wgmma.in_registers, wgmma.asynchronous, wgmma.accumulators) == (False, True, 128)
        assert len(wgmma.operands) == 3 + (metadata is not None)

    @pytest.mark.parametrize("a", [TENSOR, DESCRIPTOR])
    @pytest.mark.parametrize("metadata", [None, TENSOR])
    def test_an_instruction_that_one_thread_issues(self, a: Any, metadata: Any) -> None:
        tcgen05 = MatrixInstruction(128, 256, 32, 1, a, DESCRIPTOR, TENSOR, metadata)
        assert (tcgen05.in_registers, tcgen05.asynchronous) == (False, True)

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"m": 0}, "positive extents"),
            ({"k": -8}, "positive extents"),
            ({"threads": 48}, "a power of two"),
            ({"threads": 0}, "a power of two"),
            ({"threads": 256}, "as many elements of C in each thread"),
            ({"c": MatrixOperand(OperandKind.DESCRIPTOR)}, "registers or tensor memory"),
            ({"metadata": MatrixOperand(OperandKind.DESCRIPTOR)}, "registers or tensor memory"),
            ({"a": REGISTERS}, "a result that is waited for"),
            ({"b": DESCRIPTOR}, "a result that is waited for"),
        ],
    )
    def test_what_cannot_be(self, change: dict[str, Any], says: str) -> None:
        with pytest.raises(InvalidDeclaration, match=f"MatrixInstruction.*{says}"):
            MatrixInstruction(**{"m": 16, "n": 8, "k": 16, "threads": 32, **change})
