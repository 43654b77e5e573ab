"""Capabilities of every device that the runtime accepts."""

from __future__ import annotations

from tile_core.target import ABSENT, Capabilities, Target, every_atomic

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float32", "float64")
EXTENSIONS = ("cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics")

#: 32 KiB is the least local memory of a full device (OpenCL 1.2, table 4.3).
CAPABILITIES = Capabilities(
    max_threads=1024,
    shared_bytes=32 * 1024,
    vector_bytes=(1, 2, 4, 8, 16),
    native_dtypes=frozenset({"bool", *INTEGERS, *FLOATS}),
    atomics=every_atomic(INTEGERS, FLOATS),
    extra=ABSENT.value(("warps",)),
)

TARGET = Target(text="opencl", kind="opencl", backend="opencl", capabilities=CAPABILITIES)
