"""One function that texts may call."""

from __future__ import annotations

from tile_core.records import dataclass

AS_WRITTEN = (
    "#if __METAL_VERSION__ >= 320", "#pragma METAL fp math_mode(safe)", "#endif", "#pragma METAL fp contract(off)",
)  # fmt: skip
"""Lines at the start of a text or function that disable rewriting of float operations.

MSL 3.1 has no math modes, and rejects unknown pragmas. Sources: Metal Shading Language Specification,
"Math Modes"; inside of functions as in llama.cpp's ``quantize_*``.
"""


PRECISE = AS_WRITTEN[:3]
"""Lines at the start of a text whose float operations may only be fused, as Metal does without a pragma."""


@dataclass(frozen=True)
class Helper:
    """A helper function.

    Attributes
    ----------
    name
        Its name.
    text
        Its whole text, in lines.
    needs
        Names of helper functions that it calls.
    headers
        Headers that it needs besides ``metal_stdlib``.
    exact
        Whether its result depends on operations being done as written: it reassociates nothing where others may.
    """

    name: str
    text: str
    needs: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    exact: bool = False

    def lines(self, is_strict: bool) -> list[str]:
        """Return the lines of its text.

        An exact function includes the lines that disable rewriting, unless the whole text is strict.
        """
        head, *rest = self.text.splitlines()
        return [head, *(AS_WRITTEN if self.exact and not is_strict else ()), *rest]
