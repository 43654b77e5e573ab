"""Matrix instructions of a wavefront: types, shapes, builtins, and lane layouts.

Sources: CDNA3 ISA, "Matrix Arithmetic Instructions" (dense and sparse operand layouts) and AMD's Matrix Instruction
Calculator, whose tables the tests compare with; builtins: ``clang/include/clang/Basic/BuiltinsAMDGPU.def``.

Lane ``l`` holds line ``l % lines`` of A and B (rows of A, columns of B; ``lines`` is 16 or 32), and along K ``each``
neighbours from ``each * (l / lines)`` on. Of C it holds column ``l % n``, and the rows of `Rows`.
"""

from __future__ import annotations

from tile_core.records import dataclass
from tile_core.simt.ops.products.instruction import MatrixInstruction, MatrixOperand
from tile_rocm_stub.target import WAVE


@dataclass(frozen=True)
class Rows:
    """The rows of C in a lane's registers.

    Register ``high * low_count + low`` holds row ``high * high_step + (l / n) * lane_step + low``.
    """

    high_count: int
    high_step: int
    lane_step: int
    low_count: int


_SQUARE_16, _SQUARE_32, _DOUBLE = Rows(1, 16, 4, 4), Rows(4, 8, 4, 4), Rows(4, 4, 1, 1)


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes
    ----------
    name
        As in assembly, without ``v_``.
    builtin
        The function of clang that executes it.
    m, n, k
        Its shape; K counts elements of B.
    inputs
        Element types of A and B as the instruction names them: ``"f16"``, ``"fp8"``, ...
    d, a, b
        Types of the operands in texts.
    total
        Element type of C.
    rows
        Where C is.
    sparse
        Whether A is 2:4 sparse.
    """

    name: str
    builtin: str
    m: int
    n: int
    k: int
    inputs: tuple[str, str]
    d: str
    a: str
    b: str
    total: str
    rows: Rows
    sparse: bool = False

    @property
    def groups(self) -> int:
        """Groups of lanes that hold different parts of K."""
        return WAVE // self.m

    @property
    def each(self) -> int:
        """Neighbours along K of B in a lane; a sparse A stores half of them."""
        return self.k // self.groups

    @property
    def as_matrix(self) -> MatrixInstruction:
        """The instruction as the core describes it; all its operands are registers."""
        metadata = MatrixOperand() if self.sparse else None
        return MatrixInstruction(self.m, self.n, self.k, WAVE, metadata=metadata)


# M x N x K of dense instructions, the suffix of the builtin, C, and registers of A and B (of sparse ones: B).
_DENSE = """
16x16x16  f16   f16      float32  f32x4   f16x4
16x16x16  bf16  bf16_1k  float32  f32x4   bf16x4
16x16x32  i8    _i8      int32    i32x4   i64
16x16x32  fp8   -        float32  f32x4   i64
16x16x4   f32   f32      float32  f32x4   float
16x16x8   xf32  _xf32    float32  f32x4   f32x2
16x16x4   f64   f64      float64  f64x4   double
32x32x8   f16   f16      float32  f32x16  f16x4
32x32x8   bf16  bf16_1k  float32  f32x16  bf16x4
32x32x16  i8    _i8      int32    i32x16  i64
32x32x16  fp8   -        float32  f32x16  i64
"""
_SPARSE = """
16x16x32  f16   _f16     float32  f32x4   f16x4   f16x8
16x16x32  bf16  _bf16    float32  f32x4   bf16x4  bf16x8
16x16x64  i8    _i8      int32    i32x4   i32x2   i32x4
16x16x64  fp8   -        float32  f32x4   i32x2   i32x4
"""


def _made(line: str, sparse: bool) -> list[Instruction]:
    shape, element, suffix, total, d, a, *rest = line.split()
    m, n, k = map(int, shape.split("x"))
    rows = _DOUBLE if element == "f64" else _SQUARE_16 if m == 16 else _SQUARE_32
    kind, c = "smfmac" if sparse else "mfma", {"float32": "f32", "int32": "i32", "float64": "f64"}[total]
    pairs = [("fp8", "fp8"), ("fp8", "bf8"), ("bf8", "fp8"), ("bf8", "bf8")] if element == "fp8" else [(element,) * 2]
    found = []
    for x, y in pairs:
        name = f"{kind}_{c}_{shape}_{f'{x}_{y}' if element == 'fp8' else x}"
        end = f"_{x}_{y}" if element == "fp8" else suffix
        builtin = f"__builtin_amdgcn_{kind}_{c}_{shape}{end}"
        found.append(Instruction(name, builtin, m, n, k, (x, y), d, a, (rest or [a])[0], total, rows, sparse))
    return found


INSTRUCTIONS: dict[str, Instruction] = {
    one.name: one
    for table, sparse in ((_DENSE, False), (_SPARSE, True))
    for line in table.strip().splitlines()
    for one in _made(line, sparse)
}
"""By name."""
