"""The bit layouts of the float types, from the table of types.

No NumPy and no TVM here: codecs and expressions both read it.
"""

from __future__ import annotations

from tile_runtime.dtype_table import TABLE, Format

EVERY: dict[str, Format] = {row.name: row.form for row in TABLE if row.form is not None}
"""All float types."""

FORMATS: dict[str, Format] = {name: form for name, form in EVERY.items() if name not in ("float32", "float64")}
"""Float types that are encoded by bit arithmetic."""

IEEE: dict[str, Format] = {name: EVERY[name] for name in ("float16", "float32", "float64")}
"""Types that targets compute with."""

WIDE: dict[str, Format] = {name: IEEE[name] for name in ("float32", "float64")}
"""Types that codes are decoded to and encoded from."""
