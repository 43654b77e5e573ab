"""Loads, but every other hook raises."""

from tile_core.manifest import BackendManifest


def tile_backend():
    return BackendManifest("broken-raises", api=">=1,<2", target_kinds=("broken-raises",), fingerprint="1")


def tile_target(text):
    return {}["no such architecture"]


def tile_detect():
    raise OSError("driver is too old")


def tile_language():
    raise RuntimeError("no names today")
