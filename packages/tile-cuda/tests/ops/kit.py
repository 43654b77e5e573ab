"""Run one product on the test machine: poisoned surroundings, fragments filled by their layouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from machine import Machine, numpy_type

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Reject
from tile_core.ops.base import View
from tile_core.simt.variant import Block, Placement, SimtCall
from tile_cuda.ops.gemm_mma import MmaGemm
from tile_cuda.ops.gemm_sp_mma import MmaGemmSp

from .instructions import instructions

SCOPES = {"s": "shared", "r": "local.fragment"}
NIBBLES = (4, 8, 9, 12, 13, 14)


@dataclass
class Case:
    """A product: ``scopes`` of A, B and C; ``corner`` of the tiles in larger buffers."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str] = ("float16", "float16", "float32")
    scopes: str = "ssr"
    threads: int = 128
    turned: tuple[bool, bool] = (False, False)
    policy: int = 0
    clear: Any = False
    fp8: bool = True
    seed: int = 1
    meta: str = ""
    turned_e: bool = False
    corner: tuple[int, int] = (0, 0)
    margin: tuple[int, int] = (0, 0)
    stages: int = 0
    runtime: int | None = None
    layouts: dict[str, Any] = field(default_factory=dict)
    plain: bool = False


class Run:
    """The outcome: ``machine``, ``result`` and the expected ``want``."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rng = np.random.default_rng(case.seed)
        self.thread = nodes.fresh("tid")
        self.offset = nodes.fresh("offset")
        values = {} if case.runtime is None else {self.offset: case.runtime}
        self.machine = Machine(case.threads, self.thread, values=values, instructions=instructions())
        self.placement = Placement()
        self.data: dict[str, Any] = {}
        self.views: dict[str, View] = {}
        self.make()
        self.call = self.make_call()
        self.variant = self.choose()
        self.answer = self.variant.accepts(self.call, None)
        if isinstance(self.answer, Reject):
            return
        self.infer_layouts()
        self.body = self.variant.lower(self.call, None)
        self.machine.run(self.body)
        self.result = self.read("C")

    # The operands

    def make(self) -> None:
        c = self.case
        a, b, acc = c.types
        dense = numbers(self.rng, (c.m, c.k), a)
        right = numbers(self.rng, (c.k, c.n), b)
        left = dense
        if c.meta:
            left, metadata, dense = sparse(self.rng, c.m, c.k, a, c.meta)
            self.add("E", metadata, c.turned_e, c.meta, "s")
        self.add("A", left, c.turned[0], a, c.scopes[0])
        self.add("B", right, c.turned[1], b, c.scopes[1])
        start = numbers(self.rng, (c.m, c.n), acc)
        self.add("C", start, False, acc, c.scopes[2])
        wide = np.int64 if DTYPES[a].is_integer else np.float64
        product = dense.astype(wide) @ right.astype(wide)
        self.want = (product if c.clear is True else product + start.astype(wide)).astype(start.dtype)

    def add(self, role: str, values: Any, turned: bool, dtype: str, scope: str) -> None:
        c = self.case
        values = np.ascontiguousarray(values.T if turned else values)
        whole = scope == "r" or role == "E"
        (top, left), (below, right) = ((0, 0), (0, 0)) if whole else (c.corner, c.margin)
        rows, columns = values.shape
        shape: tuple[int, ...] = (rows + top + below, columns + left + right)
        full = np.full(shape, poison(values.dtype), values.dtype)
        full[top : top + rows, left : left + columns] = values
        mins: list[Any] = [top, left]
        if c.runtime is not None and not whole and role != "C":
            mins[1] = self.offset
        extents: tuple[int, ...] = (rows, columns)
        if c.stages and scope == "s" and role != "C":
            full = np.stack([np.full(shape, poison(values.dtype), values.dtype)] * (c.stages - 1) + [full])
            shape, extents, mins = (c.stages, *shape), (1, *extents), [c.stages - 1, *mins]
        held = "float32" if dtype == "tfloat32" else dtype
        buffer = tirx.decl_buffer(list(shape), held, role, scope=SCOPES[scope], layout=None)
        self.views[role] = View(buffer, tuple(mins), extents)
        self.data[role] = full

    def make_call(self) -> SimtCall:
        c = self.case
        clear = nodes.const(c.clear, "bool") if isinstance(c.clear, bool) else c.clear(self.thread)
        names = "AEBC" if c.meta else "ABC"
        kinds = dict(zip("ABC", c.types, strict=True)) | {"E": c.meta}
        attrs = {
            "transpose_A": c.turned[0], "transpose_B": c.turned[1], "transpose_E": c.turned_e, "policy": c.policy,
            "types": [kinds[r] for r in names], "group": 2 if DTYPES[c.types[0]].bits == 32 else 4,
        }  # fmt: skip
        args = (*(self.views[r] for r in names), clear)
        block = Block((c.threads, 1, 1), self.thread)
        return SimtCall("gemm_sp" if c.meta else "gemm", args, attrs, block=block, placement=self.placement)

    def choose(self) -> Any:
        c = self.case
        return MmaGemmSp(c.fp8) if c.meta else MmaGemm(c.fp8)

    def infer_layouts(self) -> None:
        """Repeat layout inference until a fixed point."""
        for role, layout in self.case.layouts.items():
            self.placement.layouts[self.views[role].buffer] = layout
        for _ in range(2):
            for position, want in self.variant.layouts(self.call, None).items():
                buffer = self.call.args[position].buffer
                if isinstance(want, FragmentLayout):
                    found = self.placement.fragments.setdefault(buffer, want)
                    assert found.same_as(want)
                elif not self.case.plain:
                    self.placement.layouts.setdefault(buffer, want)
        for role, view in self.views.items():
            found = self.placement.fragments.get(view.buffer)
            if found is None:
                self.machine.memory.put(view.buffer, self.data[role], self.placement.layouts.get(view.buffer))
                continue
            array = tirx.decl_buffer([found.registers], view.dtype, role, scope="local", layout=None)
            self.placement.arrays[view.buffer] = array
            registers = self.machine.allocate(array)
            for copy in range(found.replicas):
                registers[found.thread_table[:, copy], found.register_table] = self.data[role].reshape(-1)

    def read(self, role: str) -> Any:
        view = self.views[role]
        found = self.placement.fragments.get(view.buffer)
        if found is not None:
            registers = self.machine.private[self.placement.arrays[view.buffer]]
            copies = registers[found.thread_table, found.register_table[:, None]]
            assert (copies == copies[:, :1]).all()
            return copies[:, 0].reshape(found.shape)
        full = self.machine.memory.get(view.buffer)
        (top, left), (rows, columns) = view.mins[-2:], view.extents[-2:]
        inside = np.zeros(full.shape, bool)
        inside[top : top + rows, left : left + columns] = True
        same = full[~inside].tobytes() == self.data[role][~inside].tobytes()
        assert same, "an element beside C was written"
        return full[top : top + rows, left : left + columns]


def check(**facts: Any) -> Run:
    """Run a case; its result must be exact."""
    run = Run(Case(**facts))
    assert not isinstance(run.answer, Reject), run.answer.reason
    assert run.result.dtype == run.want.dtype
    wrong = np.argwhere(~(run.result == run.want))
    assert not len(wrong), f"{len(wrong)} of {run.want.size} wrong, first at {wrong[0]}"
    return run


def numbers(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    kind = numpy_type("float32" if dtype == "tfloat32" else dtype)
    low = 0 if DTYPES[dtype].kind == "uint" else -2
    return rng.integers(low, 3, shape).astype(kind)


def poison(kind: Any) -> Any:
    return np.array(77, kind) if kind.kind in "iu" else np.array(np.nan).astype(kind)


def sparse(rng: Any, m: int, k: int, dtype: str, meta: str) -> tuple[Any, Any, Any]:
    """Return kept values, metadata and the dense matrix."""
    group = 2 if DTYPES[dtype].bits == 32 else 4
    codes = rng.choice((4, 14) if group == 2 else NIBBLES, (m, k // group))
    per = DTYPES[meta].bits // 4
    shifts = 4 * np.arange(per, dtype=np.uint64)
    packed = (codes.astype(np.uint64).reshape(m, -1, per) << shifts).sum(axis=2)
    metadata = packed.astype(f"uint{DTYPES[meta].bits}").view(meta)
    kept = numbers(rng, (m, k // 2), dtype)
    dense = np.zeros((m, k), kept.dtype)
    starts = np.arange(k // group) * group
    rows = np.arange(m)[:, None]
    if group == 2:
        dense[rows, starts + (codes & 3) // 2] = kept
    else:
        dense[rows, starts + (codes & 3)] = kept[:, 0::2]
        dense[rows, starts + (codes >> 2)] = kept[:, 1::2]
    return kept, metadata, dense
