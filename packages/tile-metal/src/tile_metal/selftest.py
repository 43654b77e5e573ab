"""Check tile on this Mac: ``python -m tile_metal.selftest``, or ``--dry-run`` without a Mac."""

from __future__ import annotations

import sys

from tile_metal.testing.selftest import main

if __name__ == "__main__":
    sys.exit(main())
