"""Check tile on a Mac: the conformance kit, what the backend takes for granted, speed. Writes one report to send back.

python examples/metal_selftest.py               everything, on the GPU of this Mac
python examples/metal_selftest.py --dry-run     what can be run without a Mac: by the emulator, with tiny sizes
"""

# requires: tile_metal, tile_emulator

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

import tile_core as tile
import tile_core.language as T
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.errors import TileError
from tile_core.plugins.manager import installed
from tile_core.plugins.runtimes import find_runtime

REPORT = "metal-selftest"
PACKAGES = ("tile-core", "tile-metal", "tile-emulator", "mlx", "torch", "numpy", "apache-tvm")

HEADER = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
BUILTINS = {
    "threadgroup_position_in_grid": "uint3", "thread_position_in_threadgroup": "uint3",
    "thread_index_in_simdgroup": "uint",
}  # fmt: skip


# --- the report ---------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What was found; ``findings`` are rows of part, name, outcome and detail."""

    machine: dict[str, str] = field(default_factory=dict)
    findings: list[tuple[str, str, str, str]] = field(default_factory=list)
    timings: list[dict[str, Any]] = field(default_factory=list)
    conformance: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, part: str, name: str, outcome: str, detail: str = "") -> None:
        self.findings.append((part, name, outcome, detail))
        print(f"{outcome:<6} {part}: {name} {detail.splitlines()[0] if detail else ''}".rstrip())

    @property
    def failed(self) -> int:
        return sum(outcome not in ("ok", "left") for _, _, outcome, _ in self.findings)

    def markdown(self) -> str:
        lines = ["# Self-test of tile on Metal", "", "| what | |", "| --- | --- |"]
        lines += [f"| {name} | {value} |" for name, value in self.machine.items()]
        lines += ["", "## Findings", "", "| part | name | outcome | detail |", "| --- | --- | --- | --- |"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in self.findings]
        for library, found in self.conformance.items():
            lines += ["", f"## Conformance, {library}", "", "```", found["summary"], "```"]
        if self.timings:
            lines += ["", "## Speed", "", "| what | side | median | fastest |", "| --- | --- | --- | --- |"]
        for row in self.timings:
            for side, samples in row["seconds"].items():
                median, least = statistics.median(samples) * 1e6, min(samples) * 1e6
                lines.append(f"| {row['name']} | {side} | {median:.1f} us | {least:.1f} us |")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{REPORT}.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        page = folder / f"{REPORT}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        return page


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")[:500]


# --- what the backend takes for granted ---------------------------------------------------------------------------


def probe(entry: str, arrays: list[tuple[str, str, str]], body: str, threads: int, blocks: int = 1, shared: int = 0,
          scalars: tuple[tuple[str, str, str], ...] = ()) -> KernelText:  # fmt: skip
    """Return a text as the backend makes them. Arrays are (name, dtype, access); scalars (name, dtype, type of MSL)."""
    kinds = {"float32": "float", "float16": "half", "bfloat16": "bfloat", "uint32": "uint", "int64": "long"}
    slab = f"  alignas(16) threadgroup uchar smem[{shared}];\n" if shared else ""
    struct = [f"struct {entry}_args {{", *(f"  {kind} {name};" for name, _, kind in scalars), "};"] if scalars else []
    heads = [
        f"device {'const ' if access == 'read' else ''}{kinds[dtype]}* {name} [[buffer({i})]]"
        for i, (name, dtype, access) in enumerate(arrays)
    ]
    heads += [f"constant {entry}_args& args [[buffer({len(arrays)})]]"] if scalars else []
    heads += [f"{kind} {name} [[{name}]]" for name, kind in BUILTINS.items() if name in body]
    before = HEADER.splitlines() + struct
    head = [f"[[kernel, max_total_threads_per_threadgroup({threads})]] void {entry}(", ",\n".join(heads), ") {"]
    head = "\n".join(head).splitlines()
    first = [f"  const {kind} {name} = args.{name};" for name, _, kind in scalars]
    params = [ParamFact(n, "pointer", d, a) for n, d, a in arrays]  # type: ignore[arg-type]
    params += [ParamFact(n, "scalar", d) for n, d, _ in scalars]
    at = {"metal.head": len(before) + 1, "metal.body": len(before) + len(head) + 1}
    facts = LaunchFacts(entry, tuple(params), (blocks, 1, 1), (threads, 1, 1), shared, attributes=at)
    return KernelText("\n".join([*before, *head, *first]) + "\n" + slab + body + "}\n", facts)


