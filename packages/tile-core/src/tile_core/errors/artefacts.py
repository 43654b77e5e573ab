"""S6xx, U6xx: exported kernels, and the cache of compiled ones."""

from tile_runtime.errors.artefacts import *  # noqa: F403
