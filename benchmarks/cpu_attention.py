"""Attention on the CPU beside PyTorch's, both sides in one run with equal threads.

    python benchmarks/cpu_attention.py [PART ...] [--dtype bfloat16 float32] [--dim 64 128] [--length 512 2048]
                                       [--blocks 64x64 128x128] [--threads 1] [--json FILE]

Parts are ``prefill``, ``causal``, ``grouped``, the steps of decoding ``decode``, ``shared`` and ``paged``, and
``backward``; without names all run. Programs are those of examples/ and of `serving_day_kernels`. Demands: 1.2 of
``scaled_dot_product_attention``, 1.0 of its gradient. With one thread the processor time counts, so that other work on
the machine disturbs little.
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import serving_day_kernels as serving
from cpu_dots import fastest
from sides import Row, demanded, example, run

import tile_core as tile
import tile_core.language as T

Side = Callable[[], object]
Blocks = tuple[int, int]
#: Heads of prefill and of gradients; heads of queries and of keys where keys are shared.
HEADS, QUERY_HEADS, KEY_HEADS = 4, 8, 2
#: Keys of one decoding step, and keys of a page.
CACHE, PAGE = 4096, 64


def drawn(dtype: str, *shapes: tuple[int, ...]) -> list[Any]:
    """Return arrays of normal numbers."""
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.standard_normal(s).astype(T.dtype(dtype).numpy()) for s in shapes]


def tensor(x: Any) -> Any:
    """Return the tensor of PyTorch with an array's memory."""
    import torch

    return (
        torch.from_numpy(x.view("uint16")).view(torch.bfloat16) if str(x.dtype) == "bfloat16" else torch.from_numpy(x)
    )


def attend(q: Any, k: Any, v: Any, causal: bool = False, grouped: bool = False) -> Any:
    """Return PyTorch's attention."""
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)


def compare(found: Any, wanted: Any) -> None:
    """Check our result against another one."""
    import torch

    assert torch.allclose(tensor(found).float(), wanted.float(), rtol=0.03, atol=0.03)


def prefill(dtype: str, length: int, dim: int, blocks: Blocks, causal: bool) -> tuple[Side, ...]:
    """Return attention of all positions by examples/flash_attention.py."""
    shape = (1, HEADS, length, dim)
    q, k, v, out = drawn(dtype, *[shape] * 4)
    program = example("flash_attention").attention(1, HEADS, length, length, dim, causal, dtype, *blocks)
    kernel = tile.compile(program, target="cpu")
    kernel(q, k, v, out)
    theirs = tensor(q), tensor(k), tensor(v)
    compare(out, attend(*(x.float() for x in theirs), causal))
    return lambda: kernel(q, k, v, out), lambda: attend(*theirs, causal)


