"""NumPy conversion between codes and values of the low-precision types, by integer arithmetic."""

from tile_runtime.numerics.codecs import *  # noqa: F403
