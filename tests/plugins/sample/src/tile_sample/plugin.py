"""The hooks of the sample backend. Whatever it does not say itself, the core's CPU backend does."""

from __future__ import annotations

import dataclasses

from tile_core.lowering.dispatch import select
from tile_core.lowering.variant import Accept, Variant
from tile_core.plugins.manifest import BackendManifest, fingerprint_of
from tile_core.target import Capabilities, Target, split_target


@dataclasses.dataclass(frozen=True)
class SampleOptions:
    """Options of the sample backend."""

    loud: bool = False


class Fill(Variant):
    """Fills as the host does, under a name of its own."""

    name = "sample.fill"
    op = "fill"
    priority = 1000

    def accepts(self, call, ctx):
        inner = select(call, host().tile_lowerings(host_target()), ctx)
        return Accept(f"as {inner.variant.name}", {"inner": inner.variant})

    def lower(self, call, ctx):
        return self.accepts(call, ctx).facts["inner"].lower(call, ctx)


def tile_backend():
    return BackendManifest("sample", ">=1,<2", ("sample",), fingerprint_of("tile_sample"), SampleOptions)


def tile_target(text):
    parts = split_target(text)
    capabilities = Capabilities(max_threads=256, vector_bytes=(4, 8, 16), native_dtypes={"float32", "int32"})
    return Target(str(parts), parts.kind, "sample", capabilities, parts.arch, parts.options)


def tile_language():
    return {"sample_twice": "tile_sample.language:sample_twice"}


def tile_lowerings(target):
    return (Fill(), *host().tile_lowerings(host_target()))


def tile_pipeline(target, spine):
    return host().tile_pipeline(host_target(), spine)


def tile_runtimes(target):
    return host().tile_runtimes(host_target())


def host():
    """The CPU backend's hooks; imported when first needed, so that listing this backend stays cheap."""
    from tile_core.cpu import plugin

    return plugin


def host_target():
    return host().tile_target("cpu")
