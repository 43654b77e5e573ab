"""Counts of one launch of a text, from an emulator run and the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import prod

import tile_emulator
from metal_counts.registers import NoEstimate, arithmetic, estimate
from tile_core.abi.kernel_text import KernelText

_EXCHANGES = (
    "simd_shuffle", "simd_broadcast", "simd_sum", "simd_product", "simd_max", "simd_min", "simd_and", "simd_or",
    "simd_xor", "simd_prefix", "simd_ballot", "simd_any", "simd_all",
)  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """Costs of a launch, totalled over all threadgroups.

    Counts of a threadgroup or a thread are not totalled.

    Attributes
    ----------
    products
        Matrix products of simdgroups, each of 8 x 8 x 8 elements: a larger one counts as that many.
    fragment_loads, fragment_stores
        Fragments of 8 x 8 elements that simdgroups read and write by an instruction. What lanes read by themselves is
        among the bytes.
    exchanges
        Shuffles, reductions and votes of simdgroups.
    device_read, device_written
        Bytes of accesses to device memory by all threads. Caches are not modelled: what two threads read counts twice.
    threadgroup_bytes
        Threadgroup memory of a threadgroup.
    threadgroup_read, threadgroup_written
        Bytes of accesses to it by all threads.
    barriers
        Barriers that threadgroups execute.
    registers
        An estimate of the 32-bit registers of a thread (``registers.py``); ``None`` where there is no clang for it.
    arithmetic
        An estimate of the arithmetic instructions that a thread executes, from the same source.
    """

    products: int
    fragment_loads: int
    fragment_stores: int
    exchanges: int
    device_read: int
    device_written: int
    threadgroup_bytes: int
    threadgroup_read: int
    threadgroup_written: int
    barriers: int
    registers: int | None
    arithmetic: int | None

    def beyond(self, other: Counts, most: float) -> dict[str, tuple[int, int]]:
        """Return counts above ``most`` times another launch's, with both values by name."""
        found = {}
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            if mine is not None and its is not None and mine > most * its:
                found[field.name] = (mine, its)
        return found


def counts_of(text: KernelText, result: tile_emulator.RunResult) -> Counts:
    """Return the counts of a launch.

    Parameters
    ----------
    text
        What was run.
    result
        The run, with the checks that count accesses (any of them).
    """
    stats, threads = result.stats, prod(text.facts.block)
    n, met = stats.counters, stats.met
    return Counts(
        products=met.get("simdgroup_multiply_accumulate", 0) + met.get("simdgroup_multiply", 0)
        + 16 * met.get("matmul2d", 0),
        fragment_loads=met.get("simdgroup_load", 0),
        fragment_stores=met.get("simdgroup_store", 0),
        exchanges=sum(count for name, count in met.items() if name.startswith(_EXCHANGES)),
        device_read=n["array_reads"],
        device_written=n["array_writes"],
        threadgroup_bytes=text.facts.shared_bytes,
        threadgroup_read=n["shared_reads"],
        threadgroup_written=n["shared_writes"],
        barriers=n["barriers"] // threads,
        registers=_estimated(estimate, text.text),
        arithmetic=_estimated(arithmetic, text.text),
    )  # fmt: skip


def _estimated(of: Callable[[str], int], text: str) -> int | None:
    try:
        return of(text)
    except NoEstimate:
        return None
