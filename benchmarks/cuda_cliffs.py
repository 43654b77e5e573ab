"""Whether ordinary choices of tiles are far slower than the best without a word: 40 legal ones of each kind of kernel.

    python benchmarks/cuda_cliffs.py [--seed N] [--kinds gemm,gemm_sp,attention] [--count 40]
                                     [--export FOLDER | --artefacts FOLDER] [--json FILE]

Tiles, threads, stages and element types of sums are drawn anew each time; what a target refuses is drawn again. Kernels
have the default options. A row says how many times as long as the best its kernel takes, and what the compiler said of
it: a kernel that takes more than twice as long should have been told why, and what is near and better. Kernels from
files need the ``--seed`` that they were exported with, and `told.json` beside them.
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
    """A kind of kernel: ``draw`` returns one at random, legal or not; ``given`` its arrays and what judges a result."""

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
    return Candidate(f"attention_{h}_{c}", functools.partial(attention, h, c), {"fast_math": True})


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
    """Return the candidates by kind and size: of files those that `told.json` names."""
    if arguments.artefacts is not None:
        told = json.loads((arguments.artefacts / "told.json").read_text())
        return {group: [Candidate(n, lambda: None) for n in of] for group, of in told.items()}
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


def told(candidate: Candidate, target: str) -> list[str]:
    """Return what the compiler says of a kernel."""
    return [w["text"] for w in report_json(candidate.program(), target, dict(candidate.options))["warnings"]]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, the fastest of a group first."""
    groups = chosen(arguments)
    print("seed", arguments.seed)
    if arguments.export is not None:
        rows = [row for of in groups.values() for row in export(arguments, of)]
        said = {g: {c.name: told(c, arguments.target or "cuda:sm_90a") for c in of} for g, of in groups.items()}
        (arguments.export / "told.json").write_text(json.dumps(said, indent=1))
        return rows
    import torch

    print(device_of(torch))
    if arguments.artefacts is not None:
        said = json.loads((arguments.artefacts / "told.json").read_text())
    else:
        said = {g: {c.name: told(c, arguments.target or "cuda") for c in of} for g, of in groups.items()}
    return [row for group, of in groups.items() for row in judged(torch, arguments, group, of, said[group])]


def judged(
    torch: Any, arguments: argparse.Namespace, group: str, of: list[Candidate], said: dict[str, Any]
) -> list[Row]:
    """Return the rows of one group; print how many are far from the best without a word."""
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
        sentences = said[name]
        near = any("nearest better" in s for s in sentences)
        cliff = "CLIFF" if ms > _FAR * best and not near else ""
        rows.append({"kernel": name, "ms": ms, "times the best": ms / best, "told": near, "": cliff, "said": sentences})
    far, bad = sum(ms > _FAR * best for ms in times), sum(bool(row[""]) for row in rows)
    early = [row["times the best"] for row in rows if row["told"]]
    print(
        f"{group}: {len(rows)} kernels, {far} take more than {_FAR:g} times as long as the best, {bad} of them untold"
    )
    print(f"of {len(early)} that were told the fastest takes {min(early, default=0):.2f} times as long", flush=True)
    return rows


@functools.cache
def _products(torch: Any, sparse: bool) -> tuple[Any, ...]:
    a, b = (torch.randn(_SIZE, _SIZE, device="cuda").half() for _ in range(2))
    a, values, words = two_of_four(torch, a) if sparse else (a, None, None)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    return a, b, values, words, exact, size, poisoned(torch, (_SIZE, _SIZE), torch.float16)


def _of_product(torch: Any, name: str, sparse: bool) -> tuple[tuple[Any, ...], Any, Callable[[Any], str]]:
    a, b, values, words, exact, size, out = _products(torch, sparse)
    bits = 8 if name.endswith("float16") else 21  # sums that are kept in float16 are rounded in each step along K
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
    run("Kernels that are far slower than the best, and whether the compiler says so", measure, own_options)
