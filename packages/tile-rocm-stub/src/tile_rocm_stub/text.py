"""The passes of this backend, up to the source of a finished plan's kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tile_core.abi.kernel_text import KernelText
from tile_core.emit.kernel import launch_of, parameters_of
from tile_core.emit.tail import TextTarget, with_text
from tile_core.ir import calls
from tile_core.numerics.build import cast
from tile_core.passes.legalize_floats import Conversions
from tile_core.passes.spine import Spine
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.stage_limit import limit_stages
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_rocm_stub.emit.atomics import name_of
from tile_rocm_stub.emit.printer import HipPrinter
from tile_rocm_stub.packed import packed_floats
from tile_rocm_stub.target import FP8, NATIVE

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.target import Target


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return a target's passes: the core's for threads, limited stages, then the text.

    The number of pipeline stages is limited by the shared-memory budget.

    Functions that neither HIP's compiler nor its hardware computes alike everywhere are written out (``elementary``),
    so texts need no library.
    """
    passes = simt_spine(spine, SimtHooks()).before("pipeline", limit_stages())
    conversions = _conversions(target.capabilities.fact(FP8))
    text = TextTarget(_emit, native=NATIVE, conversions=conversions, elementary=False, packed=packed_floats())
    return with_text(passes, text)


def split_byte(buffer: Any, indices: list[Any], code: Any, half: str) -> Any:
    """Return the store of half a byte whose other half another thread may store."""
    return calls.execute(name_of(half, "uint8", "relaxed"), [calls.address(buffer, indices, "a"), code])


def _emit(plan: KernelPlan, ctx: Context) -> KernelText:
    return HipPrinter(launch_of(plan), numerics=ctx.options.numerics).kernel(
        plan.program.name, parameters_of(plan), plan.body
    )


def _conversions(fp8: str) -> Conversions:
    """Return the conversions that are instructions; all others are integer arithmetic.

    ``v_cvt_f32_fp8`` and ``v_cvt_f32_bf8`` decode the 8-bit floats of the architecture, every code exactly (CDNA3 ISA,
    "VOP1 Opcodes"). Those to 8-bit floats saturate, which the language does not. C's conversions to 16-bit floats round
    once and keep subnormal numbers: kernels run with ``float_denorm_mode_16_64`` and ``_32`` 3, the default of LLVM's
    "User Guide for AMDGPU Backend". gfx950 has an instruction for two conversions to bfloat16.
    """
    decode = {
        "float16": _decoder("f32_of_f16"),
        f"float8_e4m3{fp8}": _decoder("f32_of_fp8"),
        "float8_e5m2" + ("fnuz" if fp8 == "fnuz" else ""): _decoder("f32_of_bf8"),
    }
    encode = {name: _encoder(f"{short}_of_f32") for name, short in (("float16", "f16"), ("bfloat16", "bf16"))}
    return Conversions(decode=decode, encode=encode, split=split_byte)


def _decoder(name: str) -> Callable[[Any, str], Any]:
    return lambda code, to: cast(to, calls.instruction(name, [code], "float32"))


def _encoder(name: str) -> Callable[[Any], Any]:
    return lambda value: calls.instruction(name, [value], "uint16")
