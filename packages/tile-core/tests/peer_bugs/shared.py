"""The kit of the neighbouring folder ``ops``: pytest's importlib mode knows no packages above a test folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("tile_ops_kit", Path(__file__).parent.parent / "ops" / "kit.py")
assert _spec is not None
assert _spec.loader is not None
kit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kit)
