"""The CPU backend's answers to the plugin contract (see ``plugins/hookspecs.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tile_core.cpu.options import CpuOptions
from tile_core.manifest import BackendManifest, fingerprint_of
from tile_core.target import Target, split_target

if TYPE_CHECKING:
    from tile_core.cpu.runtime.host import HostAdapter
    from tile_core.lowering.variant import Variant
    from tile_core.passes.spine import Spine


def tile_backend() -> BackendManifest:
    """Return the manifest."""
    return BackendManifest(
        name="cpu",
        api=">=1,<2",
        target_kinds=("cpu",),
        options=CpuOptions,
        fingerprint=fingerprint_of("tile_core", "tile-core"),
        summary="vector code for this machine's cores, and the meaning that every other target is tested against",
    )


def tile_target(text: str) -> Target | None:
    """Return the target of ``cpu`` (this machine) or ``cpu:<LLVM's name of a processor>``."""
    parts = split_target(text)
    if parts.kind != "cpu":
        return None
    from tile_core.cpu.target import make_target

    return make_target(parts.arch)


def tile_detect() -> Target | None:
    """Return this machine's target."""
    return tile_target("cpu")


def tile_lowerings(target: Target) -> Sequence[Variant]:
    """Return the CPU's variants, including the plain loops of every op."""
    from tile_core.cpu.ops import variants

    return variants(target)


def tile_pipeline(target: Target, spine: Spine) -> Spine:
    """Return the core's spine with the CPU's tail."""
    from tile_core.cpu.pipeline import pipeline

    return pipeline(target, spine)


def tile_runtimes(target: Target) -> tuple[HostAdapter, ...]:
    """Return the adapter that calls functions in this process."""
    from tile_core.cpu.runtime.host import HostAdapter

    return (HostAdapter(target),)


def tile_emulation(target: Target) -> Any:
    """Return nothing: the target is its own model."""
