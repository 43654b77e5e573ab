"""Probes of tile's assumptions about a Mac, small kernels of known result.

`selftest` runs them one by one. Each returns a remark for the report, or raises: ``AssertionError`` if an
assumption fails, ``Left`` if this machine cannot check it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_metal import versions
from tile_metal.emit.helper import AS_WRITTEN
from tile_metal.emit.names import MACROS
from tile_metal.runtime.machine import machine_of
from tile_metal.runtime.probe import held, product_text, wrong_elements
from tile_metal.target import RECORDS
from tile_metal.testing.probe_kernels import counted, larger, own_functions, product, there_and_back

HEADER = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
TENSOR_HEADER = (
    "#include <metal_stdlib>\n#include <metal_tensor>\n"
    "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\nusing namespace metal;\n"
)
BUILTINS = {
    "threadgroup_position_in_grid": "uint3", "thread_position_in_threadgroup": "uint3",
    "thread_index_in_simdgroup": "uint",
}  # fmt: skip
KINDS = {"float32": "float", "float16": "half", "bfloat16": "bfloat", "uint32": "uint", "int64": "long", "int32": "int"}


class Left(Exception):
    """The assumption cannot be checked on this machine."""


# --- texts and launches -------------------------------------------------------------------------------------------


def probe(
    entry: str, arrays: list[tuple[str, str, str]], body: str, threads: int, blocks: int = 1, shared: int = 0,
    scalars: tuple[tuple[str, str, str], ...] = (), header: str = HEADER, fast: bool = False,
) -> KernelText:  # fmt: skip
    """Return a text; arrays are (name, dtype, access), scalars (name, dtype, MSL type)."""
    slab = f"  alignas(16) threadgroup uchar smem[{shared}];\n" if shared else ""
    struct = [f"struct {entry}_args {{", *(f"  {kind} {name};" for name, _, kind in scalars), "};"] if scalars else []
    heads = [
        f"device {'const ' if access == 'read' else ''}{KINDS[dtype]}* {name} [[buffer({i})]]"
        for i, (name, dtype, access) in enumerate(arrays)
    ]
    heads += [f"constant {entry}_args& args [[buffer({len(arrays)})]]"] if scalars else []
    heads += [f"{kind} {name} [[{name}]]" for name, kind in BUILTINS.items() if name in body]
    before = header.splitlines() + struct
    head = [f"[[kernel, max_total_threads_per_threadgroup({threads})]] void {entry}(", ",\n".join(heads), ") {"]
    head = "\n".join(head).splitlines()
    first = [f"  const {kind} {name} = args.{name};" for name, _, kind in scalars]
    params = [ParamFact(n, "pointer", d, a) for n, d, a in arrays]  # type: ignore[arg-type]
    params += [ParamFact(n, "scalar", d) for n, d, _ in scalars]
    at: dict[str, Any] = {"metal.head": len(before) + 1, "metal.body": len(before) + len(head) + 1}
    at |= {"metal.fast_math": True} if fast else {}
    facts = LaunchFacts(entry, tuple(params), (blocks, 1, 1), (threads, 1, 1), shared, attributes=at)
    return KernelText("\n".join([*before, *head, *first]) + "\n" + slab + body + "}\n", facts)


def launch(adapter: Any, text: KernelText, *values: Any) -> list[np.ndarray]:
    """Run a text on copies of NumPy arrays; return the written ones."""
    given = [adapter.from_host(v) if isinstance(v, np.ndarray) else v for v in values]
    adapter.load(text)(*given)
    adapter.synchronize()
    kinds = zip(given, text.facts.params, strict=True)
    return [adapter.to_host(v) for v, p in kinds if p.kind == "pointer" and p.access != "read"]


def emitted(program: Any, target: str = "metal", **options: bool | str) -> KernelText:
    """Return the text that tile makes of a kernel."""
    text = lower(program, make_context(target, options=options or None), installed()).lowered
    assert isinstance(text, KernelText)
    return text


def same(found: np.ndarray, expected: Any) -> str:
    """Compare, and return no remark."""
    np.testing.assert_array_equal(found, expected)
    return ""


# --- the machine --------------------------------------------------------------------------------------------------


def library(adapter: Any) -> tuple[str, Any]:
    """Return the library that an adapter launches through."""
    if not hasattr(adapter, "preferred"):
        raise Left("the emulator is not a machine")
    found: tuple[str, Any] = adapter.preferred("the self-test")
    return found


def language(adapter: Any) -> str:
    """The library compiles the MSL version of the version table."""
    body = "  out[0] = __METAL_VERSION__;\n"
    (out,) = launch(adapter, probe("language", [("out", "int32", "write")], body, 1), np.zeros(1, np.int32))
    found = f"MSL {out[0] // 100}.{out[0] // 10 % 10}"
    name, module = library(adapter)
    system = adapter.system()
    version = versions.compiled_language(name, versions.version_of(str(module.__version__)), system)
    machine = machine_of(name, module, system)
    assert found == f"MSL {versions.shown(version)}", (
        f"{found}, but MSL {versions.shown(version)} is expected on {machine}"
    )
    return f"{found} by {name} {module.__version__} on {machine}"


def macros(adapter: Any) -> str:
    """No name that texts have is a macro; remarks which of the reserved ones are."""
    own = "A B C x y i j k m n tid bx by bz lane row column acc total mine other size kept bits low high base".split()
    names = [*own, *sorted(MACROS)]
    lines = "".join(f"#ifdef {name}\n  out[{i}] = 1;\n#endif\n" for i, name in enumerate(names))
    text = probe("macros", [("out", "int32", "write")], lines, 1)
    (out,) = launch(adapter, text, np.zeros(len(names), np.int32))
    assert not out[: len(own)].any(), f"macros: {[n for n, found in zip(own, out, strict=False) if found]}"
    return f"{int(out.sum())} of {len(MACROS)} reserved names in capitals are macros"


def lanes(adapter: Any) -> str:
    """Lanes are numbered like threads: linear index modulo 32."""
    body = "  out[thread_position_in_threadgroup.x] = thread_index_in_simdgroup;\n"
    (out,) = launch(adapter, probe("lanes", [("out", "uint32", "write")], body, 256), np.zeros(256, np.uint32))
    return same(out, np.arange(256) % 32)


def element_map(kind: str, dtype: Any) -> Callable[[Any], str]:
    """Make a probe of the simdgroup matrix's element map, which no specification defines."""

    def check(adapter: Any) -> str:
        body = (
            f"  simdgroup_matrix<{kind}, 8, 8> m;\n  simdgroup_load(m, a, 8);\n"
            "  const uint lane = thread_position_in_threadgroup.x;\n"
            "  out[lane * 2u] = float(m.thread_elements()[0]);\n"
            "  out[lane * 2u + 1u] = float(m.thread_elements()[1]);\n"
        )
        text = probe("elements", [("a", np.dtype(dtype).name, "read"), ("out", "float32", "write")], body, 32)
        (out,) = launch(adapter, text, np.arange(64, dtype=np.float32).astype(dtype), np.zeros(64, np.float32))
        lane = np.arange(32)
        q = lane // 4
        row, column = (q & 4) + (lane // 2) % 4, 2 * (q & 2) + 2 * (lane % 2)
        return same(out, np.stack([row * 8 + column, row * 8 + column + 1], 1).reshape(-1))

    return check


def with_tensors(adapter: Any) -> tuple[str, Any, versions.Machine]:
    """Return the library and the machine, if texts with operands in cooperative tensors compile there."""
    name, module = library(adapter)
    system = adapter.system()
    version = versions.compiled_language(name, versions.version_of(str(module.__version__)), system)
    if version < RECORDS["metal4"].language or system < versions.first(versions.SYSTEM, versions.TENSORS):
        raise Left(f"macOS {versions.shown(system)} and MSL {versions.shown(version)} have no such operands")
    return name, module, machine_of(name, module, system)


def cooperative(operand: str) -> Callable[[Any], str]:
    """Make a probe of a tensor-operation product, filled by the assumed lane layout."""

    def check(adapter: Any) -> str:
        name, module, machine = with_tensors(adapter)
        total = "int32" if operand == "int8" else "float32"
        products = [(total, operand, a, b) for a in (False, True) for b in (False, True)]
        wrong = sum(wrong_elements(p, module, adapter.runner(name, module)) for p in products)
        if RECORDS["metal4"].lacks(machine):  # never launched there: what comes out is a remark
            return f"{wrong} of 2,048 elements are wrong on {machine}, where metal4 is refused"
        assert not wrong, f"{wrong} of 2,048 elements are wrong on {machine}"
        return f"all elements are right on {machine}; {product_text(products[0]).facts.entry}"

    return check


def indices(adapter: Any) -> str:
    """Cooperative tensors report the lane layout that kernels assume."""
    machine = with_tensors(adapter)[2]
    shape = "mpp::tensor_ops::matmul2d_descriptor(16, 32, 16, false, false, false)"
    body = f"  constexpr auto shape = {shape};\n  mpp::tensor_ops::matmul2d<shape, execution_simdgroup> product;\n"
    body += "  const uint lane = thread_position_in_threadgroup.x;\n"
    body += "  auto left = product.get_left_input_cooperative_tensor<half, half, float>();\n"
    body += "  auto right = product.get_right_input_cooperative_tensor<half, half, float>();\n"
    body += "  auto sum = product.get_destination_cooperative_tensor<remove_addrspace_t<decltype(left)>, "
    body += "remove_addrspace_t<decltype(right)>, float>();\n"
    for i, (tensor, count) in enumerate((("left", 8), ("right", 16), ("sum", 16))):
        body += f"  for (ushort i = 0; i < {count}; ++i) {{\n    if ({tensor}.is_valid_element(i)) {{\n"
        body += f"      const auto at = {tensor}.get_multidimensional_index(i);\n"
        body += f"      out[({i} * 32 + lane) * 16 + i] = at[1] * 32 + at[0];\n    }}\n  }}\n"
    text = probe("indices", [("out", "int32", "write")], body, 32, header=TENSOR_HEADER)
    (out,) = launch(adapter, text, np.full(3 * 32 * 16, -1, np.int32))
    expected = np.full((3, 32, 16), -1)
    for i, (rows, columns) in enumerate(((16, 16), (16, 32), (16, 32))):
        positions = np.arange(rows)[:, None] * 32 + np.arange(columns)
        expected[i, :, : rows * columns // 32] = held(positions)
    wrong = int(np.count_nonzero(out.reshape(3, 32, 16) != expected))
    assert not wrong or RECORDS["metal4"].lacks(machine), f"{wrong} of 1280 indices are others on {machine}"
    return f"{wrong} of 1280 indices are others on {machine}"


def refused_or_right(adapter: Any) -> str:
    """A product for metal4 is right where it runs, and refused everywhere else."""
    name, module = library(adapter)
    own = adapter.with_target(make_context("metal:metal4").target)
    a, b = (np.random.default_rng(4).integers(-8, 9, shape).astype(np.float16) for shape in ((40, 24), (24, 48)))
    lacks = RECORDS["metal4"].lacks(machine_of(name, module, adapter.system()))
    try:
        (out,) = launch(own, emitted(product(40, 48, 24), "metal:metal4"), a, b, np.zeros((40, 48), np.float32))
    except TileError as error:
        refused = error
    else:
        assert not lacks, f"launched, although the machine lacks {lacks}"
        same(out, a.astype(np.float32) @ b.astype(np.float32))
        return "launched, and right"
    assert (refused.code == "U808" and lacks) or refused.code == "S802", str(refused)
    return f"refused: {refused.code}, {lacks or 'the library is too old'}"


# --- memory and arguments -----------------------------------------------------------------------------------------


def threadgroup_memory(adapter: Any) -> str:
    """A threadgroup has 32 KiB, and a barrier orders what its threads write there."""
    body = (
        "  threadgroup uint* const s = (threadgroup uint*)smem;\n"
        "  const uint t = thread_position_in_threadgroup.x;\n"
        "  for (uint i = t; i < 8192u; i += 256u) s[i] = i * 3u;\n"
        "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "  for (uint i = t; i < 8192u; i += 256u) out[i] = s[8191u - i];\n"
    )
    text = probe("memory", [("out", "uint32", "write")], body, 256, shared=32768)
    (out,) = launch(adapter, text, np.zeros(8192, np.uint32))
    return same(out, np.arange(8192)[::-1] * 3)


def threads(adapter: Any) -> str:
    """A threadgroup has up to 1,024 threads, and 29 buffers are bound."""
    arrays = [*((f"a{i}", "uint32", "read") for i in range(28)), ("out", "uint32", "write")]
    total = " + ".join(f"a{i}[{i % 8}]" for i in range(28))
    body = f"  out[thread_position_in_threadgroup.x] = thread_position_in_threadgroup.x + {total};\n"
    given = [np.arange(8, dtype=np.uint32) + i for i in range(28)]
    (out,) = launch(adapter, probe("many", arrays, body, 1024), *given, np.zeros(1024, np.uint32))
    return same(out, np.arange(1024) + sum(int(x[i % 8]) for i, x in enumerate(given)))


def scalar_bytes(adapter: Any) -> str:
    """Scalars of all sizes arrive as they were given."""
    scalars = (("a", "int8", "char"), ("b", "bool", "bool"), ("c", "int64", "long"), ("d", "uint16", "ushort"),
               ("e", "uint64", "ulong"), ("f", "int32", "int"))  # fmt: skip
    lines = "".join(f"  out[{i}] = (long){name};\n" for i, (name, _, _) in enumerate(scalars))
    text = probe("scalars", [("out", "int64", "write")], lines, 1, scalars=scalars)
    values = (-3, True, -(2**40) - 1, 65535, 2**63 - 1, -(2**31))
    (out,) = launch(adapter, text, np.zeros(6, np.int64), *values)
    return same(out, values)


def untouched(adapter: Any) -> str:
    """Unwritten elements keep their values in repeated in-place launches of all types."""
    for dtype, kind in (("float32", "float"), ("float16", "half")):
        body = (
            "  const uint i = threadgroup_position_in_grid.x * 32u + thread_position_in_threadgroup.x;\n"
            f"  if (i % 3u == 0u) c[i] += ({kind})a[i % 5u];\n"
        )
        text = probe("untouched", [("a", dtype, "read"), ("c", dtype, "readwrite")], body, 32, blocks=4)
        start = np.arange(128).astype(dtype)
        a, c = adapter.from_host(np.arange(5).astype(dtype)), adapter.from_host(start.copy())
        call = adapter.load(text)
        for _ in range(4):
            call(a, c)
        adapter.synchronize()
        same(adapter.to_host(c), start + 4 * np.where(np.arange(128) % 3 == 0, np.arange(128) % 5, 0))
    return ""


# --- arithmetic ---------------------------------------------------------------------------------------------------


def precise(adapter: Any) -> str:
    """Arithmetic is precise: NaN and infinities survive, without contraction or reassociation."""
    body = (
        "  out[0] = a[0] != a[0] ? 1.0f : 0.0f;\n  out[1] = isinf(a[1]) ? 1.0f : 0.0f;\n"
        "  out[2] = (a[2] + a[3]) - a[3];\n  out[3] = precise::sqrt(a[4]);\n"
        "  out[4] = a[5] * a[5] - a[6];\n"
    )
    head = HEADER + "\n".join(AS_WRITTEN) + "\n"
    text = probe("exactness", [("a", "float32", "read"), ("out", "float32", "write")], body, 1, header=head)
    third = np.float32(1) / np.float32(3)
    a = np.array([np.nan, np.inf, 1e-8, 1, 2, third, third * third], np.float32)
    (out,) = launch(adapter, text, a, np.zeros(5, np.float32))
    return same(out, np.array([1, 1, 0, np.sqrt(np.float32(2)), 0], np.float32))


def pragmas(adapter: Any) -> str:
    """A function marked exact stays exact where the text uses fast math."""
    lines = [HEADER.rstrip("\n")]
    for name, said in (("exact", AS_WRITTEN), ("loose", ())):
        lines += [f"static inline float {name}(float x, float y) {{", *said, "  return (x + y) - y;", "}"]
    body = "  out[0] = exact(a[0], a[1]);\n  out[1] = loose(a[0], a[1]);\n"
    text = probe("pragmas", [("a", "float32", "read"), ("out", "float32", "write")], body, 1,
                 header="\n".join(lines) + "\n", fast=True)  # fmt: skip
    (out,) = launch(adapter, text, np.array([1e-8, 1], np.float32), np.zeros(2, np.float32))
    same(out[:1], np.zeros(1, np.float32))
    return "fast math reassociates the rest" if out[1] else "the rest is not reassociated either"


def functions(fast: bool) -> Callable[[Any], str]:
    """Make a probe of tile's own functions (errors up to 6 ulp)."""
    exact: Any = {"erf": np.vectorize(math.erf), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "expm1": np.expm1,
                  "log1p": lambda x: np.log1p(np.abs(x)), "cbrt": np.cbrt}  # fmt: skip

    def check(adapter: Any) -> str:
        x = np.concatenate([np.linspace(-9, 9, 1024), 10.0 ** np.linspace(-9, 0, 1024)]).astype(np.float32)
        text = emitted(own_functions(list(exact)), numerics="fast" if fast else "standard")
        (out,) = launch(adapter, text, x, np.zeros((5, 2048), np.float32))
        worst = 0.0
        for name, values in zip(exact, out, strict=True):
            right = exact[name](x.astype(np.float64))
            off = np.abs(values - right) / np.spacing(np.maximum(np.abs(right), 1e-37).astype(np.float32))
            assert off.max() <= 6, f"{name}({x[off.argmax()]}): {off.max():.1f} units in the last place"
            worst = max(worst, float(off.max()))
        return f"at most {worst:.2f} units in the last place"

    return check


def extremes(adapter: Any) -> str:
    """The maximum of floats by bits: NaN and a number, zeros, subnormals."""
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1e-40, -1e-40, 3e-45, 1e-45, 2.0]
    a, b = (np.array(x, np.float32).reshape(-1) for x in np.meshgrid(special, special))
    (out,) = launch(adapter, emitted(larger(a.size)), a, b, np.zeros(a.size, np.float32))
    order = np.where(np.signbit(a) == np.signbit(b), a > b, np.signbit(b))
    expected = np.where(np.isnan(a), b, np.where(np.isnan(b) | order, a, b))
    kept = ~np.isnan(expected)
    assert np.isnan(out[~kept]).all()
    return same(out[kept].view(np.uint32), expected[kept].view(np.uint32))


def subnormals(adapter: Any) -> str:
    """Nothing is expected: MSL lets an implementation keep subnormal numbers or flush them."""
    text = probe("small", [("a", "float32", "read"), ("out", "float32", "write")], "  out[0] = a[0] * 0.5f;\n", 1)
    (out,) = launch(adapter, text, np.array([1e-38], np.float32), np.ones(1, np.float32))
    return "float32 keeps subnormal numbers" if out[0] else "float32 flushes subnormal numbers"


def narrow_floats(adapter: Any) -> str:
    """All codes of 8-bit floats become float32 and back."""
    codes = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        out = launch(adapter, emitted(there_and_back(name)), codes, np.zeros(256, np.float32), np.zeros(256, np.uint8))
        expected = codes.view(np.dtype(getattr(ml_dtypes, name))).astype(np.float32)
        same(out[0], expected)
        number = ~np.isnan(expected)
        same(out[1].view(np.uint8)[number], codes[number])
    return ""


def groups(adapter: Any) -> str:
    """Reductions, votes and shuffles over the lanes of a simdgroup."""
    body = (
        "  const uint lane = thread_position_in_threadgroup.x;\n"
        "  out[lane] = simd_sum(a[lane]);\n  out[32u + lane] = simd_shuffle_xor(a[lane], (ushort)5);\n"
        "  out[64u + lane] = simd_max(a[lane]);\n"
        "  out[96u + lane] = (uint)(ulong)(simd_vote::vote_t)simd_ballot(a[lane] % 3u == 0u) & 65535u;\n"
    )
    text = probe("groups", [("a", "uint32", "read"), ("out", "uint32", "write")], body, 32)
    a = np.random.default_rng(3).integers(0, 1000, 32).astype(np.uint32)
    (out,) = launch(adapter, text, a, np.zeros(128, np.uint32))
    votes = sum(1 << i for i in range(16) if a[i] % 3 == 0)
    return same(out.reshape(4, 32), np.stack([np.full(32, a.sum()), a[np.arange(32) ^ 5], np.full(32, a.max()),
                                              np.full(32, votes)]))  # fmt: skip


def atomics(adapter: Any) -> str:
    """Atomics of words, of floats, and of parts of words."""
    out = launch(adapter, emitted(counted()), np.zeros(4, np.int32), np.zeros(4, np.float32), np.zeros(4, np.float16))
    return same(np.stack([x.astype(np.float32) for x in out]), np.full((3, 4), 64))


PROBES: Mapping[str, Callable[[Any], str]] = {
    "version of MSL": language,
    "macros": macros,
    "lanes are numbered like threads": lanes,
    "elements of simdgroup matrices of float": element_map("float", np.float32),
    "elements of simdgroup matrices of half": element_map("half", np.float16),
    "elements of simdgroup matrices of bfloat": element_map("bfloat", ml_dtypes.bfloat16),
    "cooperative tensors of half": cooperative("float16"),
    "cooperative tensors of bfloat": cooperative("bfloat16"),
    "cooperative tensors of float": cooperative("float32"),
    "cooperative tensors of char": cooperative("int8"),
    "indices of cooperative tensors": indices,
    "a product for metal4": refused_or_right,
    "lane functions": groups,
    "threadgroup memory": threadgroup_memory,
    "threads and buffers": threads,
    "bytes of scalars": scalar_bytes,
    "what is not written stays": untouched,
    "atomics": atomics,
    "precise arithmetic": precise,
    "pragmas": pragmas,
    "functions": functions(False),
    "functions with fast math": functions(True),
    "larger of two": extremes,
    "subnormal numbers": subnormals,
    "8-bit floats": narrow_floats,
}

CLAIMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The lanes of a simdgroup are 32 consecutive threads.", ("lanes are numbered like threads",)),
    ("MSL does not specify which lane holds which elements of a `simdgroup_matrix`.", (
        "elements of simdgroup matrices of float", "elements of simdgroup matrices of half",
        "elements of simdgroup matrices of bfloat",
    )),
    ("on an M1 to M4 the lanes of a simdgroup hold other elements of cooperative tensors", (
        "cooperative tensors of half", "cooperative tensors of bfloat", "cooperative tensors of float",
        "indices of cooperative tensors",
    )),
    ("refuses a target that the machine would compute wrongly", ("a product for metal4", "version of MSL")),
    ("Both have 32 KB of threadgroup memory, threadgroups of up to 1,024 threads", (
        "threadgroup memory", "threads and buffers",
    )),
    ("registers, then shuffles within simdgroups, then threadgroup memory between them", ("lane functions",)),
    ("MSL's 32-bit atomics, otherwise a compare-and-exchange loop on the word", ("atomics",)),
    ("conversions of 8-bit floats use integer arithmetic that is correct for all codes", ("8-bit floats",)),
    ('may be fused\nunless `numerics="strict"`', ("precise arithmetic",)),
    ("the source marks these functions `math_mode(safe)`", ("pragmas", "functions with fast math")),
    ("tile implements `erf`, `tanh`, `sigmoid` and `log1p` itself", ("functions",)),
)  # fmt: skip
"""Sentences of docs/metal.md, and the probes that say whether they hold."""
