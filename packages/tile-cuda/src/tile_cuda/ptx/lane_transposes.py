"""Exchanges between the four lanes that hold a row of accumulators: transpositions of words.

In each round a lane exchanges half of its words: one shuffle and three selections for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_cuda.ptx.instruction import Instruction, PtxOperand

__all__ = ["TRANSPOSE_BYTES", "TRANSPOSE_FLOATS", "TRANSPOSE_HALVES", "TRANSPOSE_KEPT", "TRANSPOSE_PAIRS", "transposes"]

TRANSPOSE_HALVES = "turn_quad_b32"
"""Four lanes exchange words of two halves: afterwards word ``i`` is what lane ``i`` had in the place of its number."""
TRANSPOSE_KEPT = "turn_kept_quad_b32"
"""The same for words of another array, which stays unchanged; ``apart`` is their distance in elements."""
TRANSPOSE_BYTES = "turn_quad_bytes_b32"
"""The same of words of four bytes; then the first two bytes of every word come before the last two of every word."""
TRANSPOSE_PAIRS = "turn_pairs_b32"
"""Two lanes exchange pairs of words: afterwards pair ``i`` is what lane ``i`` had in the place of their parity."""
TRANSPOSE_FLOATS = "turn_pairs_f32"
"""The same of floats: an array that is accessed as one of another type would not stay in registers."""

_SHUFFLE = "shfl_sync_bfly_b32"
_QUAD, _PAIR = ((1, 1), (2, 2)), ((1, 2),)
"""Rounds: how far lanes are apart that exchange words, and how far these are apart."""

# Arrays that are only accessed as words, here and where they are stored, are registers of 32 bits.
_FROM_HALVES = ("unsigned x[4];", "for (int i = 0; i < 4; ++i) x[i] = *(const unsigned*)&w[2 * i];")
_TO_HALVES = ("for (int i = 0; i < 4; ++i) *(unsigned*)&w[2 * i] = x[i];",)
_FROM_KEPT = ("unsigned x[4];", "for (int i = 0; i < 4; ++i) x[i] = *(const unsigned*)&kept[i * apart];")
_FROM_BYTES = ("unsigned x[4];", "for (int i = 0; i < 4; ++i) x[i] = *(const unsigned*)&w[4 * i];")
_TO_BYTES = (
    "for (int i = 0; i < 2; ++i) {",
    "  *(unsigned*)&w[4 * i] = (x[2 * i] & 0xffffu) | x[2 * i + 1] << 16;",
    "  *(unsigned*)&w[4 * i + 8] = x[2 * i] >> 16 | (x[2 * i + 1] & 0xffff0000u);",
    "}",
)
_FROM_FLOATS = ("unsigned x[4];", "for (int i = 0; i < 4; ++i) x[i] = __float_as_uint(w[i]);")
_TO_FLOATS = ("for (int i = 0; i < 4; ++i) w[i] = __uint_as_float(x[i]);",)


def transposes() -> Iterator[Instruction]:
    """Yield the functions; parameters are four words as an array of elements, and the lane."""
    yield _transpose(TRANSPOSE_HALVES, 8, "unsigned short", (*_FROM_HALVES, *_rounds(_QUAD, "x"), *_TO_HALVES))
    kept = (PtxOperand("kept", "h", 8, ctype="unsigned short"), PtxOperand("apart", ctype="int"))
    yield _transpose(TRANSPOSE_KEPT, 8, "unsigned short", (*_FROM_KEPT, *_rounds(_QUAD, "x"), *_TO_HALVES), kept)
    yield _transpose(TRANSPOSE_BYTES, 16, "unsigned char", (*_FROM_BYTES, *_rounds(_QUAD, "x"), *_TO_BYTES))
    yield _transpose(TRANSPOSE_PAIRS, 4, "unsigned", tuple(_rounds(_PAIR, "w")))
    yield _transpose(TRANSPOSE_FLOATS, 4, "float", (*_FROM_FLOATS, *_rounds(_PAIR, "x"), *_TO_FLOATS))


def _transpose(
    name: str, count: int, ctype: str, body: tuple[str, ...], kept: tuple[PtxOperand, ...] = ()
) -> Instruction:  # fmt: skip
    words = PtxOperand("w", "h", count, "out" if kept else "inout", ctype)
    operands = (words, *kept, PtxOperand("lane", ctype="int"))
    return Instruction(name, operands=operands, body=body, needs=(_SHUFFLE,))


def _rounds(rounds: tuple[tuple[int, int], ...], words: str) -> Iterator[str]:
    """Yield the rounds of a transposition of four words of this name."""
    for distance, apart in rounds:
        yield f"const bool odd{distance} = (lane & {distance}) != 0;"
        for i in (i for i in range(4) if not i & apart):
            a, b, name = f"{words}[{i}]", f"{words}[{i + apart}]", f"y{distance}{i}"
            yield f"const unsigned {name} = {_SHUFFLE}(odd{distance} ? {a} : {b}, {distance}, 31, 0xffffffffu);"
            yield f"if (odd{distance}) {a} = {name}; else {b} = {name};"