def launch(adapter: Any, text: KernelText, *values: Any) -> list[np.ndarray]:
    """Run a text on copies of NumPy arrays; return those that it writes."""
    given = [adapter.from_host(v) if isinstance(v, np.ndarray) else v for v in values]
    adapter.load(text)(*given)
    adapter.synchronize()
    kinds = zip(given, text.facts.params, strict=True)
    return [adapter.to_host(v) for v, p in kinds if p.kind == "pointer" and p.access != "read"]


def lanes(adapter: Any) -> None:
    """Lanes are numbered like threads: the index in a simdgroup is the linear index modulo 32."""
    body = "  out[thread_position_in_threadgroup.x] = thread_index_in_simdgroup;\n"
    (out,) = launch(adapter, probe("lanes", [("out", "uint32", "write")], body, 256), np.zeros(256, np.uint32))
    np.testing.assert_array_equal(out, np.arange(256) % 32)


def element_map(kind: str, dtype: Any) -> Callable[[Any], None]:
    """Make a check of the map of the elements of a simdgroup matrix, which no specification states."""

    def check(adapter: Any) -> None:
        body = (
            f"  simdgroup_matrix<{kind}, 8, 8> m;\n  simdgroup_load(m, a, 8);\n"
            "  const uint lane = thread_position_in_threadgroup.x;\n"
            "  out[lane * 2u] = float(m.thread_elements()[0]);\n"
            "  out[lane * 2u + 1u] = float(m.thread_elements()[1]);\n"
        )
        name = np.dtype(dtype).name
        text = probe("elements", [("a", name, "read"), ("out", "float32", "write")], body, 32)
        a = np.arange(64, dtype=np.float32).astype(dtype)
        (out,) = launch(adapter, text, a, np.zeros(64, np.float32))
        lane = np.arange(32)
        q = lane // 4
        row, column = (q & 4) + (lane // 2) % 4, 2 * (q & 2) + 2 * (lane % 2)
        np.testing.assert_array_equal(out, np.stack([row * 8 + column, row * 8 + column + 1], 1).reshape(-1))

    return check


def threadgroup_memory(adapter: Any) -> None:
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
    np.testing.assert_array_equal(out, np.arange(8192)[::-1] * 3)


def scalar_bytes(adapter: Any) -> None:
    """Scalars of all sizes arrive as they were given."""
    scalars = (("a", "int8", "char"), ("b", "bool", "bool"), ("c", "int64", "long"), ("d", "uint16", "ushort"),
               ("e", "uint64", "ulong"), ("f", "int32", "int"))  # fmt: skip
    lines = "".join(f"  out[{i}] = (long){name};\n" for i, (name, _, _) in enumerate(scalars))
    text = probe("scalars", [("out", "int64", "write")], lines, 1, scalars=scalars)
    values = (-3, True, -(2**40) - 1, 65535, 2**63 - 1, -(2**31))
    (out,) = launch(adapter, text, np.zeros(6, np.int64), *values)
    np.testing.assert_array_equal(out, values)


def untouched(adapter: Any) -> None:
    """What a kernel does not write keeps its value, however often it is launched without waiting."""
    body = (
        "  const uint i = threadgroup_position_in_grid.x * 32u + thread_position_in_threadgroup.x;\n"
        "  if (i % 3u == 0u) c[i] += a[i % 5u];\n"
    )
    text = probe("untouched", [("a", "float32", "read"), ("c", "float32", "readwrite")], body, 32, blocks=4)
    start = np.arange(128, dtype=np.float32)
    a, c = adapter.from_host(np.arange(5, dtype=np.float32)), adapter.from_host(start.copy())
    call = adapter.load(text)
    for _ in range(4):
        call(a, c)
    adapter.synchronize()
    expected = start + 4 * np.where(np.arange(128) % 3 == 0, np.arange(128) % 5, 0)
    np.testing.assert_array_equal(adapter.to_host(c), expected)


def precise(adapter: Any) -> None:
    """Arithmetic is precise: NaN and infinities are what they are, and nothing is contracted or reassociated."""
    body = (
        "  out[0] = a[0] != a[0] ? 1.0f : 0.0f;\n  out[1] = isinf(a[1]) ? 1.0f : 0.0f;\n"
        "  out[2] = (a[2] + a[3]) - a[3];\n  out[3] = precise::sqrt(a[4]);\n"
    )
    text = probe("exactness", [("a", "float32", "read"), ("out", "float32", "write")], body, 1)
    a = np.array([np.nan, np.inf, 1e-8, 1, 2], np.float32)
    (out,) = launch(adapter, text, a, np.zeros(4, np.float32))
    np.testing.assert_array_equal(out, np.array([1, 1, 0, np.sqrt(np.float32(2))], np.float32))


def assumptions() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield the checks by name."""
    import ml_dtypes

    yield "lanes are numbered like threads", lanes
    for kind, dtype in (("float", np.float32), ("half", np.float16), ("bfloat", ml_dtypes.bfloat16)):
        yield f"elements of simdgroup matrices of {kind}", element_map(kind, dtype)
    yield "threadgroup memory", threadgroup_memory
    yield "bytes of scalars", scalar_bytes
    yield "what is not written stays", untouched
    yield "precise arithmetic", precise


def check_assumptions(report: Report, adapter: Any) -> None:
    """Run all checks on an adapter."""
    for name, check in assumptions():
        try:
            check(adapter)
        except (AssertionError, TileError) as error:
            report.add(f"assumption, {adapter.name}", name, "WRONG", str(error).strip())
        else:
            report.add(f"assumption, {adapter.name}", name, "ok")


# --- the conformance kit ------------------------------------------------------------------------------------------


def conformance(report: Report, runtime: str, part: str, folder: Path) -> None:
    """Run the kit in a process of its own and keep its summary and its log."""
    command = [sys.executable, "-m", "pytest", "--pyargs", "tile_core.testing", "--tile-backend", "metal", "-q"]
    command += ["-p", "no:cacheprovider", "--tile-runtime", runtime, *(["--tile-part", part] if part else [])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    log = folder / f"{REPORT}-conformance-{runtime}.log"
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    summary = re.search(r"=+ tile conformance.*", done.stdout, re.DOTALL)
    text = summary[0][-4000:] if summary else (done.stdout + done.stderr)[-4000:]
    report.conformance[runtime] = {
        "command": " ".join(command[1:]),
        "summary": text.strip(),
        "code": str(done.returncode),
    }
    outcome = "ok" if done.returncode == 0 else "WRONG"
    report.add("conformance", runtime, outcome, f"exit code {done.returncode}, {log.name}")


# --- speed --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One side of a comparison: ``launch`` queues the work once, ``wait`` waits for all of it.

    ``allocates`` says whether a launch makes its output anew.
    """

    name: str
    launch: Callable[[], object]
    wait: Callable[[], object]
    allocates: bool


def compare(
    sides: list[Side], *, warmup: int = 5, repeat: int = 20, launches: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:  # fmt: skip
    """Time sides against each other, fairly: return the seconds per launch of each sample of each side.

    All sides allocate their outputs or none does; each has as many launches before the first sample, as many samples of
    as many launches, and waits at the start and the end of each; samples take turns, so that all meet the same machine.
    """
    if len({side.allocates for side in sides}) > 1:
        kinds = ", ".join(f"{s.name}: {'allocates' if s.allocates else 'given'}" for s in sides)
        raise ValueError(f"outputs must be allocated by all sides or by none ({kinds})")
    if len({side.name for side in sides}) != len(sides):
        raise ValueError("sides have names of their own")
    for side in sides:
        for _ in range(warmup):
            side.launch()
        side.wait()
    found: dict[str, list[float]] = {side.name: [] for side in sides}
    for turn in range(repeat):
        for i in range(len(sides)):
            side = sides[(turn + i) % len(sides)]
            side.wait()
            start = clock()
            for _ in range(launches):
                side.launch()
            side.wait()
            found[side.name].append((clock() - start) / launches)
    return found


def matmul(M: int, N: int, K: int, dtype: str = "float16", block: int = 64, step: int = 32) -> Any:
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, step), dtype)
            B_s = T.alloc_shared((step, block), dtype)
            C_f = T.alloc_fragment((block, block), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, step), num_stages=1):
                T.copy(A[by * block, k * step], A_s)
                T.copy(B[k * step, bx * block], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block, bx * block])

    return gemm


