"""Cluster launch and multicast: blocks that read the same tile load it once.

A multiprocessor loads about 50 bytes a clock from the second-level cache by itself. A product whose units would wait
for that gains from tiles that arrive in two blocks at a time. One whose units do not saves energy, which on an H200
with `wgmma` was worth 1 to 3 percent in kernels written by hand. Of this compiler's, clusters of two without roles were
0.945 times as fast as cuBLAS at 4096 (float16, dense), and 0.967 times without clusters; at 8192 0.99 and 1.003.

Where rows of the operands begin inside of lines of that cache (`tile_cuda.ops.product_cost`), tiles take up to twice as
many of them. Persistent kernels with tiles of 128 x 256 were then faster as clusters of two, on an H100, float16:
5024 x 5576 x 10728 1.43 times, 5080 x 1960 x 6936 1.32, 3936 x 10608 x 10520 and 10472 x 11248 x 1576 1.11,
8032 x 7544 x 768 1.04, 9568 x 6896 x 6704, whose lines take 1.16 times as long as its products, 1.00. Kernels with one
tile per block were not.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.memory.alignment import strides_of
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.pipelining.multicast import ChosenCluster, Shared
from tile_core.simt.pipelining.schedule import Each
from tile_cuda.attributes import APART, CTA_GROUP
from tile_cuda.cost.kernel import worth_pairs
from tile_cuda.machine import LINE, Machine, machine_of
from tile_cuda.ops.gemm_tensor import requests_tensor_memory
from tile_cuda.ops.product_cost import lines_of_row
from tile_cuda.ops.tensor_plan import LANES, MOST_COLUMNS
from tile_cuda.target import TCGEN05, WARP

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.errors.base import Where

LOADED_IN_A_CLOCK = 50
"""Bytes that TMA loads into the shared memory of a multiprocessor, measured on an H200 without multicast."""
HALF = 32
"""What the columns of a pair's product are a multiple of: each block has half of them in groups of 16."""
PAIR = 2
"""Blocks of a cluster by default: of four, fewer multiprocessors hold clusters."""
HOLD_FOUR, HOLD_FOUR_OF_TENSOR_MEMORY = 120, 128
"""Multiprocessors that hold clusters of four: of an H200, as its driver reports; of a B200, if each eighth of it holds
four of them, which is not measured. With more persistent blocks the last clusters would start after the first ended.
"""


def choose_cluster(shared: Shared, ctx: Context) -> ChosenCluster | Reject:
    """Return the cluster of a product's blocks, or why each loads for itself."""
    option = ctx.options.clusters
    if option == "never" and CTA_GROUP not in shared.product.attrs and shared.offers:
        return Reject('the option clusters is "never"')
    if option == "auto" and not ctx.capabilities.fact(TCGEN05) and shared.offers:
        return _of_lines(shared, machine_of(ctx.target.arch))
    count = option if isinstance(option, int) else PAIR
    if option == "pairs" or int(shared.product.attrs.get(CTA_GROUP, 1)) == PAIR:
        return _pairs(shared, ctx)
    if not shared.offers:
        return Reject(shared.because())
    offers = [o for o in shared.offers if prod(o.cluster) == count]
    if not offers:
        return Reject(f"no cluster of {count} blocks shares a tile along each of its axes")
    best = min(offers, key=lambda o: o.loaded)
    loads, product = shared.loaded / LOADED_IN_A_CLOCK, _clocks(shared, machine_of(ctx.target.arch))
    if option == "auto" and loads <= product:
        return Reject(f"an iteration takes {loads:,.0f} clocks for its loads and {product:,.0f} for its product")
    # Descriptors are read by instructions of whole warps; metadata is read by each thread.
    each: Each = "warp" if shared.product.name == "gemm" else "thread"
    hold = HOLD_FOUR_OF_TENSOR_MEMORY if ctx.capabilities.fact(TCGEN05) else HOLD_FOUR
    return ChosenCluster(best, each, WARP, processors=hold if count > PAIR else 0)


def _of_lines(shared: Shared, machine: Machine) -> ChosenCluster | Reject:
    """Return the pairs of a ``wgmma`` product that is limited by L2, if any."""
    lines = {b: _lines_of(call) for b, call in shared.copies.items()}
    needed, product = machine.line * sum(lines.values()), _clocks(shared, machine)
    offers = [o for o in shared.offers if prod(o.cluster) == PAIR]
    if not shared.persistent or shared.product.name != "gemm" or not offers:
        return Reject('it was not faster on an H200; the option clusters="always" enforces it')
    if not worth_pairs(machine, sum(lines.values()), shared.loaded / LINE, product):
        return Reject(
            f"an iteration takes {needed:,.0f} clocks for its L2 lines and {product:,.0f} for its product: it was not "
            'faster on an H100; the option clusters="always" enforces it'
        )
    best = min(offers, key=lambda o: sum(n / len(o.sets[b][0]) if b in o.sets else n for b, n in lines.items()))
    return ChosenCluster(best, "warp", WARP)


