"""Dialects of the tests, and a short function to run a kernel in one."""

import re
from pathlib import Path

import numpy as np

import tile_emulator
from tile_core.abi.kernel_text import LaunchFacts, LineMap, ParamFact
from tile_core.emit.dialect import Dialect, Limits
from tile_core.errors import Where

HERE = Path(__file__).parent
SLAB = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


def prepare(text):
    """Make the launch's shared memory a pointer, and shared arrays a section."""
    text = SLAB.sub(r"\1* \2 = (\1*)simt::block->shared;", text)
    return re.sub(r"\b__shared__\b", "SIMT_SHARED", text)


MINI = Dialect("mini", (HERE / "mini.h",), prepare=prepare)
MINI_PROXIES = Dialect("mini", (HERE / "mini.h",), prepare=prepare, proxies=True)
MINI_CLUSTERS = Dialect("mini", (HERE / "mini.h",), prepare=prepare, limits=Limits(max_cluster=8))


def mini_of(warp):
    """Return the dialect with warps of the given size."""
    return Dialect("mini", (HERE / "mini.h",), warp=warp, prepare=prepare)


NAMES = {"float32": "float", "int32": "int"}


def call_cells(facts):
    own = [f"({NAMES[p.dtype]}*)args[{i}]" for i, p in enumerate(facts.params) if p.kind == "pointer"]
    position = "simt::self->index"
    return f"{facts.entry}({', '.join([*own, f'uint3{{{position}.x, {position}.y, {position}.z}}'])});"


CELLS = Dialect("cells", (HERE / "cells.h",), warp=16, call=call_cells)

DTYPES = {"float": "float32", "int": "int32", "float*": "float32", "int*": "int32", "char*": "int8"}


def facts_of(text, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, **more):
    """Facts of the only kernel of a text; parameters that are const pointers are read."""
    entry, inside = re.search(r"__global__ void (\w+)\((.*?)\)", text, re.DOTALL).groups()
    params = []
    for part in filter(None, (p.strip() for p in inside.split(","))):
        kind, name = part.replace("const ", "").rsplit(" ", 1)
        access = "read" if "const " in part else "write" if name.startswith("out") else "readwrite"
        pointer = "*" in kind
        params.append(ParamFact(name, "pointer" if pointer else "scalar", DTYPES[kind], access, 16 if pointer else 0))
    origins = [Where("kernel.py", 100 + n) if t.strip("} ") else None for n, t in enumerate(text.splitlines(), 1)]
    return LaunchFacts(entry, tuple(params), grid, block, shared_bytes, line_map=LineMap.of(origins), **more)


def run(text, args, dialect=MINI, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, facts=None, **how):
    facts = facts or facts_of(text, grid, block, shared_bytes)
    return tile_emulator.run(text, facts, args, dialect, **how)


def floats(*shape):
    return np.full(shape, np.nan, np.float32)


def kinds(result):
    return sorted({report.kind for report in result.reports})
