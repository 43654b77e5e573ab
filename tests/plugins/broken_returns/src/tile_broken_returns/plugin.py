"""Loads, but every other hook returns something that the contract does not allow."""

from tile_core.manifest import BackendManifest


def tile_backend():
    return BackendManifest("broken-returns", api=">=1,<2", target_kinds=("broken-returns",), fingerprint="1")


def tile_target(text):
    return text.upper()


def tile_detect():
    return True


def tile_language():
    return ["rubbish"]
