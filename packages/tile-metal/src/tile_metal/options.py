"""Options of the Metal backend, passed in the attributes of launch facts."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.records import dataclass

FAST_MATH = "metal.fast_math"


@dataclass(frozen=True)
class MetalOptions:
    """How the Metal backend compiles.

    Parameters
    ----------
    fast_math
        Allow approximate float32 functions, and let the compiler assume finite floats. In either mode subnormals may be
        flushed to zero (MSL specification, "Numerical Compliance").
    line_info
        Name the user's line in a comment wherever it changes.
    """

    fast_math: bool = False
    line_info: bool = False

    def __post_init__(self) -> None:
        for name in ("fast_math", "line_info"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")

    def attributes(self) -> dict[str, bool | int | float | str]:
        """Return the options that a runtime needs: the fields that are not at default."""
        return {FAST_MATH: True} if self.fast_math else {}

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> MetalOptions:
        """Return the options of a text from the attributes of its launch facts."""
        return MetalOptions(fast_math=bool(attributes.get(FAST_MATH, False)))
