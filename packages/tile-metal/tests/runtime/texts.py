"""Texts as the package emits them, and kernels of them as users call them."""

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.abi.signature import Param, Signature
from tile_core.runtime.kernel import Kernel
from tile_metal.runtime.adapter import MetalAdapter
from tile_metal.target import make_target

TYPES = {
    "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float16": "half", "bfloat16": "bfloat", "float32": "float",
}  # fmt: skip

POSITIONS = "threadgroup_position_in_grid", "thread_position_in_threadgroup"

INDEX = "  const int i = (int)threadgroup_position_in_grid.x * {} + (int)thread_position_in_threadgroup.x;\n"


def text_type(dtype):
    return TYPES.get(dtype, "uchar")


def text(entry, params, body, grid, block, *, header="", shared=0, general=None, divides=None, fast=False):
    """Return a text.

    ``params`` are rows: (name, dtype, access, align) of arrays, (name, dtype) of scalars.
    """
    facts = tuple(
        ParamFact(p[0], "pointer", p[1], p[2], p[3] if len(p) > 3 else 0)
        if len(p) > 2
        else ParamFact(p[0], "scalar", p[1])
        for p in params
    )
    arrays, scalars = [p for p in params if len(p) > 2], [p for p in params if len(p) == 2]
    before = ["#include <metal_stdlib>", "using namespace metal;", *header.splitlines()]
    if not fast:
        before += ["#pragma METAL fp math_mode(safe)", "#pragma METAL fp contract(off)"]
    if scalars:
        before += [f"struct {entry}_args {{", *(f"  {text_type(d)} {n};" for n, d in scalars), "};"]
    heads = [
        f"device {'const ' if p[2] == 'read' else ''}{text_type(p[1])}* __restrict {p[0]} [[buffer({i})]]"
        for i, p in enumerate(arrays)
    ]
    if scalars:
        heads.append(f"constant {entry}_args& args [[buffer({len(arrays)})]]")
    heads += [f"uint3 {p} [[{p}]]" for p in POSITIONS if p in body]
    head = [f"[[kernel, max_total_threads_per_threadgroup({block[0] * block[1] * block[2]})]] void {entry}("]
    head += [f"    {h}{'' if h is heads[-1] else ','}" for h in heads] + [") {"]
    first = [f"  const {text_type(d)} {n} = args.{n};" for n, d in scalars]
    lines = [*before, *head, *first]
    attributes = {"metal.head": len(before) + 1, "metal.body": len(before) + len(head) + 1}
    attributes |= {"metal.fast_math": True} if fast else {}
    made = LaunchFacts(entry, facts, grid, block, shared, attributes=attributes, divides=divides or {})
    slab = f"  alignas(16) threadgroup uchar smem[{shared}];\n" if shared else ""
    return KernelText("".join(f"{line}\n" for line in lines) + slab + body + "}\n", made, general=general)


def adapter(mx=None, torch=None, family="metal3", **how):
    """Return the adapter with doubles for libraries, whose macOS is this machine's."""
    from tile_metal.runtime.libraries import LibraryUnusable

    def find(library, module):
        def found():
            if module is None:
                raise LibraryUnusable(f"{library} is not installed")
            return module

        return found

    system = getattr(mx or torch, "system", (15, 1))
    finds = {"mlx": find("mlx", mx), "torch": find("torch", torch)}
    return MetalAdapter(make_target(family), find=finds, system=lambda: system, **how)


def kernel(made, params, runtime, out_idx=(), hidden=()):
    """Return a kernel that users call."""
    return Kernel(
        Signature(made.facts.entry, tuple(params), out_idx=out_idx), runtime.load(made), adapter=runtime, hidden=hidden
    )


def tensor(name, *shape, dtype="float32", access="read", **more):
    return Param(name, "tensor", dtype, shape, access=access, **more)


SCALE = INDEX.format(32) + "  if (i < n) out[i] = a[i] * factor;\n"


def scale(dtype="float32", align=0, general=None, **how):
    """Return ``out = a * factor``, with an ``n`` that the launch passes besides."""
    body = (
        SCALE if dtype == "float32" else SCALE.replace("a[i] * factor", f"({text_type(dtype)})((float)a[i] * factor)")
    )
    params = [("a", dtype, "read", align), ("out", dtype, "write"), ("factor", "float32"), ("n", "int32")]
    return text("scale", params, body, (("ceildiv", "n", 32), 1, 1), (32, 1, 1), general=general, **how)


def scale_params(dtype="float32", access="write"):
    factor = Param("factor", "scalar", "float32")
    return tensor("a", "n", dtype=dtype), tensor("out", "n", dtype=dtype, access=access), factor


GEMM = """\
  threadgroup float* const A_shared = (threadgroup float*)smem;
  threadgroup float* const B_shared = (threadgroup float*)(smem + 256);
  const int x = (int)thread_position_in_threadgroup.x;
  const int y = (int)thread_position_in_threadgroup.y;
  const int row = (int)threadgroup_position_in_grid.y * 8 + y;
  const int column = (int)threadgroup_position_in_grid.x * 8 + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < k; k0 += 8) {
    A_shared[y * 8 + x] = row < m && k0 + x < k ? float(A[row * k + k0 + x]) : 0.0f;
    B_shared[y * 8 + x] = k0 + y < k && column < n ? float(B[(k0 + y) * n + column]) : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int j = 0; j < 8; ++j) sum += A_shared[y * 8 + j] * B_shared[j * 8 + x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (row < m && column < n) C[row * n + column] = flag ? sum * float(alpha) + float(offset) : 0.0f;
"""


def gemm():
    """Return a product in tiles, whose scalars are of many types."""
    params = [
        ("A", "float16", "read"), ("alpha", "bfloat16"), ("flag", "bool"), ("B", "float16", "read"), ("offset", "int8"),
        ("C", "float32", "write"), ("k", "int64"), ("m", "int32"), ("n", "uint16"),
    ]  # fmt: skip
    grid = (("ceildiv", "n", 8), ("ceildiv", "m", 8), 1)
    return text("gemm", params, GEMM, grid, (8, 8, 1), shared=512)


def gemm_params():
    def scalar(name, dtype):
        return Param(name, "scalar", dtype)

    return (
        tensor("A", "m", "k", dtype="float16"), scalar("alpha", "bfloat16"), scalar("flag", "bool"),
        tensor("B", "k", "n", dtype="float16"), scalar("offset", "int8"), tensor("C", "m", "n", access="write"),
    )  # fmt: skip


ADD_SOME = INDEX.format(32) + "  if (i < n && i % 2 == 0) c[i] += a[i];\n"


def add_some(access="readwrite"):
    """Return a kernel that changes every second element."""
    params = [("a", "float32", "read"), ("c", "float32", access), ("n", "int32")]
    return text("add_some", params, ADD_SOME, (("ceildiv", "n", 32), 1, 1), (32, 1, 1))
