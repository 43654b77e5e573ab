"""The hooks. Each imports its modules when it is called: listing backends stays cheap."""

from __future__ import annotations

from tile_core.manifest import BackendManifest, fingerprint_of


def tile_backend():
    """Return the manifest."""
    return BackendManifest("toyc", ">=1,<2", ("toyc",), fingerprint_of("tile_toyc"), summary="toy C, on the emulator")


def tile_target(text):
    """Return the target; there is but one."""
    from tile_toyc.target import TARGET

    return TARGET if text == TARGET.text else None


def tile_lowerings(target):
    """Return the variants of tile ops: the core's for threads and lanes, and atomics."""
    from tile_core.simt.ops.common import thread_variants
    from tile_toyc.atomics import ToyAtomics

    return thread_variants("toyc", ToyAtomics())


def tile_pipeline(target, spine):
    """Return the passes: the core's for threads, the shared-memory limit, the printer."""
    from tile_core.emit.tail import with_text
    from tile_core.simt.pipelining.stage_limit import limit_stages
    from tile_core.simt.spine import SimtHooks, simt_spine
    from tile_toyc.text import TEXT

    return with_text(simt_spine(spine, SimtHooks()).before("pipeline", limit_stages()), TEXT)


def tile_emulation(target):
    """Return the model with which the emulator executes texts."""
    from tile_toyc.target import DIALECT

    return DIALECT
