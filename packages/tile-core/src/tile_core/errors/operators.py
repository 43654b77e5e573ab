"""K66x, U66x, S66x: refused operators of torch, JAX and MLX, and refused calls of them."""

from tile_runtime.errors.operators import *  # noqa: F403
