"""Tensor descriptors: opaque constants of a launch through which instructions address boxes of a tensor."""

from tile_runtime.abi.descriptor import *  # noqa: F403
