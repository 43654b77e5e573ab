"""S1xx: backends and their discovery."""

from tile_runtime.errors.plugins import *  # noqa: F403
