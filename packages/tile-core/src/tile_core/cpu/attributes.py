"""Declare the attributes that passes for the CPU add."""

from __future__ import annotations

from tile_core.ir.attributes import ALLOCATION, FLAG, INT, LAUNCH, MAP, MARK, PRESENT, TEXT, Attribute, several

_INSIDE = ("A", "B", "E", "AB", "AE", "BE", "ABE")
#: Of a product: its operands that are in-bounds regions of tensors.
INSIDE = Attribute("inside", TEXT.one_of(*_INSIDE), "gemm gemm_sp", until="program")
#: Keeps TVM from moving a buffer to the heap, so that LLVM can keep it in registers.
IN_REGISTERS = Attribute("disable_lower_builtin", PRESENT, ALLOCATION, since="loops")
#: Around statements that TVM makes a function of their own.
FUNCTION_SCOPE = Attribute("compute_scope", INT, MARK, since="loops")
#: Around statements that fill panels from operands, and do nothing else.
PACKING = Attribute("packing", INT, MARK, since="loops", until="kernel")
#: Around a kernel: text in LLVM's language that code generation links.
IMPORTED = Attribute("pragma_import_llvm", INT, MARK, since="lowered")
#: Around a kernel: the device of its allocations, which TVM otherwise reads from arrays.
DEVICE_TYPE, DEVICE_ID = several("device_type device_id", TEXT, MARK, since="lowered")

#: Of the function: the types of parameters that hold codes, and whether it calls functions of this process.
CODED = Attribute("tile.coded", MAP, LAUNCH, since="lowered")
CALLS_BACK = Attribute("tile.calls_back", FLAG, LAUNCH, since="lowered")

ATTRIBUTES = tuple(a for a in list(globals().values()) if isinstance(a, Attribute))
