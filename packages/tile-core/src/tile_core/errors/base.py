"""The base classes of the error catalogue, in four families."""

from tile_runtime.errors.base import *  # noqa: F403
