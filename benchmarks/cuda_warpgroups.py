"""Products and attention on Hopper beside torch's libraries and Triton, in one run.

    python benchmarks/cuda_warpgroups.py [--sections gemm_8192,attention_d128_full,...] [--seconds 4] [--minutes 9]
                                         [--window MS] [--only TEXT]
                                         [--export FOLDER | --artefacts FOLDER] [--json FILE]

The configurations are data in `warpgroup_programs` and `triton_sides`. All sides of a section are interleaved in an
order that is drawn anew for every round, and a ratio is the median over rounds: the time of the fastest of torch's
sides divided by that of the side, so more than 1 is faster than the library. Every result is checked first, with
outputs full of NaN before. A side that cannot run is skipped with the reason. Sections run in a process of their own: a
kernel that does not end is named, and the rest is measured without it.

Sections ``options_...``, such as ``options_gemm_8192`` and ``options_attention_d128_full``, put options beside each
other that are not the default.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_sides import _WINDOW_MS, Candidate, Side, _once, device_of, export, fault, options, poisoned
from sides import Row, run, table
from warpgroup_programs import (
    HEADS,
    LOG2_E,
    SPARSE_TYPES,
    Heads,
    attentions,
    brain_gemms,
    gemms,
    gradients,
    options_of_attentions,
    options_of_gemms,
    options_of_scaled_gemms,
    row_products,
    scaled_gemms,
    sparse_gemms,
    typed_gemms,
)

import tile_core as tile

_ENDS_WITHIN = 20.0  # seconds that a kernel has when it runs first
_LEAST_ROUNDS = 7
_OTHERS = ("unscaled", "unpruned")
"""Kinds of sides that compute something else, as what a user had before."""


@dataclass(frozen=True)
class Tried:
    """A side of a section.

    Attributes
    ----------
    name
        In the table.
    make
        Returns what runs it; may raise.
    out
        What it writes, or ``None`` for sides that return their result.
    kind
        ``"ours"``, ``"torch"`` or ``"triton"``; ``"base"`` is one of ours that ratios are taken to.
    """

    name: str
    make: Callable[[], Side]
    out: Any
    kind: str


@dataclass(frozen=True)
class Section:
    """Sides of one computation: ``wrong`` reports result errors, ``work`` is a run's work."""

    sides: list[Tried]
    wrong: Callable[[Any], str]
    work: float


Candidates = Callable[[Any], list[Candidate]]
"""Makes our kernels of a size."""


def dense(
    torch: Any, arguments: argparse.Namespace, size: int, made: Candidates = gemms, dtype: str = "float16"
) -> Section:  # fmt: skip
    """Return products of square matrices of float16, or of another type."""
    kind = getattr(torch, dtype)
    a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
    c, turned = poisoned(torch, (size, size), kind), b.t().contiguous()
    sides = []
    for x in wanted(arguments, made(size)):
        sides.append(Tried(x.name, _ours(arguments, x, a, turned if "_nt" in x.name else b, c), c, "ours"))
    sides.append(Tried("torch.mm", lambda: functools.partial(torch.mm, a, b, out=c), c, "torch"))
    sides.append(Tried("torch.mm, B as (N, K)", lambda: functools.partial(torch.mm, a, turned.t(), out=c), c, "torch"))

    def plain(config: Any) -> Side:
        import triton_sides

        return triton_sides.gemm(a, b, c, config)

    sides += [Tried(f"triton {x}", functools.partial(plain, x), c, "triton") for x in _triton("GEMM")]
    return Section(sides, _against(torch, *_exact(a, b, 8 if dtype == "bfloat16" else 11)), 2.0 * size**3)


def sparse(torch: Any, arguments: argparse.Namespace, size: int) -> Section:
    """Return 2:4 sparse float16 products of square matrices."""
    from cuda_sparse import two_of_four

    full, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    pruned, values, words = two_of_four(torch, full)
    along, c = words.t().contiguous(), poisoned(torch, (size, size), torch.float16)
    sides = []
    for x in wanted(arguments, sparse_gemms(size)):
        make = _ours(arguments, x, values, along if "_et_" in x.name else words, b, c)
        sides.append(Tried(x.name, make, c, "ours"))
    turned = b.t().contiguous()

    def library(right: Any) -> Side:
        return functools.partial(torch.mm, torch.sparse.to_sparse_semi_structured(pruned), right)

    sides.append(Tried("torch semi-structured", functools.partial(library, b), None, "torch"))
    sides.append(Tried("torch semi-structured, B as (N, K)", functools.partial(library, turned.t()), None, "torch"))
    sides.append(Tried("torch.mm (dense)", lambda: functools.partial(torch.mm, pruned, b, out=c), c, "dense"))
    return Section(sides, _against(torch, *_exact(pruned, b)), 2.0 * size**3)


