"""PTX instructions as C++ functions: a table; kernels contain the functions that they use."""

from tile_cuda.ptx.instruction import Instruction, PtxOperand
from tile_cuda.ptx.table import TABLE, has, instruction, prelude

__all__ = ["TABLE", "Instruction", "PtxOperand", "has", "instruction", "prelude"]
