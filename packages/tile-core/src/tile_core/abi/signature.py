"""The arguments of a compiled kernel as plain data, and the symbols in their shapes."""

from tile_runtime.abi.signature import *  # noqa: F403