def sparse_typed(torch: Any, arguments: argparse.Namespace, size: int, dtype: str) -> Section:
    """Return 2:4 sparse products of an element type beside our dense one and cuSPARSELt's.

    The dense one multiplies what the sparse ones do, zeros included, and, as another side, A as it was before.
    """
    from cuda_sparse import two_of_four

    def made(x: Any) -> Any:
        return (x * 16).round().clamp(-128, 127).to(torch.int8) if dtype == "int8" else x.to(getattr(torch, dtype))

    full, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    pruned, values, words = two_of_four(torch, full)
    full, pruned, values, b, along = made(full), made(pruned), made(values), made(b), words.t().contiguous()
    c = poisoned(torch, (size, size), getattr(torch, SPARSE_TYPES[dtype][1]))
    right = b.t() if SPARSE_TYPES[dtype][3] else b
    sides = []
    for x in wanted(arguments, typed_gemms(size, dtype)):
        if "_sp_" in x.name:
            given = values, along if "_et_" in x.name else words, b
            sides.append(Tried(x.name, _ours(arguments, x, *given, c), c, "ours"))
            continue
        sides.append(Tried(x.name, _ours(arguments, x, pruned, b, c), c, "base"))
        sides.append(Tried(f"{x.name}, A not pruned", _ours(arguments, x, full, b, c), c, "unpruned"))

    def library(search: bool) -> Side:
        stored = torch._cslt_compress(pruned)
        if not search:
            return functools.partial(torch._cslt_sparse_mm, stored, right, out_dtype=c.dtype)
        best = torch._cslt_sparse_mm_search(stored, right, out_dtype=c.dtype)
        return functools.partial(torch._cslt_sparse_mm, stored, right, out_dtype=c.dtype, alg_id=int(best))

    for search in (False, True):
        name = f"cuSPARSELt{', best of its algorithms' * search}"
        sides.append(Tried(name, functools.partial(library, search), None, "library"))
    left, exact = pruned.double(), right.double()
    expected = left @ exact
    bound = 2.0**-8 * expected.abs() + 2.0**-9 * (left.abs() @ exact.abs())
    return Section(sides, _against(torch, expected, 0 * bound if dtype == "int8" else bound), 2.0 * size**3)


