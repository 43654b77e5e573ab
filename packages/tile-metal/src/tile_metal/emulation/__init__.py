"""Model of MSL with which the emulator runs emitted text on a host.

The text is compiled as it is, with headers that stand for the language and its library (``headers/metal_*.h``). What no
header can do is rewritten (``rewrite.py``): includes, threadgroup memory, the attributes of a kernel's parameters.

Not modelled: address spaces (`tile_metal.lint` checks them before), last bits of approximate functions and of
accumulation in matrix products, subnormals that a device may flush to zero, and barriers that order one kind of memory:
one of threadgroup memory orders all of it here, one of device memory alone is reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.dtypes import dtype
from tile_core.emit.dialect import Dialect, Limits
from tile_metal.emulation.rewrite import prepare_with, refusal
from tile_metal.target import MOST_THREADS, SHARED_BYTES, SIMD, TENSOR_OPS

if TYPE_CHECKING:
    from tile_core.target import Target

HEADERS = Path(__file__).parent / "headers"


def dialect(target: Target) -> Dialect:
    """Return the dialect of a target.

    Parameters
    ----------
    target
        Its capabilities determine the limits of a threadgroup, and whether there are tensor operations.

    Returns
    -------
    Dialect
        What ``tile_emulator.run`` needs.
    """
    capabilities = target.capabilities
    limits = Limits(capabilities.max_threads, capabilities.shared_bytes)
    return dialect_of(limits, bool(capabilities.fact(TENSOR_OPS)))


def dialect_of(limits: Limits | None = None, tensor_ops: bool = False) -> Dialect:
    """Return the dialect for given threadgroup limits, with or without Metal 4's tensor operations."""

    def prepare(text: str) -> str:
        return prepare_with(text, tensor_ops)

    version = 400 if tensor_ops else 310
    flags: tuple[str, ...] = (f"-D__METAL_VERSION__={version}", "-fsigned-char", "-fno-math-errno")
    if tensor_ops:
        # The descriptor of a product is a template argument.
        flags += ("-std=c++20", "-DMETAL_TENSOR_OPS=1")
    headers = (HEADERS / "metal_all.h",)
    return Dialect(
        "MSL", headers, SIMD, prepare, call, limits=limits or Limits(MOST_THREADS, SHARED_BYTES), flags=flags
    )


def call(facts: LaunchFacts) -> str:
    """Return the statements that call a kernel.

    Arrays are its first buffers. Scalars are the fields of one structure in the last buffer, or each has a buffer of
    its own in the order of the parameters, depending on the types of the kernel's parameters.
    """
    rows, offset, alignment, scalars = [], 0, 1, 0
    for param in facts.params:
        if param.kind == "opaque":
            return refusal(f"the parameter {param.name} is of a kind that has no model")
        size = dtype(param.dtype).numpy().itemsize
        if param.kind == "pointer":
            rows.append("{false, 0, 0}")
            continue
        offset += -offset % size
        rows.append(f"{{true, {size}, {offset}}}")
        offset, alignment, scalars = offset + size, max(alignment, size), scalars + 1
    offset += -offset % alignment
    entry = facts.entry
    listed = ", ".join([*rows, "{false, 0, 0}"])
    return (
        f"static const metal_model::Parameter parameters[] = {{{listed}}}; "
        f"metal_model::launch<{len(facts.params)}, {scalars}, {offset}>"
        f"(&{entry}, simt_sources_{entry}, simt_threads_{entry}, parameters, args);"
    )
