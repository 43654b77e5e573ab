"""Fixtures: vectorized elementwise kernels on the CPU, and hard values for float formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.numerics.codecs import decode
from tile_runtime.numerics.formats import FORMATS

LANES = 16


@pytest.fixture
def elementwise() -> Any:
    """``elementwise(build, input types, output type, lanes)``: a compiled map over NumPy arrays."""
    return _elementwise


@pytest.fixture
def compile_func() -> Any:
    """Compile one function for the machine at hand."""
    return _compile_func


@pytest.fixture
def edge_values() -> Any:
    """``edge_values(format name, seed)``: float32 values that are hard to convert to that format."""
    return _edge_values


def _elementwise(build: Callable[..., Any], inputs: list[str], output: str, lanes: int = LANES) -> Callable[..., Any]:
    """Compile ``out[i] = build(in0[i], ...)`` in a vectorized loop, as a function of arrays."""
    n = tirx.Var("n", "int32")
    size = (n,)  # a multiple of lanes
    params = [tirx.decl_buffer(size, d, f"A{k}", layout=None, data_alignment=1) for k, d in enumerate(inputs)]
    out = tirx.decl_buffer(size, output, "C", layout=None, data_alignment=1)
    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    index = [i * lanes + j]
    store = tirx.BufferStore(out, build(*[tirx.BufferLoad(p, index) for p in params]), index)
    inner = tirx.For(j, 0, lanes, tirx.ForKind.VECTORIZED if lanes > 1 else tirx.ForKind.SERIAL, store)
    func = tirx.PrimFunc([*params, out], tirx.For(i, 0, n // lanes, tirx.ForKind.SERIAL, inner))
    return _run_func(func, output, lanes)


def _run_func(func: Any, output: str, lanes: int = LANES) -> Callable[..., Any]:
    """Compile a function of equally long vectors whose last parameter is the output."""
    compiled = _compile_func(func)

    def run(*arrays: Any) -> Any:
        count = len(arrays[0])
        padded = [np.resize(a, -(-count // lanes) * lanes) for a in arrays]
        result = np.full(len(padded[0]), 0xA5 if output.startswith("uint") else 77, output)
        compiled(*padded, result)
        return result[:count]

    return run


def _compile_func(func: Any) -> Callable[..., Any]:
    """Compile a function for the machine at hand."""
    target = {"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()}
    executable = tvm.compile(ir.IRModule({"main": func.with_attr("global_symbol", "main")}), target=target)
    return executable["main"]  # type: ignore[no-any-return]


def _edge_values(name: str, seed: int) -> np.ndarray:
    """float32: every value, every midpoint, both float32 neighbours of each, specials and random bit patterns."""
    with np.errstate(all="ignore"):
        values = np.unique(decode(np.arange(1 << FORMATS[name].bits), name, "float64"))
        values = values[np.isfinite(values)]
        beyond = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1.0, 2.0])
        exact = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond, -beyond]).astype(np.float32)
        around = np.concatenate(
            [exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, -np.float32(np.inf))]
        )
    bits = np.array([0x7FFF8C22, 0x7F800001, 0xFF800001, 0x7FC00000, 0xFFFFFFFF, 1, 0x80000001, 0x7FFFFF, 0x7F7FFFFF,
                     0xFF7FFFFF, 0x7F800000, 0xFF800000, 0, 0x80000000, 0x00400000, 0x00400001], np.uint32)  # fmt: skip
    random = np.random.default_rng(seed).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    return np.concatenate([around, bits.view(np.float32), random.view(np.float32)])
