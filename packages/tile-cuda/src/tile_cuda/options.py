"""Options of the CUDA backend, passed to builds in the attributes of launch facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from tile_core.numerics.levels import NumericsOptions, merged_levels
from tile_core.records import dataclass
from tile_core.renamed_options import current_names, renamed_of, renamed_options

PREFIX = "cuda."

MOST_REGISTERS = 255
"""Registers that one thread can have."""

FEWEST_REGISTERS = 16
"""The assembler accepts no lower register limit."""

CLUSTER_BLOCKS = (2, 4)
"""Blocks of a cluster that the option ``clusters`` can require."""

SPLIT_BLOCKS = (2, 4, 8)
"""Blocks of a cluster that share the iterations of a loop."""

_USUAL = ("never", "auto", "always")
_VALUES: Mapping[str, tuple[str, ...]] = {
    "tma": _USUAL,
    "rasterization": _USUAL,
    "wgmma": _USUAL,
    "persistent": _USUAL,
    "clusters": ("never", "auto", "always", "pairs"),
    "split_k": ("never", "auto"),
    "epilogue": ("never", "auto", "lanes", "always"),
    "stmatrix": ("never", "always"),
    "overlap": _USUAL,
    "tcgen05": ("never", "always"),
    "subtiling": _USUAL,
}
"""The names that an option accepts."""


@renamed_options(
    bulk_copies="tma",
    block_order="rasterization",
    workers="persistent",
    staged_results="epilogue",
    divided_sums="subtiling",
    **merged_levels("fast_math", "fmad", "fast_accum", "promote"),
)
@dataclass(frozen=True)
class CudaOptions(NumericsOptions):
    """Options of the CUDA backend.

    Where an option is ``"never"``, ``"auto"`` or ``"always"``: ``"auto"`` applies the feature where it is estimated or
    measured to be faster, ``"always"`` wherever it is legal. ``explain`` shows each decision and its reason.

    Parameters
    ----------
    numerics
        Level of numerics, see ``NumericsOptions``. ``"standard"`` fuses multiply-add, and products of 8-bit floats on
        `wgmma` accumulate at most 128 of K with 14 significant bits, then add to float32 accumulators. ``"strict"``
        uses tensor cores for integers only. ``"fast"``: approximate functions and division of float32, subnormal
        numbers flushed to zero, and 14 bits over all of K (recorded on an H200).
    max_registers
        Register limit of a thread, 16 to 255. A lower limit raises occupancy, and may spill. ``None``: no limit.
    line_info
        Line tables for profilers and debuggers: ``True`` names the lines of the user's Python source, ``"text"`` those
        of the generated source.
    opt
        Optimization level of the assembler, 0 to 3.
    tma
        TMA (bulk tensor copies) between global and shared memory, and TMA reductions from shared to global memory.
        ``"auto"``: in kernels with warpgroup products (`tile_cuda.copies.bulk`). ``"never"``: only calls that request
        TMA.
    rasterization
        Swizzled rasterization: number blocks along panels of the result, so that blocks that run at a time read less of
        the operands (`tile_core.simt.launch.rasterization`). ``"auto"``: for products on architectures with `wgmma`,
        where that saves reads, and blocks with most iterations first where their trip counts differ, unless the program
        calls ``T.use_swizzle``. ``"never"``: the order of the grid.
    wgmma
        Products on `wgmma`. ``"auto"``: where estimated to be faster (`tile_cuda.ops.product_cost`). ``"never"``:
        only calls that request it.
    persistent
        Persistent blocks with a producer warp (`tile_cuda.grid.persistent`). ``"auto"``: where there are more tiles
        than blocks that run at a time, and where it was measured to be faster; with tensor memory, also an MMA warp
        wherever one is legal. ``"always"``: also a producer warp for blocks with one tile. An integer: wherever legal,
        with this number of blocks. ``"never"``: one block for each tile.
    clusters
        Clusters with TMA multicast: each block of a cluster loads its part of an operand tile for all of them
        (`tile_cuda.copies.multicast`). ``"always"``: clusters of 2. ``"auto"``: on `tcgen05` where loads limit the
        product; on `wgmma` for persistent blocks if rows of the operands are not aligned to L2 cache lines. 2 or 4:
        clusters of this size wherever legal. ``"pairs"``: CTA pairs on `tcgen05` (``cta_group::2``) compute one
        product, and each block loads half of the columns of B; without warp specialization. ``"never"``: no clusters.
        The number of persistent blocks is a multiple of the cluster size.
    split_k
        Split-K in a cluster: its blocks share the iterations of a product's loop, and the first one adds their
        accumulators and executes the rest of the program (`tile_cuda.grid.split`). ``"auto"``: where tiles are too few
        for the device and that is estimated to be faster. 2, 4 or 8: clusters of this size wherever legal. ``"never"``:
        each block executes all iterations.
    epilogue
        Stores of accumulators. ``"always"``: staged in shared memory wherever its budget allows. ``"auto"``: staged
        where estimated to be faster (`tile_cuda.cost.stores`); without shared-memory budget, or in loops, lanes
        exchange elements of up to 32 bits for vector stores. ``"lanes"``: always exchange between lanes. ``"never"``:
        each thread stores its own elements.
    stmatrix
        ``"always"``: store accumulators to 16-bit tiles in shared memory by ``stmatrix``, if rows of the tile have
        16-byte chunks. ``"never"`` is the default, as no device has timed it.
    overlap
        Intra-warpgroup overlap: in pipelined loops with several products on `wgmma`, the last products of an iteration
        overlap the first one of the next. ``"auto"``: where the estimated registers suffice. ``"never"``: iterations do
        not overlap.
    tcgen05
        ``"always"``: products of blocks or roles with 128 threads run on `tcgen05`, with accumulators in tensor memory.
        ``"never"``: only calls that request it; the default until devices have run it.
    subtiling
        Epilogue subtiling: accumulators in tensor memory are read and written in slices of 64 columns
        (`tile_cuda.accumulators.subtiling`). ``"auto"``: those of more than 208 columns for each 128 rows, which
        registers cannot hold. ``"never"``: wider tiles are errors.
    """

    max_registers: int | None = None
    line_info: bool | str = False
    opt: int = 3
    tma: str = "auto"
    rasterization: str = "auto"
    wgmma: str = "auto"
    persistent: str | int = "auto"
    clusters: str | int = "auto"
    split_k: str | int = "auto"
    epilogue: str = "auto"
    stmatrix: str = "never"
    overlap: str = "auto"
    tcgen05: str = "never"
    subtiling: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.line_info, bool) and self.line_info != "text":
            raise TypeError("line_info is True, False or 'text'")
        numbers = {
            "persistent": ("a number of blocks", _is_int(self.persistent) and int(self.persistent) > 0),
            "clusters": ("2 or 4 blocks", _is_int(self.clusters) and self.clusters in CLUSTER_BLOCKS),
            "split_k": ("2, 4 or 8 blocks", _is_int(self.split_k) and self.split_k in SPLIT_BLOCKS),
        }
        for name, values in _VALUES.items():
            other, legal = numbers.get(name, ("", False))
            if getattr(self, name) not in values and not legal:
                raise ValueError(f"{name} is {_one_of(values)}{other and f', or {other}'}")
        if not _is_int(self.opt) or not 0 <= self.opt <= 3:
            raise ValueError("opt is 0, 1, 2 or 3")
        registers = self.max_registers
        if registers is not None and (not _is_int(registers) or not FEWEST_REGISTERS <= registers <= MOST_REGISTERS):
            raise ValueError(f"max_registers is None or a number from {FEWEST_REGISTERS} to {MOST_REGISTERS}")

    def attributes(self) -> dict[str, bool | int | str]:
        """Return the fields that differ from their defaults, as ``LaunchFacts.attributes``."""
        default = CudaOptions()
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        return {PREFIX + name: value for name, value in changed.items() if value != getattr(default, name)}

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> CudaOptions:
        """Return the options from the attributes of launch facts, ignoring other attributes.

        Artefacts of earlier versions have old names of options.
        """
        names = [*(f.name for f in fields(CudaOptions)), *renamed_of(CudaOptions)]
        own = {name: attributes[PREFIX + name] for name in names if PREFIX + name in attributes}
        return CudaOptions(**current_names(CudaOptions, own, warn=False))


def _one_of(values: tuple[str, ...]) -> str:
    texts = list(map(repr, values))
    return f"one of {', '.join(texts)}" if len(texts) > 2 else " or ".join(texts)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
