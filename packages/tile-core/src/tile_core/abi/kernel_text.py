"""Facts of an emitter about a text: launch parameters, and the source of each line."""

from tile_runtime.abi.kernel_text import *  # noqa: F403