def scaled(torch: Any, arguments: argparse.Namespace, size: int, made: Candidates = scaled_gemms) -> Section:
    """Return products of 8-bit floats with row scales of A and B, stored (N, K)."""
    a, b = (torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    sa, sb = (torch.rand(size, device="cuda") + 0.5 for _ in range(2))
    c, one = poisoned(torch, (size, size), torch.bfloat16), torch.ones((), device="cuda")
    sides = [Tried(x.name, _ours(arguments, x, a, b, sa, sb, c), c, "ours") for x in wanted(arguments, made(size))]
    for fast in (True, False):
        more = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
        rows = functools.partial(torch._scaled_mm, a, b.t(), sa[:, None], sb[None, :], **more)
        name = f"torch._scaled_mm by rows{', fast accumulation' if fast else ''}"
        sides.append(Tried(name, functools.partial(lambda side: side, rows), None, "torch"))
    whole = functools.partial(torch._scaled_mm, a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    sides.append(Tried("torch._scaled_mm, no rows, fast accumulation", lambda: whole, None, "unscaled"))
    left, right = a.double() * sa[:, None], b.double() * sb[:, None]
    expected = left @ right.t()
    # bfloat16 results; the matrix units keep few bits of each sum of 8-bit products. Accumulators of 14 bits are
    # truncated towards zero at each of 256 steps; torch's fast accumulation does the same.
    bound = 2.0**-8 * expected.abs() + 2.0**-9 * (left.abs() @ right.abs().t())
    return Section(sides, _against(torch, expected, bound), 2.0 * size**3)


def attend(torch: Any, arguments: argparse.Namespace, h: Heads, made: Candidates = attentions) -> Section:
    """Return attention forward, float16."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (torch.randn(h.shape, device="cuda").half() for _ in range(3))
    o = poisoned(torch, h.shape, torch.float16)
    sides = [Tried(x.name, _ours(arguments, x, q, k, v, o), o, "ours") for x in wanted(arguments, made(h))]

    def library(backend: Any) -> Side:
        def once() -> Any:
            with sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=h.causal)

        return once

    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        sides.append(Tried(f"torch {name}", functools.partial(library, backend), None, "torch"))

    def plain(config: Any) -> Side:
        import triton_sides

        return triton_sides.attention(q, k, v, o, h.causal, config)

    sides += [Tried(f"triton {x}", functools.partial(plain, x), o, "triton") for x in _triton("ATTENTION")]
    expected, bound = torch.empty(h.shape, device="cuda"), torch.empty(h.shape, device="cuda")
    for at in ((i, j) for i in range(h.batch) for j in range(h.heads)):
        scores = q[at].float() @ k[at].float().t() / h.dim**0.5
        if h.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), float("-inf"))
        weights = torch.softmax(scores, -1)
        expected[at], bound[at] = weights @ v[at].float(), 2.0**-9 * (weights @ v[at].float().abs()) + 2.0**-14
    return Section(sides, _against(torch, expected, bound), h.work)


def differentiate(torch: Any, arguments: argparse.Namespace, h: Heads) -> Section:
    """Return float16 gradients of attention, from the output and its rows' totals."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v, g = (torch.randn(h.shape, device="cuda").half() for _ in range(4))
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=h.causal)
    logs = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, h.causal)[1].float() * LOG2_E
    products, dq = torch.empty(logs.shape, device="cuda"), torch.zeros(h.shape, device="cuda")
    found = poisoned(torch, (3, *h.shape), torch.float16)
    rows = _ours(arguments, row_products(h), out.detach(), g, products)

    def ours(candidate: Candidate) -> Side:
        first, second = rows(), _ours(arguments, candidate, q, k, v, g, logs, products, dq, found[1], found[2])()

        def once() -> None:
            dq.zero_()
            first()
            second()
            found[0].copy_(dq)

        return once

    sides = [Tried(x.name, functools.partial(ours, x), found, "ours") for x in wanted(arguments, gradients(h))]
    library = functools.partial(torch.autograd.grad, out, inputs, g, retain_graph=True)
    sides.append(Tried("torch cuDNN", lambda: library, None, "torch"))
    expected = torch.stack(library()).double()
    # Two ways to round weights and their gradients to float16, and to accumulate them in float32.
    size = expected.abs().amax(dim=(-2, -1), keepdim=True)
    against = _against(torch, expected, 2.0**-7 * size + 2.0**-8 * expected.abs())
    return Section(sides, lambda x: against(torch.stack(x) if isinstance(x, tuple) else x), 2.5 * h.work)


SECTIONS: dict[str, Callable[[Any, argparse.Namespace], Section]] = {
    "gemm_8192": functools.partial(dense, size=8192),
    "gemm_4096": functools.partial(dense, size=4096),
    **{
        f"gemm_bfloat16_{n}": functools.partial(dense, size=n, made=brain_gemms, dtype="bfloat16") for n in (8192, 4096)
    },
    **{f"attention_{h}": functools.partial(attend, h=h) for h in HEADS},
    **{f"backward_{h}": functools.partial(differentiate, h=h) for h in HEADS},
    "gemm_sp_8192": functools.partial(sparse, size=8192),
    "gemm_sp_4096": functools.partial(sparse, size=4096),
    **{f"gemm_sp_{name}": functools.partial(sparse_typed, size=8192, dtype=name) for name in SPARSE_TYPES},
    "fp8_8192": functools.partial(scaled, size=8192),
}

