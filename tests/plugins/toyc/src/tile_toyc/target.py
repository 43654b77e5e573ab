"""Capabilities of a device of toy C, and the model of its language."""

from __future__ import annotations

from pathlib import Path

from tile_core.emit.dialect import Dialect, Limits
from tile_core.target import Capabilities, Target, every_atomic

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float32", "float64")

CAPABILITIES = Capabilities(
    execution_width=32,
    max_threads=1024,
    shared_bytes=32 * 1024,
    vector_bytes=(1, 2, 4, 8, 16),
    native_dtypes=frozenset({"bool", *INTEGERS, *FLOATS}),
    atomics=every_atomic(INTEGERS, FLOATS),
)

TARGET = Target(text="toyc", kind="toyc", backend="toyc", capabilities=CAPABILITIES)

DIALECT = Dialect(
    "toy C",
    headers=(Path(__file__).parent / "toyc.h",),
    warp=32,
    limits=Limits(CAPABILITIES.max_threads, CAPABILITIES.shared_bytes),
)
