"""Data and libraries of each example that ``examples.py`` measures, at sizes of a model's layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from cuda_sides import Side, fault
from day_peers import CHECKED, Setup, causal_gradients, cudnn, cudnn_gradients, product_fault
from sides import example

import tile_core as tile


def _normal(torch: Any, *shape: int, dtype: str = "float16") -> Any:
    return torch.randn(*shape, device="cuda").to(getattr(torch, dtype))


def _empty(torch: Any, *shape: int, dtype: str = "float32") -> Any:
    return torch.empty(*shape, device="cuda", dtype=getattr(torch, dtype))


def gemm(torch: Any, m: int, n: int, k: int, *, turned: bool = False, into: str = "float32") -> Setup:
    """Return a product of float16 beside cuBLAS, B as (K, N), or as (N, K) if ``turned``."""
    a, b, c = _normal(torch, m, k), _normal(torch, *((n, k) if turned else (k, n))), _empty(torch, m, n, dtype=into)
    right = b.T if turned else b

    def wrong() -> str:
        rows = torch.randint(m, (CHECKED,), device="cuda")
        return product_fault(torch, c[rows], a[rows], right.T, k)

    wide = functools.partial(torch.mm, a, right, out_dtype=torch.float32)
    peers = {"cuBLAS, float16 result": functools.partial(torch.mm, a, right), "cuBLAS": wide}
    return Setup(lambda kernel, _: kernel(a, b, c), wrong, [c], peers, 2.0 * m * n * k)


def linear(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return a layer with bias and GELU, beside torch and torch.compile."""
    x, w, bias, y = _normal(torch, m, k), _normal(torch, n, k), _normal(torch, n), _empty(torch, m, n, dtype="float16")
    gelu = torch.nn.functional.gelu

    def layer() -> Any:
        return gelu(torch.nn.functional.linear(x, w, bias))

    def wrong() -> str:
        rows = torch.randint(m, (CHECKED,), device="cuda")
        expected = gelu(x[rows].double() @ w.double().T + bias.double())
        return fault(torch, y[rows], expected, 2.0**-8 * expected.abs() + 2.0**-8)

    peers = {"torch": layer, "torch.compile": torch.compile(layer)}
    return Setup(lambda kernel, _: kernel(x, w, bias, y), wrong, [y], peers, 2.0 * m * n * k)


