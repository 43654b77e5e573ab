"""Declare the attributes that passes and names of ``T`` for NVIDIA GPUs add."""

from __future__ import annotations

from typing import Any

from tile_core.ir.attributes import ANY_OP, INT, INTS, MARK, PRESENT, TEXT, Attribute, Kind, several

_MOVES = "copy gather scatter atomic_tile"
_PRODUCTS = "gemm gemm_sp gemm_scaled"

# Copies.
#: Of an asynchronous copy or gather: bytes of a chunk that the alignment of addresses in global memory allows.
#: Of an asynchronous copy or gather: rows of the source end at the end of a chunk.
ASYNC_BYTES, ASYNC_WHOLE = several("async_bytes async_whole", INT, "copy gather", until="selected")
#: Of a copy that is one of bytes: how many.
#: Of a copy: bytes of a row over which chunks are permuted.
#: Of a copy or an update whose tile is one that the first index of its buffer names: how many there are.
BULK_BYTES, SWIZZLE, SLOT = several("bulk_bytes bulk_swizzle bulk_slot", INT, _MOVES, until="selected")
#: Of a call with tiles that products read: by operand, the sum of all row lengths (powers of two, in bytes)
#: that these can read; 0 for other operands.
READABLE_ROWS = Attribute("readable_rows", INTS, ANY_OP, until="selected")
#: Of a copy whose tile is read across rows: boxes may begin within the pattern of their swizzle.
#: Of a move that the option ``"auto"`` makes of boxes.
ACROSS, WANTED = several("bulk_across bulk_wanted", PRESENT, _MOVES, until="selected")
#: Of a copy or an update that is not made of boxes: why.
REASON = Attribute("bulk_reason", TEXT, _MOVES, until="selected")

# The epilogue.
#: Of a copy or an update: it is one of boxes (``LASTS``: read after the statement; ``ENDS``: until its end).
STORE = Attribute("bulk_store", TEXT.one_of("lasts", "ends"), _MOVES, until="selected")
#: Of an accumulator's store to global memory: the reason for a staging tile, or for a direct store.
STAGED, DIRECT = several("staged direct", TEXT, "copy", until="selected")
#: Of a copy between fragments for the variant of this name; its text is shown by ``explain``.
LANES = Attribute("lanes", TEXT, "copy", until="selected")
#: Of a copy that ``stmatrix`` is for.
MATRICES = Attribute("matrices", PRESENT, "copy", until="selected")

# Products and their accumulators.
#: Of a product: it requests pairs of blocks.
#: Of a product: elements along K whose sum the matrix units keep before it is added to in float32.
CTA_GROUP, PROMOTE = several("cta_group promote", INT, _PRODUCTS, until="selected")
#: Of a product that requests pairs of blocks: why it has none (`tile_cuda.copies.multicast`).
#: Of a product: why its accumulator is not divided (`tile_cuda.accumulators.subtiling`).
APART, WHOLE = several("apart whole", TEXT, _PRODUCTS, until="selected")
#: Of a demand for tensor memory, by `tile_cuda.accumulators.tensor_memory`: the columns, or why there are none.
PLACED, REFUSED = several("placed refused", TEXT, "pin_accumulator", until="selected")
_REGISTERS: Kind[Any] = Kind("a buffer", lambda v: len(v) == 1 and type(v[0]).__name__ == "Var")
#: Around moves of an accumulator between registers and tensor memory (`tile_cuda.accumulators.resident`).
ENTERS, HOLDS, LEAVES = several("sums_enter sums_hold sums_leave", _REGISTERS, MARK, since="loops", until="threads")
_DEMAND: Kind[Any] = Kind("a buffer and the user's line", lambda v: len(v) in (1, 3) and type(v[0]).__name__ == "Var")
#: Where an allocation demands that its accumulator stays in tensor memory.
DEMAND = Attribute("sums_demanded", _DEMAND, MARK, since="loops", until="kernel")

ATTRIBUTES = tuple(a for a in list(globals().values()) if isinstance(a, Attribute))
