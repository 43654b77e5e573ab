"""Arithmetic of two float16 in a word: ``v_pk_add_f16``, ``v_pk_mul_f16`` and ``v_pk_fma_f16``.

Each rounds both elements once and keeps subnormal numbers ("AMD Instinct MI300 CDNA3 Instruction Set Architecture",
"VOP3P Opcodes"; kernels run with ``float_denorm_mode_16_64`` 3, see ``text.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import calls
from tile_core.passes.pack_floats import PackedFloats

__all__ = ["packed_floats"]


def packed_floats() -> PackedFloats:
    """Return the instructions, as functions of the text."""
    operations = {("float16", name): _word(f"{name}_f16x2") for name in ("add", "sub", "mul", "fma", "neg")}
    operations["float16", "abs"] = lambda x: tirx.bitwise_and(x, tirx.IntImm("uint32", 0x7FFF7FFF))
    return PackedFloats(join={"float16": _word("join_f16x2")}, operations=operations)


def _word(name: str) -> Callable[..., Expr]:
    return lambda *args: calls.instruction(name, list(args), "uint32")
