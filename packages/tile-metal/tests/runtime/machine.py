"""Common parts of both doubles: a text is parsed, and executed by the emulator."""

import ctypes
import dataclasses
import re
import struct

import numpy as np
from metal_lint import lint

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.dtypes import DTYPES
from tile_emulator import run
from tile_metal.emulation import dialect_of
from tile_metal.versions import compiled_language, version_of

CHECKS = ("bounds", "race", "align")

MSL = {
    "bool": "bool", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "half": "float16", "bfloat": "bfloat16", "float": "float32",
}  # fmt: skip
"""Element types by their names in MSL."""

BUILTINS = {
    "threadgroup_position_in_grid": "uint3", "thread_position_in_threadgroup": "uint3",
    "thread_position_in_grid": "uint3", "thread_index_in_simdgroup": "uint",
}  # fmt: skip

_handles = []


class Violation(AssertionError):
    """A broken API contract; real libraries would fail, crash or compute something else."""


def need(holds, text):
    """Raise unless something holds."""
    if not holds:
        raise Violation(text)


class Refused(Exception):
    """Apple's compiler refuses a text because it is too old for it."""


def compiles(text, library="mlx", version="0.32.4", system=(15, 1)):
    """Raise for what only Apple's compiler would find, such as casts between spaces of addresses.

    Names that MLX declares are not findings: MLX declares them there. Excess threadgroup memory compiles; the pipeline
    reports its size. The library requests a language version when it is compiled.
    """
    need(text.isascii(), "hosts pass texts as ASCII: there is no source, and the process ends")
    language = compiled_language(library, version_of(version), system)
    if "MetalPerformancePrimitives" in text and language < (4, 0):
        raise Refused(f"fatal error: 'MetalPerformancePrimitives/MetalPerformancePrimitives.h' of MSL {language}")
    if "get_left_input_cooperative_tensor" in text and system < (26, 2):
        raise Refused("error: no member named 'get_left_input_cooperative_tensor'")
    if "_cooperative_tensor<decltype" in "".join(text.split()) and language >= (4, 1):
        raise Refused("error: no matching member function for call to 'get_destination_cooperative_tensor'")
    passed = ("metal-kernel-name", "threadgroup-memory")
    found = [str(finding) for finding in lint(text) if finding.rule not in passed]
    need(not found, "\n".join([*found, text]))


class Buffer:
    """An MTLBuffer: page-aligned bytes, and a handle that is not their address."""

    def __init__(self, size, fill=0xCD):
        self.raw = np.full(size + 512, fill, np.uint8)
        start = -self.raw.ctypes.data % 256
        self.bytes = self.raw[start : start + size]
        # Handles lie closer together than buffers are long, as objects do.
        _handles.append(ctypes.create_string_buffer(64))
        self.handle = -(-ctypes.addressof(_handles[-1]) // 16) * 16

    def elements(self, kind, offset, shape, strides):
        """Return a view of elements; offset in bytes, strides in elements."""
        steps = tuple(s * kind.itemsize for s in strides)
        storage = self.bytes if self.bytes.size else np.zeros(kind.itemsize, np.uint8)
        return np.ndarray(shape, kind, storage.data, offset if self.bytes.size else 0, steps)


def numpy_kind(name):
    """Return NumPy's type for the name of an element type."""
    return np.dtype(DTYPES[name].numpy())


def execute(text, entry, arrays, scalars, blocks, block, shared=0, generation=17, language=(3, 1)):
    """Run a text; change the arrays that it writes.

    ``arrays`` are rows of name, flat NumPy array and access, ``scalars`` rows of name, element type and value. The
    arrays are parts of buffers, and as much aligned.
    """
    params = [ParamFact(name, "pointer", a.dtype.name, access, _aligned(a)) for name, a, access in arrays]
    params += [ParamFact(name, "scalar", dtype) for name, dtype, _ in scalars]
    facts = LaunchFacts(entry, tuple(params), blocks, block, shared)
    values = {name: array for name, array, _ in arrays} | {name: value for name, _, value in scalars}
    dialect = dialect_of(tensor_ops="MetalPerformancePrimitives" in text)
    flags = [f for f in dialect.flags if "__METAL_VERSION__" not in f]
    flags.append(f"-D__METAL_VERSION__={language[0]}{language[1]}0")
    flags += ["-DMETAL_OTHER_LANES=1"] if generation < 17 else []  # where the lanes hold other elements
    dialect = dataclasses.replace(dialect, flags=tuple(flags))
    result = run(text, facts, values, dialect, checks=CHECKS)
    result.check(entry)
    for name, array, access in arrays:
        if access != "read":
            array[...] = result.outputs[name].reshape(array.shape)


def _aligned(array):
    at = array.ctypes.data
    return min(at & -at, 256)


def slab(text):
    """Return the bytes of threadgroup memory that a text declares."""
    found = re.findall(r"alignas\(16\) threadgroup uchar smem\[(\d+)\];", text)
    need(len(found) <= 1, "one slab")
    return int(found[0]) if found else 0


def fields(text, name):
    """Return a structure's fields (name, element type, offset) and size, in C's layout."""
    (body,) = re.findall(rf"struct {name} \{{(.*?)\}};", text, re.DOTALL)
    rows, at, largest = [], 0, 1
    for kind, field in re.findall(r"(\w+) (\w+);", body):
        size = numpy_kind(MSL[kind]).itemsize
        at += -at % size
        rows.append((field, MSL[kind], at))
        at, largest = at + size, max(largest, size)
    return rows, at + -at % largest


def scalars_of(text, name, data):
    """Return the scalars in a structure's bytes: rows of name, element type and value."""
    rows, size = fields(text, name)
    need(len(data) >= size, f"{len(data)} bytes are bound for a structure of {size}")
    found = []
    for field, dtype, at in rows:
        kind = numpy_kind(dtype)
        value = np.frombuffer(data[at : at + kind.itemsize], kind)[0]
        found.append(
            (field, dtype, bool(value) if dtype == "bool" else value.item() if kind.kind in "iuf" else float(value))
        )
    return found


def bytes_of_longs(values):
    """Return the bytes that torch binds for integers: 8 each."""
    return struct.pack(f"<{len(values)}q", *values)