def grouped(dtype: str, length: int, dim: int, blocks: Blocks) -> tuple[Side, ...]:
    """Return causal attention with keys that several heads share."""
    own, shared = (1, QUERY_HEADS, length, dim), (1, KEY_HEADS, length, dim)
    q, k, v, out = drawn(dtype, own, shared, shared, own)
    program = serving.prefill(1, QUERY_HEADS, KEY_HEADS, length, dim, *blocks, 128, dtype=dtype)
    kernel = tile.compile(program, target="cpu")
    kernel(q, k, v, out)
    theirs = tensor(q), *(tensor(x).repeat_interleave(QUERY_HEADS // KEY_HEADS, 1) for x in (k, v))
    compare(out, attend(*(x.float() for x in theirs), True))
    return lambda: kernel(q, k, v, out), lambda: attend(*theirs, True)


def decode(dtype: str, dim: int) -> tuple[Side, ...]:
    """Return attention of one step to a cache by examples/flash_attention.py: heads that share keys are its rows."""
    own, cache = (1, KEY_HEADS, QUERY_HEADS // KEY_HEADS, dim), (1, KEY_HEADS, CACHE, dim)
    q, k, v, out = drawn(dtype, own, cache, cache, own)
    program = example("flash_attention").attention(1, KEY_HEADS, own[2], CACHE, dim, False, dtype)
    kernel = tile.compile(program, target="cpu")
    kernel(q, k, v, out)
    rows, single, keys, values = tensor(q), tensor(q).reshape(1, QUERY_HEADS, 1, dim), tensor(k), tensor(v)
    compare(out, attend(rows.float(), keys.float(), values.float()))
    return (
        lambda: kernel(q, k, v, out),
        lambda: attend(single, keys, values, grouped=True),
        lambda: attend(rows, keys, values),
    )


def shared(dtype: str, dim: int, splits: int, heads: int = 16) -> tuple[Side, ...]:
    """Return attention of one step to keys that all heads share, by examples/decode.py."""
    q, k, v, out = drawn(dtype, (heads, dim), (CACHE, dim), (CACHE, dim), (heads, dim))
    kernel = tile.compile(example("decode").decode(heads, dim, splits, dtype), target="cpu")
    kernel(q, k, v, out)
    rows, keys, values = (tensor(x)[None, None] for x in (q, k, v))
    compare(out, attend(rows.float(), keys.float(), values.float())[0, 0])
    return lambda: kernel(q, k, v, out), lambda: attend(rows, keys, values)


def paged(dtype: str, dim: int, splits: int) -> tuple[Side, ...]:
    """Return one query's attention to a paged cache, whose memory PyTorch reads as one matrix."""
    own, pages = (1, QUERY_HEADS, dim), CACHE // PAGE
    q, k, v, out = drawn(dtype, own, *[(pages, PAGE, KEY_HEADS, dim)] * 2, own)
    program = serving.paged_decode(1, QUERY_HEADS, KEY_HEADS, dim, PAGE, pages, pages, splits, 128, dtype)
    kernel = tile.compile(program, target="cpu")
    table, lengths = np.arange(pages, dtype="int32")[None], np.array([CACHE], "int32")
    kernel(q, k, v, table, lengths, out)
    keys, values = (tensor(x).reshape(1, CACHE, KEY_HEADS, dim).transpose(1, 2) for x in (k, v))
    single, rows = tensor(q).reshape(1, QUERY_HEADS, 1, dim), tensor(q).reshape(1, KEY_HEADS, -1, dim)
    compare(out, attend(rows.float(), keys.float(), values.float()).reshape(own))
    return (
        lambda: kernel(q, k, v, table, lengths, out),
        lambda: attend(single, keys, values, grouped=True),
        lambda: attend(rows, keys, values),
    )


def backward(dtype: str, length: int, dim: int, blocks: Blocks, causal: bool) -> tuple[Side, ...]:
    """Return gradients by examples/attention_backward.py, from the output of the forward pass."""
    import torch

    shape = (1, HEADS, length, dim)
    q, k, v, g = drawn(dtype, *[shape] * 4)
    theirs = tensor(q), tensor(k), tensor(v)
    o, logs = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*theirs, 0.0, causal)
    call = functools.partial(
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward, tensor(g), *theirs, o, logs, 0.0, causal
    )
    module = example("attention_backward")
    rows = tile.compile(module.row_products(1, HEADS, length, dim, dtype), target="cpu")
    kernel = tile.compile(module.backward(1, HEADS, length, length, dim, causal, dtype, *blocks), target="cpu")
    out = o.contiguous()
    output = out.numpy() if dtype == "float32" else out.view(torch.uint16).numpy().view(T.dtype(dtype).numpy())
    # Its logarithms are natural and those of the program have base 2.
    base2 = (logs.contiguous() * 1.4426950408889634).numpy().reshape(shape[:3])
    products, dq = np.empty(shape[:3], "float32"), np.empty(shape, "float32")
    dk, dv = np.empty_like(q), np.empty_like(q)

    def ours() -> None:
        dq[...] = 0
        rows(output, g, products)
        kernel(q, k, v, g, base2, products, dq, dk, dv)

    ours()
    for found, wanted in zip((dq, dk, dv), call(), strict=True):
        compare(found, wanted)
    return ours, call


def cases(arguments: argparse.Namespace, dtype: str, dim: int) -> Iterator[tuple[Row, float, Callable[[], Any]]]:
    """Yield names, the demand and both sides of each measurement."""
    parts = arguments.parts or ["prefill", "causal", "grouped", "decode", "shared", "paged", "backward"]
    names: Row = {"dtype": dtype, "dim": dim}
    steps: dict[str, Callable[[], Any]] = {
        "decode": functools.partial(decode, dtype, dim),
        "shared": functools.partial(shared, dtype, dim, 4),
        "paged": functools.partial(paged, dtype, dim, 1),
        "paged, 8 splits": functools.partial(paged, dtype, dim, 8),
    }
    for part in (p for p in steps if p.split(",")[0] in parts):
        yield {"part": part, **names, "length": CACHE, "blocks": "64"}, 1.2, steps[part]
    for length in arguments.length:
        for text in arguments.blocks:
            m, n = (int(x) for x in text.split("x"))
            sides: dict[str, tuple[float, Callable[[], Any]]] = {
                "prefill": (1.2, functools.partial(prefill, dtype, length, dim, (m, n), False)),
                "causal": (1.2, functools.partial(prefill, dtype, length, dim, (m, n), True)),
                "grouped": (1.2, functools.partial(grouped, dtype, length, dim, (m, n))),
                "backward": (1.0, functools.partial(backward, dtype, length, dim, (m, n), True)),
            }
            for part in (p for p in parts if p in sides):
                yield {"part": part, **names, "length": length, "blocks": text}, *sides[part]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per measurement."""
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    rows: list[Row] = []
    for dtype in arguments.dtype:
        for dim in arguments.dim:
            for names, least, sides in cases(arguments, dtype, dim):
                ours, *theirs = fastest(sides(), arguments.seconds, 0.0, arguments.threads)
                ratio = min(theirs) / ours
                times = {"us": ours * 1e6, "torch us": min(theirs) * 1e6, "torch/ours": ratio}
                rows.append({**names, **times, "demand": demanded(ratio, least)})
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("parts", nargs="*", help="parts to measure")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--dim", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--length", nargs="+", type=int, default=[512, 2048])
    parser.add_argument("--blocks", nargs="+", default=["64x64", "128x128"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.5, help="per measurement")


if __name__ == "__main__":
    run("attention beside PyTorch", measure, options)
