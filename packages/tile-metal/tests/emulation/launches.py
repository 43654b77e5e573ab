"""Short ways to run texts with the models."""

import numpy as np

import tile_emulator
from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_metal.emulation import dialect_of
from tile_metal.emulation.tokens import outline, tokenize

DTYPES = {
    "bool": "bool", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "half": "float16", "bfloat": "bfloat16", "float": "float32",
    "atomic_uint": "uint32", "atomic_int": "int32", "atomic_float": "float32",
}  # fmt: skip
HEAD = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
TENSOR_HEAD = HEAD + (
    "#include <metal_tensor>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
    "using namespace mpp::tensor_ops;\n"
)


def facts_of(text, grid, block, shared_bytes=0, scalars=None):
    """Return the facts of a text's only kernel.

    ``scalars`` has the fields of its structure and their types.
    """
    code = [t for t in tokenize(text) if t.kind != "directive"]
    kernel = next(f for f in outline(code).functions if f.is_kernel)
    params = []
    for parameter in kernel.parameters:
        words = [t.text for t in parameter.tokens]
        kind = next((w for w in words if w in DTYPES), "")
        if not any(name == "buffer" for name, _ in parameter.attributes):
            continue
        if "*" in words:
            name = parameter.name
            access = (
                "read" if "const" in words or "constant" in words else "write" if name[:3] == "out" else "readwrite"
            )
            params.append(ParamFact(name, "pointer", DTYPES[kind], access, 16))
        elif kind:
            params.append(ParamFact(parameter.name, "scalar", DTYPES[kind]))
    params += [ParamFact(name, "scalar", kind) for name, kind in (scalars or {}).items()]
    return LaunchFacts(kernel.name.text, tuple(params), grid, block, shared_bytes)


def run(text, args, grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, scalars=None, tensor_ops=False, **how):
    """Run a text's only kernel; const pointers are inputs, the named ones outputs."""
    head = TENSOR_HEAD if tensor_ops else HEAD
    facts = facts_of(head + text, grid, block, shared_bytes, scalars)
    return tile_emulator.run(head + text, facts, args, dialect_of(tensor_ops=tensor_ops), **how)


def right(text, args, **how):
    """Run it without reports, and return its outputs."""
    result = run(text, args, **how)
    assert result.ok, report_text(result)
    return result.outputs


def kinds(result):
    return {report.kind for report in result.reports}


def report_text(result):
    return "\n".join(str(report) for report in result.reports)


def poison(*shape, dtype="float32"):
    return np.full(shape, np.nan if np.dtype(dtype).kind in "fV" else 0x77, dtype)
