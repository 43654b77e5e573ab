"""The interface that a backend implements to rank tile shapes.

The core traces a user's factory and describes the program as a `Workload`; a `TilingModel` proposes tile shapes and
estimates the time of each. The core finds the factory's parameters for them (`tile_core.tiling`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tile_core.ir.attributes import Attrs
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.lowering.variant import Reject

#: The parameters of a tile shape by which a model distinguishes kernels.
ROLES = ("m", "n", "k", "threads", "stages", "splits")


@dataclass(frozen=True)
class TiledProduct:
    """One matrix product of a block, as traced.

    Attributes
    ----------
    op
        Name of the op: ``"gemm"``, ``"gemm_sp"`` or ``"gemm_scaled"``.
    m, n, k
        Extents of a block's tile; K is dense.
    types
        Element types of A, B and C as the program names them.
    transposed
        Whether A is stored as (K, M), and B as (N, K).
    scopes
        Memory of A, B and C: ``"shared"``, ``"local.fragment"`` or ``"global"``.
    pitches
        Bytes from row to row of the global tensors from which A and B are copied; 0 if unknown.
    trips
        Trip count of all loops around it in one block.
    stages
        Stages of its pipelined loop; 1 without one.
    attrs
        Compile-time arguments of the op that select instructions, such as ``policy``.
    converted
        Elements of shared operands that threads write in each iteration, such as dequantized weights.
    """

    op: str
    m: int
    n: int
    k: int
    types: tuple[str, str, str]
    transposed: tuple[bool, bool]
    scopes: tuple[str, str, str]
    pitches: tuple[int, int]
    trips: int
    stages: int
    attrs: Attrs
    converted: int = 0


@dataclass(frozen=True)
class Workload:
    """The launch of a program with its products.

    Attributes
    ----------
    products
        The products of a block, in program order.
    blocks
        Blocks of the grid: all tiles of a batch, and all parts of a split-K.
    threads
        Threads of a block.
    tensor_bytes
        Bytes of all tensors of the launch.
    shared_bytes
        Bytes of shared memory that the program declares, without further stages.
    other_bytes
        Bytes of tensors that other launches of the program read and write.
    launches
        Launches of the program.
    grid
        Blocks along x and y.
    staged_bytes
        Bytes of shared memory that each further stage of its pipelined loops takes; 0 if unknown.
    converted_bytes
        Bytes of tiles that threads of pipelined loops convert to operands from global memory. Targets with asynchronous
        copies stage them in shared memory.
    """

    products: tuple[TiledProduct, ...]
    blocks: int
    threads: int
    tensor_bytes: int
    shared_bytes: int
    other_bytes: int
    launches: int
    grid: tuple[int, int] = (0, 0)
    staged_bytes: int = 0
    converted_bytes: int = 0

    @property
    def first(self) -> TiledProduct:
        """The product whose extents are the roles ``m``, ``n`` and ``k``."""
        return self.products[0]


@dataclass(frozen=True)
class TileShape:
    """A tile shape that a model proposes; ``splits`` blocks share its K."""

    m: int
    n: int
    k: int
    threads: int
    stages: int
    splits: int = 1


@dataclass(frozen=True)
class TilingEstimate:
    """The estimated time of a workload.

    Attributes
    ----------
    microseconds
        The time of all its launches.
    reason
        The limit, as the end of a sentence: ``"2 waves of 264 tiles, limited by the matrix units"``.
    """

    microseconds: float
    reason: str


class TilingModel(Protocol):
    """A backend's estimate of products on one target; stateless."""

    def shapes(self, workload: Workload, fixed: Mapping[str, int], ctx: Context) -> Sequence[TileShape]:
        """Return the tile shapes to estimate for a workload's first product, in any order.

        Parameters
        ----------
        workload
            The program as traced with the factory's defaults.
        fixed
            Values, by role, that no parameter of the factory changes.
        ctx
            Target and options.
        """

    def estimate(self, workload: Workload, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a traced program, or the rejection reason."""


@runtime_checkable
class PlanEstimates(Protocol):
    """A model that also estimates compiled kernels, for ``explain``."""

    def estimate_plan(self, plan: Any, ctx: Context) -> TilingEstimate | Reject:
        """Return the estimated time of a kernel's finished plan, or the rejection reason."""
