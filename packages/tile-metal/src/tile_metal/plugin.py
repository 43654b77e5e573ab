"""The backend's answers to the plugin contract (see ``tile_core/plugins/hookspecs.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.manifest import BackendManifest, fingerprint_of
from tile_metal.options import MetalOptions

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.emit.dialect import Dialect
    from tile_core.lowering.tilings import TilingModel
    from tile_core.lowering.variant import Variant
    from tile_core.passes.spine import Spine
    from tile_core.target import Target


def tile_backend() -> BackendManifest:
    """Return the manifest."""
    from tile_metal.target import RECORDS

    return BackendManifest(
        name="metal",
        api=">=1,<2",
        target_kinds=("metal",),
        options=MetalOptions,
        fingerprint=fingerprint_of("tile_metal", "tile-metal"),
        architectures=tuple(f"metal:{name}" for name in RECORDS),
        summary="Apple GPUs from the M1 on",
    )


def tile_target(text: str) -> Target | None:
    """Return the target of ``metal`` or ``metal:metal4``."""
    from tile_metal.target import parse_target

    return parse_target(text)


def tile_detect() -> Target | None:
    """Return the target of this machine's GPU, if it is a Mac's."""
    from tile_metal.target import detect

    return detect()


def tile_language() -> Mapping[str, str]:
    """Add the ops that guarantee an instruction."""
    names = (
        *("simdgroup_gemm", "simdgroup_gemm_sp", "cooperative_tensor_gemm", "cooperative_tensor_gemm_sp"),
        *("simdgroup_fill", "simdgroup_load", "simdgroup_multiply_accumulate", "simdgroup_store"),
    )
    return {name: f"tile_metal.language:{name}" for name in names}


def tile_lowerings(target: Target) -> Sequence[Variant]:
    """Return the variants that the target can run."""
    from tile_metal.ops import variants

    return variants(target)


def tile_pipeline(target: Target, spine: Spine) -> Spine:
    """Return the core's spine with this backend's tail."""
    from tile_metal.pipeline import pipeline

    return pipeline(target, spine)


def tile_tilings(target: Target) -> TilingModel:
    """Return the estimates of products on the chips' published rates."""
    from tile_metal.tilings import MetalTilings

    return MetalTilings()


def tile_runtimes(target: Target) -> tuple[RuntimeAdapter, ...]:
    """Return the adapter that launches through the library of the arrays."""
    from tile_metal.runtime import adapters

    return adapters(target)


def tile_emulation(target: Target) -> Dialect:
    """Return the model of the language."""
    from tile_metal.emulation import dialect
    from tile_metal.lint import refusals

    return replace(dialect(target), refusals=refusals)
