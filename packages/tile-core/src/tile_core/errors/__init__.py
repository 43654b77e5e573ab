"""The catalogue of errors: four families, one file per area.

==============  =====================================================================
``base``        ``TileError`` and the families ``KernelError``, ``UnsupportedError``, ``SetupError``, ``InternalError``
``language``    K1xx  the frontend
``ops``         K2xx  tile ops
``layout``      K3xx  layouts and views
``launch``      K4xx  arguments of a call
``execution``   K44x  undefined behaviour found by checked execution
``sparse``      K5xx  the 2:4 format
``lowering``    U1xx  features that a target lacks
``plugins``     S1xx  backends and their discovery
``setup``       S2xx  this machine
``cli``         S3xx  the command line
``sparse``      S5xx  libraries that sparse matrices come from
``artefacts``   S6xx  exported kernels and the cache on disk
==============  =====================================================================
"""

from tile_core.errors.base import InternalError, KernelError, SetupError, TileError, UnsupportedError, Where

__all__ = ["InternalError", "KernelError", "SetupError", "TileError", "UnsupportedError", "Where"]
