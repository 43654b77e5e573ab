"""Short ways to run texts with the models."""

import re

import numpy as np

import tile_emulator
from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..vectors import table

SM90 = Arch(90, "a")
DTYPES = {
    "f16": "uint16",
    "float": "float32",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned short": "uint16",
    "double": "float64",
}


def run_plan(vectors, arrays, arch=SM90, **how):
    """Run a group of vectors on the arrays of a plan."""
    access = {"in": "read", "plan": "read", "out": "write", "memory": "readwrite"}
    params = tuple(ParamFact(name, "pointer", str(arrays[name].dtype), access[name], 16) for name in table.PARAMS)
    grid = (len(arrays["plan"]) // 4, 1, 1)
    facts = LaunchFacts(table.ENTRY, params, grid, (table.LANES, 1, 1), table.SHARED_BYTES)
    given = {name: arrays[name] for name in table.PARAMS}
    return tile_emulator.run(table.text_of(vectors), facts, given, dialect_of(arch), **how)


def run(text, args, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, arch=SM90, **how):
    """Run the only kernel of a text; const pointers are inputs, those called out outputs."""
    pattern = r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\((.*?)\) \{"
    entry, inside = re.search(pattern, text, re.DOTALL).groups()
    params = []
    for part in filter(None, (p.strip() for p in inside.split(","))):
        kind, name = part.replace("const ", "").replace("__restrict__ ", "").rsplit(" ", 1)
        access = "read" if "const " in part else "write" if name.startswith("out") else "readwrite"
        pointer = "*" in kind
        dtype = DTYPES[kind.rstrip("*")]
        params.append(ParamFact(name, "pointer" if pointer else "scalar", dtype, access, 16 if pointer else 0))
    facts = LaunchFacts(entry, tuple(params), grid, block, shared_bytes)
    return tile_emulator.run(text, facts, args, dialect_of(arch), **how)


def run_copy(copy, arch=SM90, **how):
    """Run a kernel of ``vectors/copies.py``."""
    made = copy.kernel()
    return tile_emulator.run(made.text, made.facts, copy.arrays, dialect_of(arch), **how)


def kinds(result):
    return {report.kind for report in result.reports}


def report_text(result):
    return "\n".join(str(report) for report in result.reports)


def poison(*shape, dtype="float32"):
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 0x7FFF, dtype)
