"""Detect ordinary tile choices far slower than the best without a performance warning.

Each kind of kernel has 40 legal choices.

    python benchmarks/cuda_cliffs.py [--seed N] [--kinds gemm,gemm_sp,attention] [--count 40]
                                     [--export FOLDER | --artefacts FOLDER] [--json FILE]

Tiles, threads, stages and accumulator types are drawn anew each time; rejected draws are repeated. Kernels have the
default options. A row has the time relative to the best kernel, and the compiler's notes: a kernel of more than twice
the best time should have a performance warning that names a better choice nearby. Kernels from files need the
``--seed`` that they were exported with, and `notes.json` beside them.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuda_gemm import Config, product
from cuda_sides import Candidate, Side, device_of, export, fault, medians, options, poisoned
from cuda_sparse import SparseConfig, sparse_product, two_of_four
from sides import Row, run
from warpgroup_programs import AttentionConfig, Heads, attention

import tile_core as tile
from tile_core.errors import TileError
from tile_core.reports import report_json

_FAR = 2.0
_SIZE = 4096
_HEADS = (Heads(2, 16, 4096, 128, False), Heads(2, 16, 4096, 64, True))
_ENOUGH = 0.25  # seconds of a kernel that is timed alone


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: ``draw`` returns a random one, legal or not.

    ``given`` returns its arrays and the check of a result.
    """

    draw: Callable[[random.Random], Candidate]
    given: Callable[[Any, str], tuple[tuple[Any, ...], Any, Callable[[Any], str]]]


def drawn_product(rng: random.Random, sparse: bool) -> Candidate:
    """Return a product, with A sparse or not."""
    accumulator = rng.choice(("float32", "float32", "float16"))
    sizes = rng.choice((64, 128, 192, 256)), rng.choice((64, 128, 192, 256)), rng.choice((32, 64, 128))
    more: dict[str, Any] = {"panel": 0, "out": "float16", "accum": accumulator, "staged": rng.random() < 0.3}
    threads, stages = rng.choice((128, 256, 384)), rng.choice((1, 2, 3, 4, 5))
    if not sparse:
        c = Config(*sizes, threads, stages, **more)
        return Candidate(f"gemm_{c}_{accumulator}", functools.partial(product, _SIZE, c))
    s = SparseConfig(*sizes, threads, stages, **more, turned=rng.random() < 0.5)
    return Candidate(f"gemm_sp_{s}_{accumulator}", functools.partial(sparse_product, _SIZE, s))


def drawn_attention(rng: random.Random) -> Candidate:
    """Return an attention of either size."""
    # The program has whole tiles of queries and keys.
    sizes = rng.choice((64, 128, 256)), rng.choice((32, 64, 128, 256)), rng.choice((128, 256, 384))
    scores = rng.choice(("float32", "float32", "float16"))
    c = AttentionConfig(*sizes, rng.choice((1, 2, 3, 4)), staged=rng.random() < 0.5, scores=scores)
    h = rng.choice(_HEADS)
    return Candidate(f"attention_{h}_{c}", functools.partial(attention, h, c), {"numerics": "fast"})


