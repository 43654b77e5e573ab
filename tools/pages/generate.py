"""All generated pages."""

from __future__ import annotations

from functools import cache

from pages import names, plots, programs, support_page


@cache
def generated() -> dict[str, str]:
    """Return the Markdown of all generated pages by their paths below ``docs``."""
    return {**names.pages(), **support_page.pages(), **plots.pages(), **programs.pages()}
