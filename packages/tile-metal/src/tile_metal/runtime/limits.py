"""Limits of a launch, checked before anything is dispatched: Metal itself may terminate the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.compat.types import Argument
from tile_core.errors.launch import GridTooLarge, TextRefused, TooMuchShared
from tile_metal.errors import TooManyThreadsPerGroup, WrongWidth
from tile_metal.target import MOST_THREADS, SHARED_BYTES, SIMD
from tile_runtime.texts.launch_grid import Extents, grid_of
from tile_runtime.texts.packing import require_single_blocks


def check_static(facts: LaunchFacts) -> None:
    """Refuse a kernel that no device can launch.

    Raises
    ------
    LaunchNotOffered, TooManyThreadsPerGroup, TooMuchShared
        It is over the limits of all devices.
    """
    require_single_blocks(facts, "metal")
    check_threads(facts, MOST_THREADS, "Metal")
    check_shared(facts, facts.shared_bytes)


def check_threads(facts: LaunchFacts, limit: int, where_from: str) -> None:
    """Refuse a threadgroup that is larger than a limit."""
    if facts.threads > limit:
        shown = {"kernel": facts.kernel, "found": facts.threads, "limit": limit, "where_from": where_from}
        raise TooManyThreadsPerGroup(where=facts.where, **shown)


def check_shared(facts: LaunchFacts, found: int) -> None:
    """Refuse a threadgroup that uses more memory than there is."""
    if found > SHARED_BYTES:
        shown = {"kernel": facts.kernel, "device": "a threadgroup of Metal", "found": found, "limit": SHARED_BYTES}
        raise TooMuchShared(where=facts.where, **shown)


def text_refused(facts: LaunchFacts, library: str, reason: str) -> TextRefused:
    """Return the error of a text that Metal's compiler refused."""
    compiler = f"Metal's compiler, called by {library},"
    return TextRefused(kernel=facts.kernel, compiler=compiler, part="the text", reason=reason, where=facts.where)


def check_pipeline(facts: LaunchFacts, threads: int, width: int, shared: int) -> None:
    """Refuse a compiled kernel whose pipeline does not allow the launch.

    Parameters
    ----------
    facts
        Of the text.
    threads, width, shared
        Properties of the pipeline: the most threads of a threadgroup, its execution width, and its bytes of threadgroup
        memory.

    Raises
    ------
    TooManyThreadsPerGroup, WrongWidth, TooMuchShared
        With what was found.
    """
    check_threads(facts, threads, "the compiled kernel")
    if width != SIMD:
        raise WrongWidth(kernel=facts.kernel, found=width, expected=SIMD, where=facts.where)
    check_shared(facts, shared)


def threads_of(facts: LaunchFacts, library: str, limit: int) -> Callable[[Sequence[Argument]], Extents | None]:
    """Return a function from launch values to threads along x, y and z.

    Its result is ``None`` if there are no threads.

    The function raises ``GridTooLarge`` if an axis has more than ``limit``.
    """
    return grid_of(facts, lambda blocks: _checked(facts, blocks, library, limit))


def _checked(facts: LaunchFacts, blocks: Extents, library: str, limit: int) -> Extents | None:
    if min(blocks) <= 0:
        return None
    x, y, z = (n * size for n, size in zip(blocks, facts.block, strict=True))
    for axis, found in zip("xyz", (x, y, z), strict=True):
        if found > limit:
            shown = {"runtime": library, "unit": "threads", "axis": axis, "found": found, "limit": limit}
            raise GridTooLarge(kernel=facts.kernel, where=facts.where, **shown)
    return x, y, z