def scale(n: int, dtype: str = "float32") -> Any:
    @T.prim_func
    def twice(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 1024), threads=256) as bx:
            for i in T.Parallel(1024):
                B[bx * 1024 + i] = A[bx * 1024 + i] * T.float32(2)

    return twice


def mlx_rows(sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Side]]]:
    """Yield comparisons with MLX. Its functions return new arrays, so both sides allocate."""
    import mlx.core as mx

    def wait() -> None:
        mx.synchronize(mx.default_stream(mx.gpu))

    for size in sizes:
        a, b = (mx.random.normal((size, size)).astype(mx.float16) for _ in range(2))
        mx.eval(a, b)
        ours = tile.compile(matmul(size, size, size), target="metal", runtime="mlx", out_idx=-1)
        yield (
            f"matmul float16 {size}",
            [
                Side("tile (mlx)", lambda k=ours, a=a, b=b: k(a, b), wait, True),
                Side("mx.matmul", lambda a=a, b=b: mx.async_eval(mx.matmul(a, b)), wait, True),
            ],
        )
    x = mx.random.normal((sizes[-1] ** 2,))
    mx.eval(x)
    twice = tile.compile(scale(x.size), target="metal", runtime="mlx", out_idx=-1)
    yield (
        f"scale float32 {x.size}",
        [
            Side("tile (mlx)", lambda: twice(x), wait, True),
            Side("mx.multiply", lambda: mx.async_eval(mx.multiply(x, 2.0)), wait, True),
        ],
    )


