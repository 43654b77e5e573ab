"""Options of the CUDA backend, passed to the build of a kernel in the attributes of its launch facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from tile_core.records import dataclass

PREFIX = "cuda."

MOST_REGISTERS = 255
"""Registers that one thread can have."""

BULK_COPIES = ("never", "auto", "always")
"""Whether copies are bulk copies of boxes."""

BLOCK_ORDER = ("never", "auto", "always")
"""Whether blocks are numbered in an order of the compiler's."""

WGMMA = ("never", "auto", "always")
"""Whether products run on the matrix instructions of warpgroups."""

WORKERS = ("never", "auto", "always")
"""Whether blocks stay and share the tiles of a grid."""

CLUSTERS = ("never", "auto", "always", "pairs")
"""Whether blocks that read the same tile load it once, as clusters."""

BLOCKS_OF_CLUSTERS = (2, 4)
"""How many they are, where an option says so."""

STAGED_RESULTS = ("never", "auto", "lanes", "always")
"""How results of products go to global memory."""

STMATRIX = ("never", "always")
"""Whether sums go to 16-bit tiles in shared memory by matrices."""

OVERLAP = ("never", "auto", "always")
"""Whether the trips of loops with several products overlap."""

TCGEN05 = ("never", "always")
"""Whether products have their sums in tensor memory."""

PROMOTED = 64
"""Elements along K of the longest instruction for 8-bit floats, sparse ones, of which promoted sums are whole."""

DIVIDED_SUMS = ("never", "auto", "always")
"""Whether registers hold sums in tensor memory only in pieces."""

FEWEST_REGISTERS = 16
"""The assembler takes no lower bound than this."""


