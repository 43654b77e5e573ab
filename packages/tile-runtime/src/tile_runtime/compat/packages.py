"""Table of the published packages, for messages and tracebacks; nothing imports them."""

from __future__ import annotations

# Target kind -> distribution.
KINDS = {
    "cuda": "tile-cuda",
    "metal": "tile-metal",
    "rocm": "tile-rocm-stub",
}

#: Distributions that others require beside the core, by those.
_REQUIRED = {"tile-cuda": "tile-cuda-runtime"}

# Runtime -> distribution.
RUNTIMES = {"emulator": "tile-emulator"}

#: Import names of all packages of the repository.
PACKAGES = frozenset(
    name.replace("-", "_")
    for name in (
        *("tile-core", "tile-jax", "tile-runtime", "tile-tilelang", "tile-torch"), *KINDS.values(), *RUNTIMES.values(),
        *_REQUIRED.values(),
    )
)  # fmt: skip


def folders_of(distribution: str) -> str:
    """Return a distribution's folders in a checkout, as arguments of ``pip install``."""
    return " ".join(f"packages/{name}" for name in (_REQUIRED.get(distribution), distribution) if name)
