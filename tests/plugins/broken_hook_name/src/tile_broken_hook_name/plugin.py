"""Implements tile_lowering, which is spelt tile_lowerings."""

from tile_core.manifest import BackendManifest


def tile_backend():
    return BackendManifest("broken-hook-name", api=">=1,<2", target_kinds=("broken-hook-name",), fingerprint="1")


def tile_lowering(target):
    return ()
