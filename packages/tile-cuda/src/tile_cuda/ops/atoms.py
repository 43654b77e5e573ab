"""The matrix instructions of a warp as data: element types, shapes, names and architectures.

Fragments are described in *blocks*: 16 bytes of consecutive K (32 bytes for 64-bit types) of 8 rows of A or columns of
B. A lane holds one word of each block. All instructions are built from blocks alike: the small shape of a dense
product takes one block of K of each operand, the big shape two; a sparse product takes twice the blocks of B.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from tile_core.dtypes import DTYPES
from tile_core.lowering.legality import Atom
from tile_core.records import dataclass
from tile_core.simt.ops.products.instruction import MatrixInstruction, MatrixOperand
from tile_cuda.target import WARP

#: Name in instructions, and bits, of the element types that instructions take.
INPUTS = {
    "float16": ("f16", 16), "bfloat16": ("bf16", 16), "tfloat32": ("tf32", 32), "int8": ("s8", 8), "uint8": ("u8", 8),
    "float8_e4m3fn": ("e4m3", 8), "float8_e5m2": ("e5m2", 8), "float64": ("f64", 64), "float4_e2m1fn": ("e2m1", 4),
}  # fmt: skip
_FP8 = ("float8_e4m3fn", "float8_e5m2")
_INT8 = ("int8", "uint8")
_FLOATS = tuple(n for n, d in DTYPES.items() if d.is_float and d.has_zero and n not in ("float32", "float64"))


@dataclass(frozen=True)
class Family:
    """The instructions for one combination of element types.

    Attributes
    ----------
    a, b
        Element types of the instruction; operands of other types are converted, exactly, as they are read.
    total
        Element type of the accumulators in registers.
    sparse
        Whether A is 2:4 sparse.
    """

    a: str
    b: str
    total: str
    sparse: bool

    @property
    def bits(self) -> int:
        """Width of an input element."""
        return INPUTS[self.a][1]

    @property
    def is_fp8(self) -> bool:
        """Whether it takes 8-bit floats."""
        return self.a in _FP8

    @property
    def per_word(self) -> int:
        """Input elements of a register."""
        return 1 if self.bits == 64 else 32 // self.bits

    @property
    def block(self) -> int:
        """Elements along K of a block."""
        return 4 * self.per_word

    @property
    def word(self) -> str:
        """Element type of the registers of A and B."""
        return "float64" if self.bits == 64 else "uint32"

    @property
    def halves(self) -> int:
        """Groups of 8 rows of an instruction's tile of A."""
        return 1 if self.bits == 64 else 2

    @property
    def rows(self) -> int:
        """Rows of an instruction's tile of C."""
        return 8 * self.halves

    @property
    def dense_blocks(self) -> int:
        """Blocks of B for each block of A."""
        return 2 if self.sparse else 1

    @property
    def shapes(self) -> tuple[int, ...]:
        """Blocks of A that an instruction may take, largest first."""
        if self.bits == 64:
            return (1,)
        # fp8 has no small sparse shape, and the metadata lanes of the int8 one are documented only as a picture.
        small = not self.is_fp8 and self.bits != 4 and not (self.sparse and self.bits == 8)
        return (2, 1) if small else (2,)

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction of the largest K; all its operands are registers."""
        metadata = MatrixOperand() if self.sparse else None
        return MatrixInstruction(self.rows, 8, self.depth(self.shapes[0]), WARP, metadata=metadata)

    def depth(self, blocks: int) -> int:
        """Extent along (dense) K of the instruction that takes ``blocks`` blocks of A."""
        return blocks * self.block * self.dense_blocks

    def name(self, blocks: int, selector: int = 0) -> str:
        """Return the function that executes the instruction."""
        a, b = INPUTS[self.a][0], INPUTS[self.b][0]
        c = {"float32": "f32", "int32": "s32", "float64": "f64"}[self.total]
        head = "mma_sp_ordered_metadata_sync_aligned" if self.sparse else "mma_sync_aligned"
        name = f"{head}_m{self.rows}n8k{self.depth(blocks)}_row_col_{c}_{a}_{b}_{c}"
        return f"{name}_{selector}" if self.sparse else name


@cache
def family(a: str, b: str, c: str, fp8: bool, sparse: bool = False) -> Family | None:
    """Return the instructions for operand types ``a`` and ``b`` and accumulator type ``c``.

    Parameters
    ----------
    a, b, c
        Element types of the language.
    fp8
        Whether there are instructions for 8-bit floats; otherwise these are converted to ``float16``.
    sparse
        Whether A is sparse.

    Returns
    -------
    Family or None
        ``None`` if no instruction has the language's semantics, notably for ``float32``, which is not rounded
        to ``tfloat32`` unless the program requests it.
    """
    if a in _INT8 and b in _INT8:
        return Family(a, b, "int32", sparse) if c in ("int32", "uint32") else None
    if c == "float64":
        inputs = (*_FLOATS, "float32", "float64")
        return Family("float64", "float64", c, False) if a in inputs and b in inputs and not sparse else None
    if c not in ("float32", "float16", "bfloat16") or a not in _FLOATS or b not in _FLOATS:
        return None
    if a in _FP8 and b in _FP8 and fp8:
        return Family(a, b, "float32", sparse)
    common = _common(a, b)
    if sparse and (common == "tfloat32") != (a == "tfloat32"):
        return None  # the type decides how many elements a nibble of metadata describes
    return Family(common, common, "float32", sparse)


def _common(a: str, b: str) -> str:
    """Return the narrowest type that holds all values of both."""
    pair = {t for t in (a, b) if not DTYPES[t].is_narrow}
    if "tfloat32" in pair or len(pair) == 2:
        return "tfloat32"
    return pair.pop() if pair else "float16"


@cache
def table(fp8: bool, sparse: bool) -> tuple[Atom, ...]:
    """Return the shapes and their element types as a legality table."""
    found: dict[Family, set[tuple[str, str, str]]] = {}
    inputs = (*_FLOATS, "float32", "float64", *_INT8)
    for types in product(inputs, inputs, ("float16", "bfloat16", "float32", "float64", "int32", "uint32")):
        chosen = family(*types, fp8, sparse)
        if chosen is not None and not (sparse and DTYPES[types[0]].bits == 4):
            found.setdefault(chosen, set()).add(types)
    return tuple(
        Atom({"M": one.rows, "N": 8, "K": one.depth(one.shapes[0])}, frozenset(types), (one.a, one.b, one.total))
        for one, types in sorted(found.items(), key=lambda entry: str(entry[0]))
    )
