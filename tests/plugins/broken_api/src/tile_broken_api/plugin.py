"""Made for plugin API 2, and using a hook that API 1 does not have."""

from tile_core.manifest import BackendManifest


def tile_backend():
    return BackendManifest("broken-api", api=">=2,<3", target_kinds=("broken-api",), fingerprint="1")


def tile_of_the_future(target, weather):
    return None
