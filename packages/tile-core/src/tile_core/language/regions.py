"""``T.numerics``: the level of numerics of a part of a kernel."""

from __future__ import annotations

from types import TracebackType

from tile_core.errors.language import BadArgument
from tile_core.ir.attributes import NUMERICS
from tile_core.numerics.levels import LEVELS
from tile_core.values.builder import Builder, current
from tile_core.values.checks import shown

__all__ = ["numerics"]


class NumericsRegion:
    """Operations with a level of numerics of their own: ``with T.numerics("strict"):``.

    The option ``numerics`` of the target is the level of all others. An operation belongs to the innermost region
    around the text that states it, in whatever function of Python or ``T.macro`` that is; its operands keep the level
    of the place where they were computed. So in ``"strict"`` every addition, subtraction, multiplication and division
    of floats rounds once, as written, whatever computed its operands and whatever uses its result; products, reductions
    and scans add in ascending order. ``"standard"`` in a kernel with ``numerics="fast"`` has precise functions and
    quotients; ``"fast"`` has approximate ones, where the target has any.

    Compilers translate a whole text at one level. In a kernel with ``numerics="strict"`` nothing is fused, in looser
    regions neither; a kernel with ``numerics="fast"`` and a stricter region keeps subnormal numbers everywhere.
    ``explain`` says so.

    Parameters
    ----------
    level
        ``"strict"``, ``"standard"`` or ``"fast"``, see ``tile_core.numerics.levels``.

    Raises
    ------
    OutsideKernel, BadArgument
        Outside a kernel; for another level.

    Examples
    --------
    A compensated sum, whose corrections are zero where operations are fused or reordered::

        with T.numerics("strict"):
            y = x - lost[0]
            t = total[0] + y
            lost[0] = (t - total[0]) - y
            total[0] = t
    """

    def __init__(self, level: str) -> None:
        self.builder: Builder = current("T.numerics")
        if not isinstance(level, str) or level not in LEVELS:
            legal = " or ".join(map(repr, LEVELS))
            raise BadArgument(
                function="numerics", name="level", found=shown(level), expected=legal,
                instead="name a level, or leave the region out: the option numerics states the kernel's level",
            )  # fmt: skip
        self.level = level

    def __enter__(self) -> None:
        self.builder.regions.append(self.level)
        note_regions(self.builder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.builder.regions.pop()


def note_regions(builder: Builder) -> None:
    """Add the levels of the open regions to the annotations of the launch."""
    if builder.regions:
        builder.attrs[NUMERICS] = list(dict.fromkeys((*builder.attrs.get(NUMERICS, ()), *builder.regions)))


numerics = NumericsRegion
NumericsRegion.__init__.__qualname__ = "numerics.__init__"  # the public name, which Python's own errors print
