"""The contract between a compiled kernel and the runtime that launches it."""

from tile_runtime.abi.adapter import *  # noqa: F403