def legal(kind: Kind, arguments: argparse.Namespace, name: str) -> Iterator[Candidate]:
    """Yield candidates that compile, each once."""
    rng = random.Random(f"{arguments.seed} {name}")
    seen: set[str] = set()
    target = arguments.target or "cuda:sm_90a"
    while len(seen) < 2000:
        candidate = kind.draw(rng)
        if candidate.name in seen:
            continue
        seen.add(candidate.name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                candidate.compiled(target)
        except TileError:
            continue
        yield candidate


def chosen(arguments: argparse.Namespace) -> dict[str, list[Candidate]]:
    """Return the candidates by kind and size; with files, the candidates of `notes.json`."""
    if arguments.artefacts is not None:
        noted = json.loads((arguments.artefacts / "notes.json").read_text())
        return {group: [Candidate(n, lambda: None) for n in of] for group, of in noted.items()}
    found: dict[str, list[Candidate]] = {}
    for name in arguments.kinds.split(","):
        for candidate in legal(KINDS[name], arguments, name):
            group = found.setdefault(_group(candidate.name), [])
            if len(group) < arguments.count:
                group.append(candidate)
            mine = [of for key, of in found.items() if key.startswith(f"{name}:")]
            if sum(map(len, mine)) >= arguments.count * (len(_HEADS) if name == "attention" else 1):
                break
    return found


def notes_of(candidate: Candidate, target: str) -> list[str]:
    """Return the compiler's notes on a kernel."""
    return [w["text"] for w in report_json(candidate.program(), target, dict(candidate.options))["warnings"]]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, the fastest of a group first."""
    groups = chosen(arguments)
    print("seed", arguments.seed)
    if arguments.export is not None:
        rows = [row for of in groups.values() for row in export(arguments, of)]
        notes = {g: {c.name: notes_of(c, arguments.target or "cuda:sm_90a") for c in of} for g, of in groups.items()}
        (arguments.export / "notes.json").write_text(json.dumps(notes, indent=1))
        return rows
    import torch

    print(device_of(torch))
    if arguments.artefacts is not None:
        notes = json.loads((arguments.artefacts / "notes.json").read_text())
    else:
        notes = {g: {c.name: notes_of(c, arguments.target or "cuda") for c in of} for g, of in groups.items()}
    return [row for group, of in groups.items() for row in judged(torch, arguments, group, of, notes[group])]


def judged(
    torch: Any, arguments: argparse.Namespace, group: str, of: list[Candidate], notes: dict[str, Any]
) -> list[Row]:
    """Return one group's rows; print the number of slow kernels without a warning."""
    sides: list[tuple[str, Side]] = []
    for candidate in of:
        inputs, out, wrong = KINDS[group.split(":")[0]].given(torch, candidate.name)
        try:
            if arguments.artefacts is None:
                kernel = candidate.compiled(arguments.target or "cuda")
            else:
                kernel = tile.load(arguments.artefacts / f"{candidate.name}.tile")
            out.fill_(float("nan"))
            kernel(*inputs, out)
            fault_found = wrong(out)
        except TileError as error:
            fault_found = str(error).splitlines()[0]
        if fault_found:
            print(f"WRONG: {candidate.name}: {fault_found}", flush=True)
        else:
            sides.append((candidate.name, functools.partial(kernel, *inputs, out)))
    times = medians(torch, [side for _, side in sides], _ENOUGH * len(sides), least=5)
    best = min(times)
    rows: list[Row] = []
    for (name, _), ms in sorted(zip(sides, times, strict=True), key=lambda found: found[1]):
        sentences = notes[name]
        near = any("nearest better" in s for s in sentences)
        cliff = "CLIFF" if ms > _FAR * best and not near else ""
        rows.append(
            {"kernel": name, "ms": ms, "times the best": ms / best, "warned": near, "": cliff, "notes": sentences}
        )
    far, bad = sum(ms > _FAR * best for ms in times), sum(bool(row[""]) for row in rows)
    early = [row["times the best"] for row in rows if row["warned"]]
    print(
        f"{group}: {len(rows)} kernels, {far} take more than {_FAR:g} times as long as the best, "
        f"{bad} of them without a warning"
    )
    print(f"of {len(early)} with a warning the fastest takes {min(early, default=0):.2f} times as long", flush=True)
    return rows


@functools.cache
def _products(torch: Any, sparse: bool) -> tuple[Any, ...]:
    a, b = (torch.randn(_SIZE, _SIZE, device="cuda").half() for _ in range(2))
    a, values, words = two_of_four(torch, a) if sparse else (a, None, None)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    return a, b, values, words, exact, size, poisoned(torch, (_SIZE, _SIZE), torch.float16)


def _of_product(torch: Any, name: str, sparse: bool) -> tuple[tuple[Any, ...], Any, Callable[[Any], str]]:
    a, b, values, words, exact, size, out = _products(torch, sparse)
    bits = 8 if name.endswith("float16") else 21  # float16 accumulators are rounded in each step along K
    judge = functools.partial(fault, torch, expected=exact, bound=2.0**-bits * size + 2.0**-10 * exact.abs())
    if not sparse:
        return (a, b), out, judge
    return (values, words.t().contiguous() if "_et" in name else words, b), out, judge


@functools.cache
def _attended(torch: Any, h: Heads) -> tuple[Any, ...]:
    q, k, v = (torch.randn(h.shape, device="cuda").half() for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=h.causal).double()
    return q, k, v, expected, poisoned(torch, h.shape, torch.float16)


def _of_attention(torch: Any, name: str) -> tuple[tuple[Any, ...], Any, Callable[[Any], str]]:
    h = next(h for h in _HEADS if f"attention_{h}_" in name)
    *inputs, expected, out = _attended(torch, h)
    bound = 2.0 ** (-6 if "float16" in name else -8) * (1 + expected.abs())
    return tuple(inputs), out, functools.partial(fault, torch, expected=expected, bound=bound)


def _group(name: str) -> str:
    kind = next(k for k in ("attention", "gemm_sp", "gemm") if name.startswith(k))
    return f"{kind}:{next((str(h) for h in _HEADS if f'attention_{h}_' in name), str(_SIZE))}"


KINDS = {
    "gemm": Kind(functools.partial(drawn_product, sparse=False), functools.partial(_of_product, sparse=False)),
    "gemm_sp": Kind(functools.partial(drawn_product, sparse=True), functools.partial(_of_product, sparse=True)),
    "attention": Kind(drawn_attention, _of_attention),
}


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of the draws")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--count", type=int, default=40, help="kernels of each kind and size")
    options(parser)


if __name__ == "__main__":
    run("Kernels that are far slower than the best, and the compiler's warnings", measure, own_options)