@dataclass(frozen=True)
class CudaOptions:
    """How the CUDA backend compiles.

    Parameters
    ----------
    fast_math
        Let functions and divisions of float32 be approximate, and flush subnormal numbers to zero.
    max_registers
        Registers of a thread at most; fewer let more blocks run at a time, and spill. ``None`` leaves it to the
        assembler.
    line_info
        Keep for profilers and debuggers which instruction comes from which line of the text.
    opt
        How much the assembler optimises, from 0 to 3.
    fmad
        Allow fusing a multiplication and an addition, with one rounding. ``fast_math`` includes it.
    bulk_copies
        ``"always"``: copies between global and shared memory, and updates of global memory by tiles in shared memory,
        are bulk copies of boxes, which one thread issues, where the target has them and the copy is legal as one;
        ``explain`` says why one is not. ``"auto"``: those of kernels with products of warpgroups, where boxes were
        faster (`tile_cuda.copies.bulk`), which is the default. ``"never"``: only those that ask for it.
    block_order
        ``"auto"``: the blocks of a kernel with a product of warpgroups are numbered along panels of the result where
        those that run at a time then read less of the operands (`tile_cuda.grid.rasterization`), which is the default,
        unless the program says ``T.use_swizzle``. ``"always"``: wherever the panels are known. ``"never"``: as the grid
        says.
    wgmma
        ``"always"``: products run on the matrix instructions of warpgroups where the target has them and the product is
        legal on them; ``explain`` says why one is not. ``"auto"``: where they are estimated to be faster too
        (`tile_cuda.ops.warpgroup_cost`), which is the default. ``"never"``: only those that ask for it.
    workers
        ``"always"``: the blocks of a product of warpgroups stay and share the tiles of its result, with a warp that
        copies for the others, wherever they can (`tile_cuda.grid.persistent`); blocks that cannot stay have such a warp
        too, where that is possible; ``explain`` says why it is not. ``"auto"``: where there are more tiles than blocks
        at a time, and such kernels were faster, which is the default. A number: wherever they can, so many blocks.
        ``"never"``: each tile has a block of its own. On targets with tensor memory ``"auto"`` splits blocks into roles
        wherever one thread can issue their products.
    clusters
        ``"always"``: blocks of a pipelined product that read the same tile of an operand are clusters of two, each of
        which loads a half of it for both (`tile_cuda.copies.multicast`), wherever they can; ``explain`` says why they
        cannot. Blocks that stay (``workers``) are clusters, too: then the number of blocks is a multiple of a
        cluster's. ``"auto"``: with ``tcgen05`` where the product would wait for its loads, and on ``wgmma`` where
        blocks stay and rows of operands begin inside of lines of the cache; which is the default. 2 or 4: wherever they
        can, so many blocks. ``"pairs"``: two blocks that read the same tile of B compute one product on ``tcgen05``
        together (``cta_group::2``), each loads half of its columns; blocks have no roles. ``"never"``: each loads for
        itself.
    staged_results
        ``"auto"``: the sums of products of warpgroups are copied to global memory through a tile in shared memory where
        there is room and that is estimated to be faster (`tile_cuda.ops.epilogue_cost`), which is the default;
        ``explain`` shows both numbers; where there is no room, or in loops, lanes exchange results of up to 32 bits
        instead. ``"lanes"``: those of all products are exchanged. ``"always"``: all that have room go through shared
        memory. ``"never"``: threads store what they have.
    stmatrix
        ``"always"``: sums of products are copied to tiles of 16-bit elements in shared memory by ``stmatrix`` where the
        target has it and rows of the tile have chunks of 16 bytes; ``explain`` says why not. ``"never"``, the default:
        threads store what they have, since no device has timed it.
    overlap
        ``"always"``: in a pipelined loop of several products on ``wgmma``, the last ones of a trip run beside the first
        one of the next, where that is legal; ``explain`` says why it is not. ``"auto"``: where a thread is estimated to
        have the registers, which is the default. ``"never"``: each trip ends before the next one begins.
    tcgen05
        ``"always"``: products of a block, or a role, of 128 threads have their sums in tensor memory where the target
        has it and the product is legal there; ``explain`` says why one is not. ``"never"``: only those that ask for it,
        which is the default as long as no device has run them.
    divided_sums
        ``"auto"``: sums in tensor memory that registers cannot hold as a whole (over 208 columns for each 128 rows) are
        read and written in pieces of 64 columns (`tile_cuda.accumulators.subtiling`), which is the default.
        ``"always"``: all whose uses can be divided. ``"never"``: none; wider tiles are refused.
    fast_accum
        Let sums of products of 8-bit floats keep 14 significant bits, as `wgmma` has them (recorded on an H200), and
        not those of the accumulator: `wgmma` multiplies 8-bit floats only with it or with ``promote``, unless the call
        asks for `wgmma`.
    promote
        Let the sums of so many products of 8-bit floats along K keep 14 significant bits, and add these partial sums
        in float32: `wgmma` may then multiply them. A multiple of 64, such as 128; 0, the default, means never. Each
        addition costs time, which ``explain`` estimates. It takes precedence over ``fast_accum``.
    """

    fast_math: bool = False
    max_registers: int | None = None
    line_info: bool = False
    opt: int = 3
    fmad: bool = False
    bulk_copies: str = "auto"
    block_order: str = "auto"
    wgmma: str = "auto"
    workers: str | int = "auto"
    clusters: str | int = "auto"
    staged_results: str = "auto"
    stmatrix: str = "never"
    overlap: str = "auto"
    tcgen05: str = "never"
    divided_sums: str = "auto"
    fast_accum: bool = False
    promote: int = 0

    def __post_init__(self) -> None:
        for name in ("fast_math", "line_info", "fmad", "fast_accum"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")
        if self.bulk_copies not in BULK_COPIES:
            raise ValueError(f"bulk_copies is one of {', '.join(map(repr, BULK_COPIES))}")
        if self.block_order not in BLOCK_ORDER:
            raise ValueError(f"block_order is one of {', '.join(map(repr, BLOCK_ORDER))}")
        if self.wgmma not in WGMMA:
            raise ValueError(f"wgmma is one of {', '.join(map(repr, WGMMA))}")
        if self.workers not in WORKERS and not (_is_int(self.workers) and int(self.workers) > 0):
            raise ValueError(f"workers is one of {', '.join(map(repr, WORKERS))}, or a number of blocks")
        if self.clusters not in CLUSTERS and not (_is_int(self.clusters) and self.clusters in BLOCKS_OF_CLUSTERS):
            legal = f"{', '.join(map(repr, CLUSTERS))}, or {' or '.join(map(str, BLOCKS_OF_CLUSTERS))} blocks"
            raise ValueError(f"clusters is one of {legal}")
        if self.staged_results not in STAGED_RESULTS:
            raise ValueError(f"staged_results is one of {', '.join(map(repr, STAGED_RESULTS))}")
        if self.stmatrix not in STMATRIX:
            raise ValueError(f"stmatrix is {' or '.join(map(repr, STMATRIX))}")
        if self.overlap not in OVERLAP:
            raise ValueError(f"overlap is one of {', '.join(map(repr, OVERLAP))}")
        if self.tcgen05 not in TCGEN05:
            raise ValueError(f"tcgen05 is {' or '.join(map(repr, TCGEN05))}")
        if not _is_int(self.promote) or self.promote < 0 or self.promote % PROMOTED:
            raise ValueError(f"promote is 0 or a multiple of {PROMOTED}")
        if self.divided_sums not in DIVIDED_SUMS:
            raise ValueError(f"divided_sums is one of {', '.join(map(repr, DIVIDED_SUMS))}")
        if not _is_int(self.opt) or not 0 <= self.opt <= 3:
            raise ValueError("opt is 0, 1, 2 or 3")
        registers = self.max_registers
        if registers is not None and (not _is_int(registers) or not FEWEST_REGISTERS <= registers <= MOST_REGISTERS):
            raise ValueError(f"max_registers is None or a number from {FEWEST_REGISTERS} to {MOST_REGISTERS}")

    def attributes(self) -> dict[str, bool | int | str]:
        """Return what `from_attributes` reads, for ``LaunchFacts.attributes``: the fields that are not at default."""
        default = CudaOptions()
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        return {PREFIX + name: value for name, value in changed.items() if value != getattr(default, name)}

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> CudaOptions:
        """Return the options from the attributes of launch facts; other attributes are ignored."""
        own = {f.name: attributes[PREFIX + f.name] for f in fields(CudaOptions) if PREFIX + f.name in attributes}
        return CudaOptions(**own)  # type: ignore[arg-type]


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