#: Options beside each other that are not the default: not measured unless ``--sections`` names them.
OPTIONS: dict[str, Callable[[Any, argparse.Namespace], Section]] = {
    **{f"options_gemm_{n}": functools.partial(dense, size=n, made=options_of_gemms) for n in (8192, 4096)},
    "options_fp8_8192": functools.partial(scaled, size=8192, made=options_of_scaled_gemms),
    **{f"options_attention_{h}": functools.partial(attend, h=h, made=options_of_attentions) for h in HEADS},
}


def everything() -> list[Candidate]:
    """Return all of our kernels."""
    products = [x for size in (8192, 4096) for make in (gemms, brain_gemms, sparse_gemms) for x in make(size)]
    backward = [x for h in HEADS for x in (row_products(h), *gradients(h))]
    beside = [*options_of_gemms(8192), *options_of_gemms(4096), *options_of_scaled_gemms(8192)]
    heads = [x for made in (attentions, options_of_attentions) for h in HEADS for x in made(h)]
    small = [x for name in SPARSE_TYPES for x in typed_gemms(8192, name)]
    return [*products, *small, *scaled_gemms(8192), *beside, *heads, *backward]


def wanted(arguments: argparse.Namespace, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the requested candidates, without those that did not end."""
    return [c for c in candidates if arguments.only in c.name and c.name not in arguments.skip.split(",")]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per side of each section."""
    if arguments.export is not None:
        chosen = [c for c in everything() if any(c.name.startswith(s) for s in arguments.sections.split(","))]
        return export(arguments, chosen)
    if arguments.child:
        return _work(arguments)
    rows: list[Row] = []
    end, left, skip = time.monotonic() + 60 * arguments.minutes, arguments.sections.split(","), arguments.skip
    with tempfile.TemporaryDirectory() as folder:
        while left and time.monotonic() < end:
            said = Path(folder, f"{len(left)}_{skip.count(',')}")
            command = [sys.executable, __file__, *sys.argv[1:], "--child", str(said), "--sections", ",".join(left)]
            try:
                subprocess.run([*command, "--skip", skip], check=False, timeout=end - time.monotonic())
            except subprocess.TimeoutExpired:
                print("stopped: no time is left")
            lines = [json.loads(x) for x in said.read_text().splitlines()] if said.exists() else []
            rows += [row for line in lines for row in line.get("rows", ())]
            done = {line["section"] for line in lines if "rows" in line}
            faulty = [line["faulty"] for line in lines if "faulty" in line]
            remaining = [x for x in left if x not in done]
            if faulty:
                skip += f",{faulty[0]}"
            elif remaining:
                print(f"left out: {remaining.pop(0)}, whose process ended")
            left = remaining
    return rows


def _work(arguments: argparse.Namespace) -> list[Row]:
    """Measure sections, and write a line after each."""
    import torch

    print(device_of(torch), flush=True)
    for name in arguments.sections.split(","):
        began = time.monotonic()
        try:
            rows = _measured(torch, arguments, name, {**SECTIONS, **OPTIONS}[name](torch, arguments))
        except Exception as error:  # a library that this machine lacks, or no memory left
            print(f"left out: section {name}: {_first(error)}", flush=True)
            rows = []
        _say(arguments, {"section": name, "rows": rows})
        table(f"{name}, {time.monotonic() - began:.0f} s", rows)
        sys.stdout.flush()
        torch.cuda.empty_cache()
    os._exit(0)  # what is left of a fault is of no interest


def _measured(torch: Any, arguments: argparse.Namespace, section: str, of: Section) -> list[Row]:
    good: list[tuple[Tried, Side]] = []
    for tried in of.sides:
        if tried.name in arguments.skip.split(","):
            continue
        try:
            if tried.out is not None:
                tried.out.fill_(float("nan") if tried.out.dtype.is_floating_point else -1)
            side = tried.make()
            found = side()
            if not _ended(torch):
                _give_up(arguments, tried, "does not end")
            wrong = "" if tried.kind in _OTHERS else of.wrong(found if tried.out is None else tried.out)
        except Exception as error:  # whatever a library raises that lacks this
            print(f"left out: {tried.name}: {_first(error)}", flush=True)
            try:
                torch.cuda.synchronize()
            except Exception as after:  # a fault, after which nothing runs in this process
                _give_up(arguments, tried, _first(after))
            continue
        if wrong:
            print(f"WRONG: {tried.name}: {wrong}", flush=True)
        if not wrong or tried.kind != "ours":
            good.append((tried, side))
    times = rounds(torch, [side for _, side in good], arguments.seconds, arguments.window)
    medians = [statistics.median(found) for found in times]
    base = min(
        (i for i, (t, _) in enumerate(good) if t.kind in ("torch", "base")), key=lambda i: medians[i], default=None
    )
    rows: list[Row] = []
    for (tried, _), found, ms in zip(good, times, medians, strict=True):
        ratio = None if base is None else statistics.median(b / t for b, t in zip(times[base], found, strict=True))
        rows.append({
            "side": tried.name, "section": section, "ms": round(ms, 4), "T/s": round(of.work / ms / 1e9, 1),
            "ratio": None if ratio is None else f"{ratio:.3f}", "kind": tried.kind,
        })  # fmt: skip
    return sorted(rows, key=lambda row: float(row["ms"]))


def rounds(torch: Any, sides: list[Side], seconds: float, window: float = _WINDOW_MS) -> list[list[float]]:
    """Return each side's times in ms, one per round, in random order per round.

    Each side runs for at least this number of ms per round. In short rounds all sides have the clock that the power of
    all of them together leaves; in long ones each has its own, if the device is at its power limit.
    """
    batches = [max(1, round(window / max(_once(torch, side, 2), 1e-3))) for side in sides]
    times: list[list[float]] = [[] for _ in sides]
    end = time.monotonic() + seconds
    while sides and (len(times[0]) < _LEAST_ROUNDS or time.monotonic() < end):
        for at in random.sample(range(len(sides)), len(sides)):
            times[at].append(_once(torch, sides[at], batches[at]))
    return times


def _ours(arguments: argparse.Namespace, candidate: Candidate, *arrays: Any) -> Callable[[], Side]:
    def make() -> Side:
        if arguments.artefacts is None:
            kernel = candidate.compiled(arguments.target or "cuda")
        else:
            kernel = tile.load(arguments.artefacts / f"{candidate.name}.tile")
        return functools.partial(kernel, *arrays)

    return make


def _triton(table_name: str) -> tuple[Any, ...]:
    """Return the configurations of Triton kernels; none without Triton."""
    try:
        import triton_sides
    except ImportError as error:
        print(f"left out: Triton: {_first(error)}")
        return ()
    return tuple(getattr(triton_sides, table_name))


def _exact(a: Any, b: Any, bits: int = 11) -> tuple[Any, Any]:
    """Return a product in float64, and the error bound of its float32 accumulation.

    The result has the given number of bits.
    """
    expected = a.double() @ b.double()
    # The matrix units truncate what they add: one unit in the last place for each term.
    return expected, 2.0**-23 * a.shape[1] * (a.double().abs() @ b.double().abs()) + 2.0**-bits * expected.abs()


def _against(torch: Any, expected: Any, bound: Any) -> Callable[[Any], str]:
    return lambda found: fault(torch, found, expected, bound)


def _ended(torch: Any) -> bool:
    """Whether everything that was launched ends in time."""
    event = torch.cuda.Event()
    event.record()
    end = time.monotonic() + _ENDS_WITHIN
    while not event.query():
        if time.monotonic() > end:
            return False
        time.sleep(1e-3)
    return True


def _give_up(arguments: argparse.Namespace, tried: Tried, why: str) -> None:
    """End this process; the next one goes on without a side."""
    _say(arguments, {"faulty": tried.name})
    print(f"WRONG: {tried.name}: {why}", flush=True)
    os._exit(1)


def _first(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _say(arguments: argparse.Namespace, line: dict[str, Any]) -> None:
    with arguments.child.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _options(parser: Any) -> None:
    options(parser)
    parser.add_argument(
        "--sections", default=",".join(SECTIONS), help=f"in this order; others are {', '.join(OPTIONS)}"
    )
    parser.add_argument("--minutes", type=float, default=9.0, help="after which nothing new begins")
    parser.add_argument("--window", type=float, default=_WINDOW_MS, help="milliseconds that a side runs at a time")
    parser.add_argument("--skip", default="", help="kernels to leave out")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)


if __name__ == "__main__":
    run("Products and attention on warpgroup instructions", measure, _options)
