"""``python -m tile_core.cli`` is the command ``tile``."""

from __future__ import annotations

from tile_core.cli import main

if __name__ == "__main__":
    main()
