"""K4xx, U4xx: errors of the arguments of a call, of launches, and of devices."""

from tile_runtime.errors.launch import *  # noqa: F403