def explain_pairs(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Attach to products that request pairs of blocks why their loop has none."""
    asking = (s for s in collect(plan.body, tirx.Evaluate) if _is_apart(s))
    return plan.replace(body=_Explain(plan).stmt(plan.body)) if any(asking) else plan


class _Explain(StmtRewriter):
    def __init__(self, plan: KernelPlan) -> None:
        self.reports = plan.pipeline.loops
        self.clustered, self.several = attributes.CLUSTER in plan.program.attrs, len(products_of(plan.body)) > 1
        self.around: list[Where | None] = []

    def visit_For(self, s: Stmt) -> Stmt:
        self.around.append(nodes.where_of(s))
        new = super().visit_For(s)
        self.around.pop()
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return with_attributes(s, {APART: self.reason()}) if _is_apart(s) else s

    def reason(self) -> str:
        """Return why blocks do not compute a product of the loops around it together."""
        if self.clustered:
            return "the program sets the clusters itself; launch them with T.Kernel"
        if self.several:
            return "its block has other products"
        report = next((r for r in self.reports if r.where is not None and r.where in self.around), None)
        if report is None:
            return "it is not in a pipelined loop"
        notes = [note.text for note in report.notes if note.no_pairs]
        if report.reason:
            return f"its loop is not pipelined: {report.reason}; it needs two stages and two iterations at least"
        return "; ".join(notes) or "its loop does more than copies and one product"


def _is_apart(s: Stmt) -> bool:
    """Whether a product requests pairs of blocks and has none."""
    attrs = dict(s.value.attrs or {}) if is_op(s) else {}
    return CTA_GROUP in attrs and attributes.HALVES not in attrs


def _pairs(shared: Shared, ctx: Context) -> ChosenCluster | Reject:
    """Return the pairs of blocks that compute one product, with half of B each."""
    call = shared.product
    accumulator, b = call.args[accumulator_of(call)], call.args[accumulator_of(call) - 1]
    assert isinstance(accumulator, View)
    assert isinstance(b, View)
    columns, rows = int(accumulator.extents[-1]), int(accumulator.extents[-2])
    if not ctx.capabilities.fact(TCGEN05) or not requests_tensor_memory(call, ctx):
        return Reject("pairs of blocks compute products on tcgen05 only")
    if call.name != "gemm":
        return Reject(f"pairs of blocks have no {call.name}")
    if call.args[0].scope != "shared":
        return Reject(f"pairs of blocks read {call.args[0].name} from shared memory")
    if not shared.alone:
        return Reject(f"pairs of blocks compute one product, and {b.name} is an operand of others")
    if columns > MOST_COLUMNS or columns % HALF or rows % LANES:
        legal = f"a multiple of {LANES}, columns of {HALF}, at most {MOST_COLUMNS}"
        return Reject(f"pairs of blocks have no {rows} x {columns} accumulator: rows are {legal}")
    both = tuple(range(PAIR))
    best = next((o for o in shared.offers if prod(o.cluster) == PAIR and o.sets.get(b.buffer) == (both,)), None)
    if best is None:
        because = shared.because(b.buffer)
        return Reject(f"no two adjacent blocks copy the same part of {b.name}{because and f': {because}'}")
    return ChosenCluster(best, halves=True)


def _clocks(shared: Shared, machine: Machine) -> float:
    """Return the clocks that the tensor unit needs for an iteration."""
    call = shared.product
    accumulator, a = call.args[accumulator_of(call)], call.args[0]
    assert isinstance(accumulator, View)
    assert isinstance(a, View)
    m, n = (int(extent) for extent in accumulator.extents[-2:])
    k = prod(int(extent) for extent in a.extents[-2:]) // m
    return m * n * k * DTYPES[a.dtype].bits / 16 / machine.matrix


def _lines_of(call: OpCall) -> float:
    """Return the L2 lines of a tile; rows with a runtime pitch count as aligned."""
    source = call.args[0]
    assert isinstance(source, View)
    bits = DTYPES[source.dtype].bits
    row, steps = int(source.extents[-1]) * bits // 8, map(nodes.as_int, strides_of(source.buffer)[:-1])
    boxes = -(-row // LINE)
    apart = gcd(*(step for step in steps if isinstance(step, int))) * bits // 8
    return prod(map(int, source.extents[:-1])) * boxes * lines_of_row(min(row, LINE), apart)
