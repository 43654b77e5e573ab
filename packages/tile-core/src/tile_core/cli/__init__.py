"""The command line: ``tile targets``, ``doctor``, ``compile``, ``run``, ``explain``, ``tune`` and others.

One file per command; each imports what it needs when it runs, so that ``tile --help`` loads neither TVM nor a backend.
"""

from __future__ import annotations


def main() -> None:
    """Run the command ``tile`` and exit with its status."""
    from tile_core.cli.app import run

    raise SystemExit(run())
