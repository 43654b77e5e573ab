"""The hooks of the sample backend, which extends the core's CPU backend."""

from __future__ import annotations

import dataclasses

from tile_core.cpu import plugin as host
from tile_core.cpu.options import CpuOptions
from tile_core.lowering.dispatch import select
from tile_core.lowering.variant import Accept, Variant
from tile_core.manifest import BackendManifest, fingerprint_of
from tile_core.target import split_target


@dataclasses.dataclass(frozen=True)
class SampleOptions(CpuOptions):
    """Options of the sample backend: those of the CPU, and one of its own."""

    loud: bool = False


class Fill(Variant):
    """Fills as the host does, under a name of its own."""

    name = "sample.fill"
    op = "fill"
    priority = 1000

    def accepts(self, call, ctx):
        inner = select(call, host.tile_lowerings(ctx.target), ctx).variant
        return Accept(f"as {inner.name}", {"inner": inner})

    def lower(self, call, ctx):
        return self.accepts(call, ctx).facts["inner"].lower(call, ctx)


def tile_backend():
    return BackendManifest("sample", ">=1,<2", ("sample",), fingerprint_of("tile_sample"), SampleOptions)


def tile_target(text):
    arch = split_target(text).arch
    cpu = host.tile_target(f"cpu:{arch}" if arch else "cpu")
    small = dataclasses.replace(cpu.capabilities, max_threads=256)
    text = f"sample:{cpu.arch}"
    return dataclasses.replace(cpu, text=text, kind="sample", backend="sample", capabilities=small)


def tile_language():
    return {"sample_twice": "tile_sample.language:sample_twice"}


def tile_lowerings(target):
    return (Fill(), *host.tile_lowerings(target))


def tile_pipeline(target, spine):
    return host.tile_pipeline(target, spine)


def tile_runtimes(target):
    return host.tile_runtimes(target)


def tile_cases(target):
    return {"twice": "tile_sample.cases:units"}