def mixed(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return a product of int8 beside torch."""
    a, b = (torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in ((m, k), (k, n)))
    c = _empty(torch, m, n, dtype="int32")
    peers = {"torch._int_mm": functools.partial(torch._int_mm, a, b)}
    exact = a[:CHECKED].double() @ b.double()
    return Setup(
        lambda kernel, _: kernel(a, b, c), lambda: fault(torch, c[:CHECKED], exact, 0 * exact), [], peers,
        2.0 * m * n * k,
    )  # fmt: skip


def sparse(torch: Any, size: int, *, dtype: str) -> Setup:
    """Return a 2:4 sparse product beside cuSPARSELt; rates count the zeros, too."""
    from cuda_sparse import two_of_four

    halves = dtype == "float16"
    dense, b = (_normal(torch, size, size) for _ in range(2))
    if not halves:
        dense, b = ((x * 32).round().clamp(-127, 127).to(torch.int8) for x in (dense, b))
    pruned, values, words = two_of_four(torch, dense)
    words = words if halves else words.view(torch.int32)  # two of 16 bits in one of 32
    c = _empty(torch, size, size, dtype="float32" if halves else "int32")
    right = b if halves else b.T.contiguous().T
    more = {} if halves else {"out_dtype": torch.int32}

    def library(search: bool) -> Side:
        stored = torch._cslt_compress(pruned)
        chosen = {"alg_id": int(torch._cslt_sparse_mm_search(stored, right, **more))} if search else {}
        return functools.partial(torch._cslt_sparse_mm, stored, right, **more, **chosen)

    peers = {
        f"cuSPARSELt{', its best' * search}": _prepared(functools.partial(library, search)) for search in (False, True)
    }

    def wrong() -> str:
        rows = torch.randint(size, (CHECKED,), device="cuda")
        return product_fault(torch, c[rows], pruned[rows], b.T, size)

    outputs = [c] if halves else []
    ours = b if halves else right.T  # (N, K) for int8
    return Setup(lambda kernel, _: kernel(values, words, ours, c), wrong, outputs, peers, 2.0 * size**3)


def fp8_rows(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return a product of 8-bit floats with scales of rows, beside torch's with exact accumulation."""
    a, b = (_normal(torch, size, k, dtype="float8_e4m3fn") for size in (m, n))
    sa, sb = (torch.rand(size, device="cuda") + 0.5 for size in (m, n))
    c = _empty(torch, m, n, dtype="bfloat16")

    def wrong() -> str:
        at = torch.randint(m, (CHECKED,), device="cuda")
        x, y = a[at].double() * sa[at][:, None], b.double() * sb[:, None]
        return product_fault(torch, c[at], x, y, k, 2.0**-12)

    exact, fast = (
        functools.partial(torch._scaled_mm, a, b.T, sa[:, None], sb[None], out_dtype=torch.bfloat16, use_fast_accum=f)
        for f in (False, True)
    )
    return Setup(
        lambda kernel, _: kernel(a, sa, b, sb, c), wrong, [c], {"torch._scaled_mm": exact}, 2.0 * m * n * k,
        beside={"torch._scaled_mm, fast accumulation": fast},
    )  # fmt: skip


def dequantized(torch: Any, m: int, n: int, k: int, group: int) -> Setup:
    """Return a product with 4-bit weights beside cuBLAS on converted ones."""
    a, packed, s, w = _normal(torch, m, k), *_four_bits(torch, n, k, group)
    c, out = _empty(torch, m, n), _empty(torch, m, n, dtype="float16")

    def wrong() -> str:
        exact = a.double() @ w.double().T
        return fault(torch, c, exact, 2.0**-10 * (a.double().abs() @ w.double().abs().T))

    peers = {"cuBLAS, float16": functools.partial(torch.mm, a, w.T, out=out)}
    return Setup(lambda kernel, _: kernel(a, packed, s, c), wrong, [c], peers, 2.0 * m * n * k)


def vector(torch: Any, n: int, k: int) -> Setup:
    """Return a 4-bit matrix times a vector beside torch.mv on the converted one."""
    x, packed, s, w = _normal(torch, k), *_four_bits(torch, n, k, 64)
    y = _empty(torch, n)

    def wrong() -> str:
        exact = w.double() @ x.double()
        return fault(torch, y, exact, 2.0**-10 * (w.double().abs() @ x.double().abs()))

    peers = {"torch.mv, float16": functools.partial(torch.mv, w, x)}
    return Setup(
        lambda kernel, _: kernel(x, packed, s, y), wrong, [y], peers, n * k / 2 + 2.0 * n * k / 64, "TB/s"
    )  # fmt: skip


def grouped(torch: Any, e: int, n: int, k: int, rows: int) -> Setup:
    """Return rows times the weights of their experts, sorted, beside torch."""
    x, w = _normal(torch, rows, k, dtype="bfloat16"), _normal(torch, e, k, n, dtype="bfloat16")
    ends = torch.bincount(torch.randint(e, (rows,), device="cuda"), minlength=e).cumsum(0).int()
    y = _empty(torch, rows, n)
    turned = w.transpose(1, 2).contiguous().transpose(1, 2)

    def wrong() -> str:
        for at in (0, rows // 3, rows - 1):
            of = int((ends <= at).sum())
            reason = product_fault(torch, y[at : at + 1], x[at : at + 1], w[of].T, k)
            if reason:
                return reason
        return "NaN" if bool(y.isnan().any()) else ""

    peers = {
        "torch._grouped_mm": lambda: torch._grouped_mm(x, w, offs=ends),
        "torch._grouped_mm, (N, K)": lambda: torch._grouped_mm(x, turned, offs=ends),
    }
    return Setup(lambda kernel, _: kernel(x, w, ends, y), wrong, [y], peers, 2.0 * rows * n * k)


def experts(torch: Any, tokens: int, e: int, k: int, n: int, tiles: int, block: int) -> Setup:
    """Return tokens gathered by expert, multiplied and scattered back, beside torch's three calls."""
    x, w = _normal(torch, tokens, k, dtype="bfloat16"), _normal(torch, e, k, n, dtype="bfloat16")
    choice = torch.randint(e, (tokens,), device="cuda")
    rows, owner = (torch.from_numpy(t).cuda() for t in example("moe").assign(choice.cpu().numpy(), e, block))
    missing = tiles - len(rows)  # tiles without a token
    rows = torch.nn.functional.pad(rows, (0, 0, 0, missing), value=-1)
    owner = torch.nn.functional.pad(owner, (0, missing))
    y, order = _empty(torch, tokens, n), torch.argsort(choice)
    ends = torch.bincount(choice, minlength=e).cumsum(0).int()
    out = _empty(torch, tokens, n, dtype="bfloat16")

    def library() -> Any:
        return out.index_copy_(0, order, torch._grouped_mm(x[order], w, offs=ends))

    def wrong() -> str:
        for at in (0, tokens // 3, tokens - 1):
            reason = product_fault(torch, y[at : at + 1], x[at : at + 1], w[int(choice[at])].T, k)
            if reason:
                return reason
        return "NaN" if bool(y.isnan().any()) else ""

    peers = {"torch: index, _grouped_mm, index_copy": library}
    return Setup(lambda kernel, _: kernel(x, w, rows, owner, y), wrong, [y], peers, 2.0 * tokens * n * k)


def attention(torch: Any, b: int, h: int, s: int, d: int, *, causal: bool) -> Setup:
    """Return attention of float16 beside cuDNN."""
    q, k, v = (_normal(torch, b, h, s, d) for _ in range(3))
    o = torch.empty_like(q)

    def wrong() -> str:
        rows = torch.randint(s, (CHECKED,), device="cuda")
        scores = q[-1, -1, rows].double() @ k[-1, -1].double().T / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.arange(s, device="cuda")[None] > rows[:, None], -math.inf)
        expected = torch.softmax(scores, -1) @ v[-1, -1].double()
        return fault(torch, o[-1, -1, rows], expected, torch.full_like(expected, 0.004))

    work = 4.0 * b * h * s * s * d / (2 if causal else 1)
    peers = {"cuDNN": cudnn(torch, q, k, v, causal)}
    return Setup(lambda kernel, _: kernel(q, k, v, o), wrong, [o], peers, work)


def backward(torch: Any, b: int, h: int, s: int, d: int) -> Setup:
    """Return gradients of causal attention of float16, beside cuDNN's; zeros and the last conversion count."""
    q, k, v, do = (_normal(torch, b, h, s, d) for _ in range(4))
    library, out = cudnn_gradients(torch, q, k, v, do)
    exact, logs = causal_gradients(torch, q, k, v, do)
    products, dq = _empty(torch, b, h, s), _empty(torch, b, h, s, d)
    found = [torch.empty_like(x) for x in (q, k, v)]
    rows = tile.compile(example("attention_backward").row_products(b, h, s, d), target="cuda")

    def call(kernel: Any, _: Any) -> None:
        dq.zero_()
        rows(out, do, products)
        kernel(q, k, v, do, logs, products, dq, found[1], found[2])
        found[0].copy_(dq)

    def wrong() -> str:
        for name, mine, right in zip("qkv", found, exact, strict=True):
            size = right.abs().amax(dim=(-2, -1), keepdim=True)
            reason = fault(torch, mine, right, 2.0**-8 * size + 2.0**-9 * right.abs())
            if reason:
                return f"d{name}: {reason}"
        return ""

    return Setup(call, wrong, found, {"cuDNN": library}, 2.5 * 4.0 * b * h * s * s * d / 2)


def decode(torch: Any, h: int, n: int, d: int) -> Setup:
    """Return attention of one position's heads to one cache, beside torch's fused kernels."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v, o = _normal(torch, h, d), _normal(torch, n, d), _normal(torch, n, d), _empty(torch, h, d, dtype="float16")
    attend = torch.nn.functional.scaled_dot_product_attention

    def library(backend: Any) -> Side:
        def once() -> Any:
            with sdpa_kernel(backend):
                return attend(q[None, None], k[None, None], v[None, None])

        return once

    def wrong() -> str:
        expected = torch.softmax(q.double() @ k.double().T / math.sqrt(d), -1) @ v.double()
        return fault(torch, o, expected, torch.full_like(expected, 4e-3))

    peers = {
        "cuDNN": library(SDPBackend.CUDNN_ATTENTION), "flash": library(SDPBackend.FLASH_ATTENTION),
    }  # fmt: skip
    return Setup(lambda kernel, _: kernel(q, k, v, o), wrong, [o], peers, 4.0 * n * d, "TB/s")


def chosen_keys(torch: Any, queries: int, keys: int, d: int, chosen: int) -> Setup:
    """Return attention to keys that blocks of 16 queries chose, beside torch's index and attention."""
    q, k, v = (_normal(torch, size, d) for size in (queries, keys, keys))
    index = torch.stack([torch.randperm(keys, device="cuda")[:chosen] for _ in range(-(-queries // 16))]).int()
    o = _empty(torch, queries, d)

    def library() -> Any:
        at = index.long()
        return torch.nn.functional.scaled_dot_product_attention(q.view(-1, 1, 16, d), k[at][:, None], v[at][:, None])

    def wrong() -> str:
        at = index[-1].long()
        scores = q[-16:].double() @ k[at].double().T / math.sqrt(d)
        expected = torch.softmax(scores, -1) @ v[at].double()
        return fault(torch, o[-16:], expected, torch.full_like(expected, 2.0**-8))

    return Setup(
        lambda kernel, _: kernel(q, k, v, index, o), wrong, [o], {"torch": library}, 4.0 * queries * chosen * d
    )  # fmt: skip


def _prepared(make: Callable[[], Side]) -> Side:
    """Return a side that is made by its first call, which is not timed and may raise."""
    made: list[Side] = []

    def once() -> object:
        if not made:
            made.append(make())
        return made[0]()

    return once


def _four_bits(torch: Any, n: int, k: int, group: int) -> tuple[Any, Any, Any]:
    """Return packed weights, their scales, and the weights in float16."""
    codes = torch.randint(0, 16, (n, k), device="cuda", dtype=torch.int32)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    s = torch.rand(n, k // group, device="cuda").half()
    return packed, s, ((codes ^ 8) - 8).half() * s.repeat_interleave(group, 1)