def torch_rows(sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Side]]]:
    """Yield comparisons with torch.mps. Both sides are given their output."""
    import torch

    wait = torch.mps.synchronize
    for size in sizes:
        a, b = (torch.randn(size, size, device="mps", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        ours = tile.compile(matmul(size, size, size), target="metal", runtime="torch")
        yield (
            f"matmul float16 {size}",
            [
                Side("tile (torch)", lambda k=ours, a=a, b=b, c=c: k(a, b, c), wait, False),
                Side("torch.mm", lambda a=a, b=b, c=c: torch.mm(a, b, out=c), wait, False),
            ],
        )
    x = torch.randn(sizes[-1] ** 2, device="mps")
    y = torch.empty_like(x)
    twice = tile.compile(scale(x.numel()), target="metal", runtime="torch")
    yield (
        f"scale float32 {x.numel()}",
        [
            Side("tile (torch)", lambda: twice(x, y), wait, False),
            Side("torch.mul", lambda: torch.mul(x, 2.0, out=y), wait, False),
        ],
    )


def dry_rows(sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Side]]]:
    """Yield a comparison that runs anywhere: it shows that the measuring works, and no speed."""
    (size,) = sizes
    a, b = (np.ones((size, size), np.float16) for _ in range(2))
    ours = tile.compile(matmul(size, size, size, block=16, step=16), target="metal", runtime="emulator", out_idx=-1)
    np.testing.assert_array_equal(ours(a, b), a @ b)
    yield (
        f"matmul float16 {size}",
        [
            Side("tile (emulator)", lambda: ours(a, b), lambda: None, True),
            Side("numpy", lambda: a @ b, lambda: None, True),
        ],
    )


