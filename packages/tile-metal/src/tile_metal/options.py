"""Options of the Metal backend, passed in the attributes of launch facts."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.numerics.levels import FAST, STANDARD, NumericsOptions, merged_levels
from tile_core.records import dataclass
from tile_core.renamed_options import renamed_options

FAST_MATH = "metal.fast_math"


@renamed_options(**merged_levels("fast_math"))
@dataclass(frozen=True)
class MetalOptions(NumericsOptions):
    """How the Metal backend compiles.

    Parameters
    ----------
    numerics
        Level of numerics, see ``NumericsOptions``. ``"fast"`` also lets the compiler assume finite floats. At every
        level subnormals may be flushed to zero (MSL specification, "Numerical Compliance").
    line_info
        Name the user's line in a comment wherever it changes.
    """

    line_info: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.line_info, bool):
            raise TypeError("line_info is True or False")

    def attributes(self) -> dict[str, bool | int | float | str]:
        """Return the options that a runtime needs: the fields that are not at default."""
        return {FAST_MATH: True} if self.is_fast else {}

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> MetalOptions:
        """Return the options of a text from the attributes of its launch facts."""
        return MetalOptions(numerics=FAST if attributes.get(FAST_MATH, False) else STANDARD)
