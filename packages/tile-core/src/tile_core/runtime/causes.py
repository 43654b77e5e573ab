"""The causes of wrong results: executes a kernel's reference again, observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tile_core.abi.signature import Param
from tile_core.errors import TileError
from tile_core.errors.launch import VerifyMismatch

if TYPE_CHECKING:
    from tile_core.reference.nonfinite import Made


class Causes:
    """Finds the statement behind an element.

    Parameters
    ----------
    params
        Of the kernel.
    execute
        Executes the reference with ``observer``; ``None`` if that is not possible.
    """

    def __init__(self, params: Sequence[Param], execute: Callable[..., object] | None) -> None:
        self.params, self._execute = params, execute

    def of_mismatch(self, error: VerifyMismatch) -> VerifyMismatch:
        """Return a mismatch with its first element, and the statement that wrote this one."""
        first = error.facts["first"]
        if first is None:
            return error
        from tile_core.reference.writers import Writers

        cause, where = f"; the first is {first}", error.where
        if self._execute is not None and not any(p.packed for p in self.params):
            n = next(n for n, p in enumerate(self.params) if p.name == error.facts["name"])
            writers = Writers({n: first})
            if self._runs(writers) and n in writers.found:
                cause, where = f"{cause}, {writers.found[n]}", writers.found[n].where
        return VerifyMismatch(**{**error.facts, "cause": cause}, where=where)

    def of_nonfinite(self, nan: bool) -> Made | None:
        """Return the first operation that makes a NaN (or, without ``nan``, an infinity) from numbers."""
        from tile_core.reference.nonfinite import FirstBad

        bad = FirstBad(infinities=not nan)
        return bad.found if self._runs(bad) else None

    def _runs(self, observer: object) -> bool:
        """Execute; an execution that is refused has no cause to report."""
        if self._execute is None:
            return False
        try:
            self._execute(observer=observer)
        except TileError:
            return False
        return True
