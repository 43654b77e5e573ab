"""``python -m tile_tilelang SCRIPT [ARGUMENTS]``: run a script written for TileLang on tile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tile_core.errors import TileError
from tile_tilelang.running import also_for, compiled, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tile_tilelang", description="Run a script that imports tilelang, unmodified, on tile."
    )
    parser.add_argument("--target", help="compile all kernels for this target, whatever they name: cpu, cuda, metal")
    parser.add_argument("--also", metavar="TARGET", help="also compile every kernel to text for this one")
    parser.add_argument("script", help="path of the script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    given = parser.parse_args(arguments)
    try:
        with compiled() as kernels:
            run(given.script, given.arguments, given.target)
    except TileError as error:
        print(f"error{error}", file=sys.stderr)
        return 1
    refusals = [] if given.also is None else also_for(kernels, given.also)
    for refusal in refusals:
        print(refusal, file=sys.stderr)
    return 1 if refusals else 0


if __name__ == "__main__":
    sys.exit(main())
