"""Names that this package adds to ``T``."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {}
