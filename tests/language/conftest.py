"""Tests of the language run with the verifier after every pass."""

from __future__ import annotations

import os

os.environ.setdefault("TILE_VERIFY_IR", "1")
