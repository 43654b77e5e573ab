"""Defects of indices and trip counts that were mended, put back by hand."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx


def indices_by_tvm(patch: Any) -> None:
    """CPU: TVM flattens buffers and turns ``(127 - i) // 2`` into a wrong form.

    The result is ``i // -2 + 63``.
    """
    from tile_core.cpu import build

    passes = build.index_passes
    patch.setattr(build, "index_passes", lambda: [tirx.transform.FlattenBuffer(), *passes()[1:]])


def indices_never_overflow(patch: Any) -> None:
    """CPU: TVM assumes that additions in indices and conditions never overflow."""
    from tile_core.cpu import pipeline

    patch.setattr(pipeline, "wrap_unproven", lambda body, *rest: body)


def trip_counts_wrap(patch: Any) -> None:
    """Trip counts are computed in the type of the bounds, where they may wrap."""
    from tile_core.trace import loops

    def count(start: Any, stop: Any, step: int) -> Any:
        distance, size = stop - start if step > 0 else start - stop, abs(step)
        if isinstance(distance, int):
            return max(0, -(-distance // size))
        return distance if size == 1 else loops.as_value((distance + (size - 1)) // size)

    patch.setattr(loops, "trip_count", count)


def negative_indices(patch: Any) -> None:
    """A negative index that is known is not looked at."""
    from tile_core.values import buffer

    constant_of = buffer.constant_of

    def lenient(item: Any) -> Any:
        constant = constant_of(item)
        return constant if constant is None or constant >= 0 else None

    patch.setattr(buffer, "constant_of", lenient)


def guards_cover_moved_terms(patch: Any) -> None:
    """Targets with threads: terms of an index that may overflow are moved if another term of it may overflow."""
    from tile_core.analysis import analyzer

    more = analyzer.Analyzer._overflows_more

    def changed(self: Any, simple: Any, e: Any) -> bool:
        return bool(more(self, simple, e)) and not more(self, e, tirx.IntImm(e.ty, 0))

    patch.setattr(analyzer.Analyzer, "_overflows_more", changed)
