"""Conformance suite without launches: legal kernels compile and illegal ones are rejected, on any machine.

Two names stand where a runtime's name stands: ``text`` runs the passes and generates the source code; ``build`` also
compiles that with the toolchain of the target's own runtime. Neither touches a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.setup import NoToolchain

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.plugins.manager import Plugins
    from tile_core.target import Target

TEXT, BUILD = "text", "build"
MODES = (TEXT, BUILD)


def compile_only(program: Program, ctx: Context, plugins: Plugins, mode: str) -> None:
    """Generate a program's source code, and for ``build`` compile that too.

    Parameters
    ----------
    program
        The program.
    ctx
        Of the target.
    plugins
        The backends.
    mode
        ``"text"`` or ``"build"``.

    Raises
    ------
    NoToolchain
        ``build``, and no runtime of the target's backend compiles source code on this machine.
    TileError
        What compiling raises.
    """
    from tile_core.compiler import lower, signature_of, source_text
    from tile_core.passes.check_reach import check_reach
    from tile_runtime.loaders import ask_adapter

    builder = toolchain_of(plugins, ctx.target) if mode == BUILD else None
    if signature_of(program).index_bits == 32:
        check_reach(program, ctx.capabilities.offset_bits)
    for stage in program.stages:
        plan = lower(stage, ctx, plugins)
        if builder is not None:
            ask_adapter(builder, "build", plan.lowered)
        elif not source_text(plan).strip():
            raise AssertionError("the backend generated no source code")


def toolchain_of(plugins: Plugins, target: Target) -> RuntimeAdapter:
    """Return the first of a target's own runtimes whose toolchain is installed.

    Raises
    ------
    NoToolchain
        There is none.
    RuntimeBroken
        One of them is broken.
    """
    from tile_core.errors import TileError
    from tile_core.errors.setup import RuntimeBroken
    from tile_runtime.loaders import ask_adapter

    reasons = []
    for adapter in plugins.runtimes(target):
        try:
            if ask_adapter(adapter, "toolchain"):
                found: RuntimeAdapter = adapter
                return found
        except RuntimeBroken:
            raise
        except TileError as error:
            reasons.append(error.message)
    raise NoToolchain(target=target.text, reason="; ".join(reasons) or "none of its runtimes compiles source code")
