"""U3xx: the memory of a block."""

from __future__ import annotations

from tile_core.errors.base import UnsupportedError


class SharedMemoryExceeded(UnsupportedError):
    """The simultaneously live shared buffers of a block exceed the target's shared memory."""

    code = "U301"
    template = (
        "a block needs {found} bytes of shared memory, but the target has {limit}; the largest set in use:\n{table}"
    )
    remedy = "{advice}"
