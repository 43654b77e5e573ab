"""Data and libraries of the memory-bound examples that ``examples.py`` measures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cuda_sides import Side, fault
from day_peers import Setup


def plain(
    torch: Any, function: Callable[..., Any], inputs: tuple[Any, ...], y: Any, traffic: float, *,
    before: tuple[Any, ...] = (), eager: Side | None = None, error: float = 2.0**-7,
) -> Setup:  # fmt: skip
    """Return a function of tensors, beside torch and torch.compile."""
    fast = torch.compile(function, dynamic=False)

    def wrong() -> str:
        expected = function(*(x.double() for x in inputs)).double()
        return fault(torch, y, expected, error * expected.abs() + 1e-5)

    peers = {"torch.compile": lambda: fast(*inputs), "torch": eager or (lambda: function(*inputs))}
    return Setup(lambda kernel, _: kernel(*before, *inputs, y), wrong, [y], peers, traffic, "TB/s")


def softmax(torch: Any, m: int, n: int) -> Setup:
    """Return softmax of rows of bfloat16."""
    x = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
    return plain(torch, lambda x: torch.softmax(x, -1), (x,), torch.empty_like(x), 4.0 * m * n)


def rms_norm(torch: Any, m: int, n: int) -> Setup:
    """Return RMSNorm of rows of bfloat16."""
    x, w = (torch.randn(*s, device="cuda", dtype=torch.bfloat16) for s in ((m, n), (n,)))

    def normed(x: Any, w: Any) -> Any:
        wide = x if x.dtype == torch.float64 else x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * w).to(x.dtype)

    library = functools.partial(torch.nn.functional.rms_norm, x, (n,), w, 1e-6)
    return plain(torch, normed, (x, w), torch.empty_like(x), 4.0 * m * n, eager=library)


def cumsum(torch: Any, m: int, n: int) -> Setup:
    """Return running totals of rows of float32."""
    x = torch.randn(m, n, device="cuda")
    setup = plain(torch, lambda x: torch.cumsum(x, 1), (x,), torch.empty_like(x), 8.0 * m * n)
    size, y = x.double().abs().sum(1, keepdim=True), setup.outputs[0]
    return replace(setup, wrong=lambda: fault(torch, y, torch.cumsum(x.double(), 1), n * 2.0**-24 * size))


def scaled_add(torch: Any, n: int) -> Setup:
    """Return 0.3 x + y."""
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    return plain(torch, lambda x, y: 0.3 * x + y, (x, y), torch.empty_like(x), 12.0 * n, before=(0.3,), error=2.0**-20)


def swish_gate(torch: Any, m: int, n: int) -> Setup:
    """Return x times the swish of a gate, of float16."""
    x, g = (torch.randn(m, n, device="cuda").half() for _ in range(2))

    def gated(x: Any, g: Any) -> Any:
        wide = g if g.dtype == torch.float64 else g.float()
        return (x * wide * torch.sigmoid(wide)).to(x.dtype)

    return plain(torch, gated, (x, g), torch.empty_like(x), 6.0 * m * n)


def dropout(torch: Any, n: int) -> Setup:
    """Return dropout of a quarter."""
    x = torch.randn(n, device="cuda")
    y, drop = torch.empty_like(x), functools.partial(torch.nn.functional.dropout, p=0.25)
    fast = torch.compile(lambda x: drop(x), dynamic=False)

    def wrong() -> str:
        kept, part = y != 0, float((y != 0).float().mean())
        reason = fault(torch, y[kept], x[kept].double() / 0.75, 2.0**-20 * x[kept].double().abs())
        return reason or ("" if abs(part - 0.75) < 0.01 else f"{part} are kept")

    peers = {"torch": lambda: drop(x), "torch.compile": lambda: fast(x)}
    return Setup(lambda kernel, _: kernel(x, 42, y), wrong, [y], peers, 8.0 * n, "TB/s")


def stochastic(torch: Any, m: int, n: int) -> Setup:
    """Return rows in int8, rounded at random, beside torch.compile."""
    x = torch.randn(m, n, device="cuda")
    q, s = torch.empty(m, n, device="cuda", dtype=torch.int8), torch.empty(m, device="cuda")

    def function(x: Any) -> Any:
        scale = x.abs().amax(1, keepdim=True).clamp_min(2.0**-100) / 127
        return torch.floor(x / scale + torch.rand_like(x)).clamp(-128, 127).to(torch.int8), scale

    fast = torch.compile(function, dynamic=False)

    def wrong() -> str:
        scale = x.double().abs().amax(1) / 127
        ones = torch.full_like(x, 1.001, dtype=torch.float64)
        return fault(torch, s, scale, 1e-6 * scale) or fault(torch, q, x.double() / scale[:, None], ones)

    return Setup(
        lambda kernel, _: kernel(x, 42, q, s), wrong, [s], {"torch.compile": lambda: fast(x)}, 5.0 * m * n, "TB/s"
    )  # fmt: skip


def route(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return each row's largest scores as weights, with their indices."""
    x = torch.rand(m, n, device="cuda").argsort(1).float() / 32  # no two of a row are equal
    weights, indices = torch.empty(m, k, device="cuda"), torch.empty(m, k, device="cuda", dtype=torch.int32)

    def function(x: Any) -> Any:
        values, at = torch.topk(x, k)
        return torch.softmax(values, -1), at.int()

    fast = torch.compile(function, dynamic=False)

    def wrong() -> str:
        values, at = torch.topk(x.double(), k)
        return fault(torch, weights, torch.softmax(values, -1), torch.full_like(values, 1e-5)) or fault(
            torch, indices, at.double(), torch.zeros_like(values)
        )

    peers = {"torch": lambda: function(x), "torch.compile": lambda: fast(x)}
    return Setup(
        lambda kernel, _: kernel(x, weights, indices), wrong, [weights], peers, m * (4.0 * n + 8.0 * k), "TB/s"
    )  # fmt: skip


def gather_pages(torch: Any, slots: int, width: int, length: int) -> Setup:
    """Return rows of a cache by a table."""
    cache = torch.randn(slots, width, device="cuda").half()
    table = torch.randperm(slots, device="cuda")[:length].int()
    out = torch.empty(length, width, device="cuda", dtype=torch.float16)
    return Setup(
        lambda kernel, _: kernel(cache, table, out), lambda: fault(torch, out, cache[table.long()].double(), 0.0),
        [out], {"torch.index_select": lambda: torch.index_select(cache, 0, table)}, 4.0 * length * width, "TB/s",
    )  # fmt: skip
