"""Exchange of metadata between the four lanes of a row, for 512 elements of K."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cuda.ptx.instruction import Instruction, PtxOperand

TRANSPOSE_METADATA = {16: "turn_metadata_b16", 8: "turn_metadata_b8"}
"""Functions that exchange it, by bits of the elements that it describes.

Words 0 to 7 of a lane are first what it has loaded. Of elements of 16 bits lane ``t`` has 16 bytes of rows ``g`` and
``g + 8``, from element ``128 t`` of K on; of those of 8 bits 32 bytes of row ``g + 8 (t % 2)``, from ``256 (t / 2)``
on. Afterwards word ``i`` is what an instruction over elements from ``64 i`` on takes from the lane, as
`tile_cuda.ops.metadata` describes it.
"""

_SHUFFLE = "shfl_sync_bfly_b32"


def metadata_exchanges() -> Iterator[Instruction]:
    """Yield the functions."""
    operands = (PtxOperand("w", "r", 8, "inout"), PtxOperand("lane", ctype="int"))
    for bits, body in ((16, _of_halves()), (8, _of_words())):
        yield Instruction(TRANSPOSE_METADATA[bits], operands=operands, body=tuple(body), needs=(_SHUFFLE,))


def _of_halves() -> Iterator[str]:
    """Yield the lines for 16-bit elements: words of two halves, transposed in two rounds."""
    yield "unsigned n[8];"
    for d in range(4):
        for j in range(2):
            low, high = f"w[{2 * j + d // 2}]", f"w[{4 + 2 * j + d // 2}]"
            odd = f"{low} >> 16 | ({high} & 0xffff0000u)"
            yield f"n[{2 * d + j}] = {odd if d % 2 else f'({low} & 0xffffu) | {high} << 16'};"
    for distance in (1, 2):
        yield f"const bool odd{distance} = (lane & {distance}) != 0;"
        for d in (d for d in range(4) if not d & distance):
            for j in range(2):
                a, b, name = 2 * d + j, 2 * (d + distance) + j, f"y{distance}{d}{j}"
                yield f"const unsigned {name} = {_sent(f'odd{distance} ? n[{a}] : n[{b}]', distance)};"
                yield f"if (odd{distance}) n[{a}] = {name}; else n[{b}] = {name};"
    yield "for (int i = 0; i < 8; ++i) w[i] = n[i];"


def _of_words() -> Iterator[str]:
    """Yield the lines for 8-bit elements: even words in lanes 0 and 1."""
    yield "const bool odd = (lane & 2) != 0;"
    yield "unsigned n[8];"
    for i in range(4):
        yield f"const unsigned y{i} = {_sent(f'odd ? w[{2 * i}] : w[{2 * i + 1}]', 2)};"
        yield f"n[{i}] = odd ? y{i} : w[{2 * i}];"
        yield f"n[{4 + i}] = odd ? w[{2 * i + 1}] : y{i};"
    yield "for (int i = 0; i < 8; ++i) w[i] = n[i];"


def _sent(value: str, distance: int) -> str:
    return f"{_SHUFFLE}({value}, {distance}, 31, 0xffffffffu)"
