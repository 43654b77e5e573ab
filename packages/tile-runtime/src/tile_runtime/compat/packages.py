"""Table of the published packages, for messages and tracebacks; nothing imports them."""

from __future__ import annotations

# Target kind -> distribution.
KINDS = {
    "cuda": "tile-cuda",
    "metal": "tile-metal",
    "rocm": "tile-rocm-stub",
}

# Runtime -> distribution.
RUNTIMES = {"emulator": "tile-emulator"}

#: Import names of all packages of the repository.
PACKAGES = frozenset(
    name.replace("-", "_")
    for name in ("tile-core", "tile-runtime", "tile-tilelang", "tile-torch", *KINDS.values(), *RUNTIMES.values())
)
