"""PTX instructions as C++ functions: a table of data, of which the used ones are printed into a kernel's source."""

from tile_cuda.ptx.instruction import Instruction, PtxOperand
from tile_cuda.ptx.table import TABLE, has, instruction, prelude

__all__ = ["TABLE", "Instruction", "PtxOperand", "has", "instruction", "prelude"]
