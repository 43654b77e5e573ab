"""One ordered execution of a translated kernel by its warps, with the checks of ``analysis/phases``.

Warps that behave equally are one *agent*; a role of several warps has at least two, because only barriers order these.
Threads of a warp stay together, but an arrival of some of them releases no slot that others read for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain

from tile_core.analysis.phases import PhaseError
from tile_core.simt.barrier_proof.agent import Agent
from tile_core.simt.barrier_proof.kernel_state import KernelState
from tile_core.simt.barrier_proof.translation import Translated
from tile_core.simt.barrier_proof.warp_classes import WarpClasses


class Unordered(Exception):
    """A check failed: the threads, the barrier or buffer, the statement, and why."""

    def __init__(self, role: str, what: str, step: str, reason: str) -> None:
        super().__init__(role, what, step, reason)
        self.role, self.what, self.step, self.reason = role, what, step, reason


def shortened(first: int, count: int, period: int, around: int) -> Iterator[int]:
    """Yield the first and last iterations of a loop, without whole periods between them.

    The iterations of roles correspond by number, so the omitted ones depend on the last number alone.
    """
    begin, end = around + 1, first + count
    left = (end - begin - around) // period * period
    if left <= 0 or first > begin:
        return iter(range(first, end))
    return iter(chain(range(first, begin), range(begin + left, end)))


def complete(first: int, count: int, period: int, around: int) -> Iterator[int]:
    """Yield all iterations of a loop."""
    return iter(range(first, first + count))


class KernelExecution:
    """One execution.

    Parameters
    ----------
    kernel, function
        The translated kernel, and its function.
    classes
        Its agents in each block.
    blocks
        Values of symbols in each block of a cluster.
    data
        The value of an element of global memory.
    """

    def __init__(
        self, kernel: Translated, function: Callable[..., Generator[None]], classes: WarpClasses,
        blocks: Sequence[Mapping[str, int]], data: Callable[..., int],
    ) -> None:  # fmt: skip
        self.state = KernelState(kernel, classes, len(blocks))
        self.agents: list[Agent] = []
        self.threads: list[Generator[None]] = []
        for rank, values in enumerate(blocks):
            for kind, threads in enumerate(classes.agents):
                agent = Agent(self.state, len(self.agents), rank, kind, threads)
                self.agents.append(agent)
                self.threads.append(function(agent, threads[0], *(values[s] for s in kernel.symbols), data))

    def go(self) -> None:
        """Execute everything.

        Raises
        ------
        Unordered, TooLong
            If a check fails; if it takes too long.
        """
        state, live = self.state, list(range(len(self.agents)))
        for thread in self.threads:
            next(thread)
        while live:
            before, ended = state.steps, []
            for n in live:
                try:
                    next(self.threads[n])
                except StopIteration:
                    ended.append(n)
                except PhaseError as e:
                    raise Unordered(state.names[n], e.what, self.agents[n].at, e.reason) from None
            if not ended and state.steps == before:
                at = self.agents[live[0]].at
                waits = "; ".join(f"{state.names[n]}: {self.agents[n].at}" for n in live[1:4])
                raise Unordered(state.names[live[0]], "all", at, f"no thread goes on{f' ({waits})' if waits else ''}")
            live = [n for n in live if n not in ended]
        try:
            state.require_ended()
            state.phases.finish()
        except PhaseError as e:
            raise Unordered("all threads", e.what, "the end", e.reason) from None