ROWS: Mapping[str, Callable[[tuple[int, ...]], Iterator[tuple[str, list[Side]]]]] = {
    "mlx": mlx_rows, "torch": torch_rows, "emulator": dry_rows,
}  # fmt: skip


def benchmark(report: Report, runtime: str, sizes: tuple[int, ...], **how: int) -> None:
    """Compare with the library of a runtime."""
    try:
        for name, sides in ROWS[runtime](sizes):
            seconds = compare(sides, **how)
            report.timings.append({"name": name, "runtime": runtime, "seconds": seconds, **how})
            medians = ", ".join(f"{side} {statistics.median(s) * 1e6:.0f} us" for side, s in seconds.items())
            report.add(f"speed, {runtime}", name, "ok", medians)
    except TileError as error:
        report.add(f"speed, {runtime}", "kernels", "WRONG", str(error))


# --- the command --------------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return what a reader of the report must know of this machine."""
    from tile_metal import doctor

    known = {d.metadata["Name"].lower(): d.version for d in distributions() if d.metadata["Name"]}
    rows = {"system": f"{platform.platform()} {platform.machine()}", "Python": platform.python_version()}
    rows |= {name: known[name] for name in PACKAGES if name in known}
    return rows | {check.name: f"{check.status}: {check.detail}" for check in doctor.checks()}


def runtimes() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the adapters of the libraries that launch here, and why others do not."""
    found, reasons = {}, {}
    for adapter in installed().runtimes(installed().resolve_target("metal")):
        if adapter.name != "metal":
            try:
                adapter.preferred("the self-test")
                found[adapter.name] = adapter
            except TileError as error:
                reasons[adapter.name] = str(error.facts["reason"])
    return found, reasons


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="no Mac: by the emulator, tiny sizes")
    parser.add_argument("--output", type=Path, default=Path(REPORT), help="folder of the report")
    parser.add_argument("--part", default="", metavar="K/N", help="only a part of the conformance kit")
    parser.add_argument("--skip", nargs="*", default=(), choices=("conformance", "speed"), help="what to leave out")
    parser.add_argument("--sizes", type=int, nargs="+", default=(1024, 2048, 4096), help="of the products")
    given = parser.parse_args()
    found, reasons = runtimes()
    if given.dry_run:
        plugins = installed()
        found = {"emulator": find_runtime(plugins, plugins.resolve_target("metal"), "emulator")}
    elif not found:
        why = "; ".join(reasons.values())
        print(f"There is no Metal device here ({why}). Run this on a Mac with Apple silicon, or pass --dry-run.")
        return 0
    report = Report(machine())
    for name, why in reasons.items():
        report.add("library", name, "left", why)
    given.output.mkdir(parents=True, exist_ok=True)
    dry = given.dry_run
    for name, adapter in found.items():
        check_assumptions(report, adapter)
        if "conformance" not in given.skip:
            conformance(report, name, given.part or ("1/400" if dry else ""), given.output)
        if "speed" not in given.skip:
            sizes = (32,) if dry else tuple(given.sizes)
            how = {"warmup": 1, "repeat": 1, "launches": 1} if dry else {}
            benchmark(report, name, sizes, **how)
    page = report.write(given.output)
    print(f"\n{report.failed} findings are wrong. The report is {page} (and .json beside it): please send both.")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
