"""The backend's answers to the plugin contract (see ``tile_core/plugins/hookspecs.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tile_core.manifest import BackendManifest, fingerprint_of

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def tile_backend() -> BackendManifest:
    """Return the manifest."""
    from tile_rocm_stub.options import RocmOptions
    from tile_rocm_stub.target import RECORDS

    return BackendManifest(
        name="rocm",
        api=">=1,<2",
        target_kinds=("rocm",),
        fingerprint=fingerprint_of("tile_rocm_stub", "tile-rocm-stub"),
        architectures=tuple(f"rocm:{name}" for name in RECORDS),
        options=RocmOptions,
        summary="AMD Instinct GPUs (gfx942, gfx950): text and emulation, no launches",
    )


def tile_target(text: str) -> Target | None:
    """Return the target of ``rocm:gfx942`` or ``rocm:gfx950``; ``rocm`` alone is the former."""
    from tile_rocm_stub.target import parse_target

    return parse_target(text)


def tile_lowerings(target: Target) -> Sequence[Variant]:
    """Return the variants that the target can run."""
    from tile_rocm_stub.ops import variants

    found: Sequence[Variant] = variants(target)
    return found


def tile_pipeline(target: Target, spine: Any) -> Any:
    """Return the core's passes with this backend's tail."""
    from tile_rocm_stub.text import pipeline

    return pipeline(target, spine)


def tile_runtimes(target: Target) -> Sequence[Any]:
    """Return the adapter that rejects launches and explains how to compile the text."""
    from tile_rocm_stub.runtime import TextOnlyAdapter

    return (TextOnlyAdapter(target),)


def tile_emulation(target: Target) -> Any:
    """Return the model of the language and its instructions."""
    from tile_rocm_stub.emulation import dialect

    return dialect(target)
