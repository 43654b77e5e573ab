"""S2xx: what this machine lacks."""

from tile_runtime.errors.setup import *  # noqa: F403
