"""The hooks. Each imports its modules when it is called: listing backends stays cheap."""

from __future__ import annotations

from tile_core.manifest import BackendManifest, fingerprint_of


def tile_backend():
    """Return the manifest."""
    summary = "OpenCL C 1.2, on any device with fp64 and 64-bit atomics"
    return BackendManifest("opencl", ">=1,<2", ("opencl",), fingerprint_of("tile_opencl"), summary=summary)


def tile_target(text):
    """Return the target; there is but one."""
    from tile_opencl.target import TARGET

    return TARGET if text == TARGET.text else None


def tile_lowerings(target):
    """Return the ways to lower tile ops: those that need threads only, and atomics."""
    from tile_core.simt.ops.common import thread_variants
    from tile_opencl.atomics import OpenClAtomics

    return thread_variants("opencl", OpenClAtomics())


def tile_pipeline(target, spine):
    """Return the passes: the core's for threads, the limit of local memory, the printer."""
    from tile_core.emit.tail import with_text
    from tile_core.simt.pipelining.stage_limit import limit_stages
    from tile_core.simt.spine import SimtHooks, simt_spine
    from tile_opencl.text import TEXT

    return with_text(simt_spine(spine, SimtHooks()).before("pipeline", limit_stages()), TEXT)


def tile_runtimes(target):
    """Return the one runtime."""
    from tile_opencl.runtime import OpenClAdapter

    return (OpenClAdapter(),)
