"""2:4 sparsity as a format: compress, validate, prune, decompress, and convert metadata.

>>> import numpy as np
>>> from tile_core import sparse
>>> row = np.array([[0, 7, 0, 3, 1, 5, 0, 0, 0, 0, 2, 4, 9, 0, 9, 0]], "float16")
>>> values, metadata = sparse.compress(row)
>>> values.tolist(), metadata.tolist()
([[7.0, 3.0, 1.0, 5.0, 2.0, 4.0, 9.0, 9.0]], [[-29107]])
>>> sparse.decode_metadata(metadata).tolist()
[[1, 3, 0, 1, 2, 3, 0, 2]]
>>> bool((sparse.decompress(values, metadata) == row).all())
True

The format is written down in ``tile_core.sparse.format``, the orders of metadata in ``tile_core.sparse.layouts``.
Arrays of any library in host memory are taken; torch and JAX get arrays of their own back, others NumPy arrays.
"""

from tile_core.sparse.compress import compress, decompress
from tile_core.sparse.format import E_FACTOR_MAP
from tile_core.sparse.interop import from_torch, to_torch
from tile_core.sparse.layouts import make_cutlass_metadata_layout, make_metadata_layout
from tile_core.sparse.metadata import convert, decode_metadata
from tile_core.sparse.prune import prune, randn_semi_sparse, validate

__all__ = [
    "E_FACTOR_MAP",
    "compress",
    "convert",
    "decode_metadata",
    "decompress",
    "from_torch",
    "make_cutlass_metadata_layout",
    "make_metadata_layout",
    "prune",
    "randn_semi_sparse",
    "to_torch",
    "validate",
]
