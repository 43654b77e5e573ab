"""Weights of 4 bits in the order in which lanes of warps multiply.

>>> import numpy as np
>>> import tile_core as tile
>>> codes = np.arange(2 * 64, dtype="uint8").reshape(2, 64)  # two rows of 128 elements, two in each byte
>>> packed = tile.pack_weights(codes)
>>> packed.dtype.name, packed.shape
('uint32', (2, 16))
>>> bool((tile.unpack_weights(packed) == codes).all())
True

``tile.with_packed_weights(program, "W")`` takes them in place of a parameter of 4-bit elements; the text stays.
"""

from tile_core.weights.arrays import pack_weights, unpack_weights
from tile_core.weights.program import with_packed_weights

__all__ = ["pack_weights", "unpack_weights", "with_packed_weights"]
