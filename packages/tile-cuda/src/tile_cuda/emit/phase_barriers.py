"""Calls for barriers with phases, as instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.structural import items
from tile_core.compat.types import Stmt
from tile_core.ir import attributes, calls, nodes
from tile_cuda.ptx.bulk import COMMIT, WAIT, wait_name
from tile_cuda.ptx.tensor import COMMIT as PRODUCTS_ARRIVE
from tile_cuda.ptx.tensor import COMMIT_TO
from tile_cuda.target import overlaps

if TYPE_CHECKING:
    from tile_core.emit.kernel_printer import KernelPrinter as _Printer
else:
    _Printer = object


class PhaseBarriers(_Printer):
    """Prints the calls of `tile_core.ir.calls` on barrier objects, clusters, launches and the asynchronous proxy."""

    arch: str

    def write_barrier_init(self, s: Stmt) -> None:
        """Initialise an object."""
        self._instruction("mbarrier_init_shared_cta_b64", s)

    def write_barrier_drop(self, s: Stmt) -> None:
        """End an object: its bytes are ordinary memory again."""
        self._instruction("mbarrier_inval_shared_cta_b64", s)

    def write_barrier_expect(self, s: Stmt) -> None:
        """Arrive with expected transaction bytes."""
        self._instruction("mbarrier_arrive_expect_tx_shared_cta_b64", s)

    def write_barrier_announce(self, s: Stmt) -> None:
        """Add expected transaction bytes."""
        self._instruction("mbarrier_expect_tx_relaxed_cta_shared_cta_b64", s)

    def write_barrier_arrive(self, s: Stmt) -> None:
        """Arrive, in this block or in another one of the cluster."""
        space = "cta" if len(s.value.args) == 1 else "cluster"
        self._instruction(f"mbarrier_arrive_shared_{space}_b64", s)

    def write_barrier_complete(self, s: Stmt) -> None:
        """Commit the thread's products to a barrier, also of other blocks."""
        self._instruction(PRODUCTS_ARRIVE[1] if len(s.value.args) == 1 else COMMIT_TO, s)

    def write_in_flight(self, s: Stmt) -> None:
        """Print nothing: the statement only records the reads of earlier instructions."""

    def write_cluster_arrive(self, s: Stmt) -> None:
        """Arrive at the barrier of the cluster."""
        relaxed = attributes.RELAXED in (s.value.attrs or {})
        self._instruction(f"barrier_cluster_arrive_{'relaxed' if relaxed else 'release'}", s)

    def write_cluster_wait(self, s: Stmt) -> None:
        """Wait at the barrier of the cluster."""
        self._instruction("barrier_cluster_wait_acquire", s)

    def write_barrier_wait(self, s: Stmt) -> None:
        """Wait for the phase of a parity."""
        self._instruction(WAIT, s)

    def write_launch_wait(self, s: Stmt) -> None:
        """Wait for the launches before; where launches cannot overlap, there is nothing to wait for."""
        if overlaps(self.arch):
            self._instruction("griddepcontrol_wait", s)

    def write_launch_trigger(self, s: Stmt) -> None:
        """Let the next launch begin."""
        if overlaps(self.arch):
            self._instruction("griddepcontrol_launch_dependents", s)

    def write_store_commit(self, s: Stmt) -> None:
        """End a group of bulk copies out of shared memory."""
        self._instruction(COMMIT, s)

    def write_store_wait(self, s: Stmt) -> None:
        """Wait for all groups of the thread."""
        self.stmt(calls.execute(wait_name(bool(nodes.as_int(s.value.args[0]))), [], s.span))

    def write_fence_proxy(self, s: Stmt) -> None:
        """Make writes visible to bulk copies, in shared memory or (much slower) everywhere."""
        everywhere = bool(nodes.as_int(s.value.args[0]))
        self.stmt(calls.execute("fence_proxy_async" if everywhere else "fence_proxy_async_shared_cta", [], s.span))

    def write_fence_init(self, s: Stmt) -> None:
        """Make initialised objects visible to bulk copies."""
        self._instruction("fence_mbarrier_init_release_cluster", s)

    def _instruction(self, name: str, s: Stmt) -> None:
        self.stmt(calls.execute(name, items(s.value.args), s.span))
