"""Inputs, expected values and libraries of each family of ``day.py``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuda_sides import Side, fault

import tile_core as tile

CHECKED = 64  # rows that are compared with float64
_F8 = "float8_e4m3fn"


@dataclass(frozen=True)
class Setup:
    """The data of a line.

    Attributes
    ----------
    call
        Runs a kernel, given that and its tiles.
    wrong
        Compares its result; empty if it is right.
    outputs
        Tensors to poison first.
    peers
        Libraries by name; none if this version of torch has none.
    work, unit
        Of a run: operations and ``"TFLOP/s"``, bytes and ``"TB/s"``.
    beside
        Sides that do something else: measured and printed, not compared with.
    """

    call: Callable[[Any, tuple[Any, ...]], object]
    wrong: Callable[[], str]
    outputs: list[Any]
    peers: dict[str, Side]
    work: float
    unit: str = "TFLOP/s"
    beside: Mapping[str, Side] = field(default_factory=dict)


def linear(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return a linear layer, beside cuBLAS."""
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(c)

    def wrong() -> str:
        rows = torch.randint(m, (CHECKED,), device="cuda")
        return product_fault(torch, c[rows], a[rows], b, k)

    peers = {"cuBLAS": functools.partial(torch.mm, a, b.T, out=out)}
    return Setup(lambda kernel, _: kernel(a, b, c), wrong, [c], peers, 2.0 * m * n * k)


def attention(
    torch: Any, b: int, h: int, g: int, s: int, d: int, *,
    window: int = 0, softcap: float = 0.0, sinks: bool = False,
) -> Setup:  # fmt: skip
    """Return causal attention with grouped keys, beside cuDNN, or FlexAttention with a window, soft cap or sinks."""
    q = torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(b, g, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    o, sink = torch.empty_like(q), torch.randn(h, device="cuda") if sinks else None

    def wrong() -> str:
        rows, head = torch.randint(s, (CHECKED,), device="cuda"), h - 1
        scores = q[0, head, rows].double() @ k[0, head // (h // g)].double().T / math.sqrt(d)
        scores = softcap * torch.tanh(scores / softcap) if softcap else scores
        at = torch.arange(s, device="cuda")[None]
        hidden = (at > rows[:, None]) | ((at <= rows[:, None] - window) if window else False)
        scores = scores.masked_fill(hidden, -math.inf)
        if sink is not None:
            scores = torch.cat([scores, sink[head].double().expand(len(rows), 1)], 1)
        weights = torch.softmax(scores, -1)[:, :s]
        expected = weights @ v[0, head // (h // g)].double()
        return fault(torch, o[0, head, rows], expected, torch.full_like(expected, 0.02))

    pairs = s * s / 2 if not window else s * min(window, s) - min(window, s) ** 2 / 2
    flexible = window or softcap or sinks
    peers = {"FlexAttention": _flex(torch, q, k, v, window, softcap, sink)} if flexible else {
        "cuDNN": cudnn(torch, q, k, v, True)
    }  # fmt: skip
    inputs = (q, k, v) if sink is None else (q, k, v, sink)
    return Setup(lambda kernel, _: kernel(*inputs, o), wrong, [o], peers, 4.0 * b * h * d * pairs)


def backward(torch: Any, b: int, h: int, g: int, s: int, d: int) -> Setup:
    """Return the gradients of causal attention with grouped keys, beside cuDNN's."""
    q, do = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k, v = (torch.randn(b, g, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    library, out = cudnn_gradients(torch, q, k, v, do)
    exact, logs = causal_gradients(torch, q, k, v, do)
    found = [torch.empty_like(x) for x in (q, k, v)]

    def wrong() -> str:
        for name, mine, right in zip("qkv", found, exact, strict=True):
            # Weights and their gradients are rounded to bfloat16 before the second products.
            size = right.abs().amax(dim=(-2, -1), keepdim=True)
            reason = fault(torch, mine, right, 2.0**-6 * size + 2.0**-7 * right.abs())
            if reason:
                return f"d{name}: {reason}"
        return ""

    return Setup(
        lambda kernel, _: kernel(q, k, v, out, do, logs, *found), wrong, found, {"cuDNN": library},
        2.5 * 4.0 * b * h * d * s * s / 2,
    )  # fmt: skip


def paged_decode(torch: Any, b: int, h: int, g: int, d: int, page: int, pages: int, total: int) -> Setup:
    """Return one query for each sequence, beside cuDNN on contiguous keys."""
    q = torch.randn(b, h, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(total, page, g, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    table = torch.randperm(total, device="cuda").int().view(b, pages)
    lens = torch.full((b,), page * pages, device="cuda", dtype=torch.int32)
    o = torch.empty_like(q)
    flat = [x[table.long()].reshape(b, page * pages, g, d).transpose(1, 2).contiguous() for x in (k, v)]

    def wrong() -> str:
        of = [x[0].repeat_interleave(h // g, 0).double() for x in flat]
        scores = torch.einsum("hd,hsd->hs", q[0].double(), of[0]) / math.sqrt(d)
        expected = torch.einsum("hs,hsd->hd", torch.softmax(scores, -1), of[1])
        return fault(torch, o[0], expected, torch.full_like(expected, 0.01)) or ("NaN" if bool(o.isnan().any()) else "")

    peers = {"cuDNN": cudnn(torch, q[:, :, None], *flat, False)}
    return Setup(
        lambda kernel, _: kernel(q, k, v, table, lens, o), wrong, [o], peers, 4.0 * b * g * d * page * pages, "TB/s"
    )


def grouped(torch: Any, e: int, n: int, k: int, rows: int) -> Setup:
    """Return rows times the weights of their experts, beside torch's grouped product."""
    x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(e, n, k, device="cuda", dtype=torch.bfloat16)
    sizes = torch.bincount(torch.randint(e, (rows,), device="cuda"), minlength=e)
    ends = sizes.cumsum(0).int()
    y = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)

    def wrong() -> str:
        for at in torch.randint(rows, (8,)).tolist():
            of = int((ends <= at).sum())
            found = product_fault(torch, y[at : at + 1], x[at : at + 1], w[of], k)
            if found:
                return found
        return "NaN" if bool(y.isnan().any()) else ""

    peers = {"torch._grouped_mm": lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)}
    return Setup(lambda kernel, _: kernel(x, w, ends, y), wrong, [y], peers, 2.0 * rows * n * k)


def weights(torch: Any, m: int, n: int, k: int, group: int, *, kind: str = "int4", ordered: bool = False) -> Setup:
    """Return a product with 4-bit weights, beside cuBLAS on converted ones.

    ``kind`` is ``"int4"``, ``"zeros"`` (unsigned, with a zero for each group), or ``"fp4"`` with scales of powers of 2;
    ``ordered``: the weights are in packed order.
    """
    codes = torch.randint(0, 16, (n, k), device="cuda", dtype=torch.int32)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    if ordered:
        packed = tile.pack_weights(packed.cpu()).cuda()
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    s, z = (torch.rand(n, k // group, device="cuda").to(torch.bfloat16) for _ in range(2))
    given = {"int4": (packed, s), "zeros": (packed, s, z)}
    if kind == "fp4":
        exponents = torch.randint(120, 130, (n, k // group), device="cuda", dtype=torch.uint8)
        s = torch.exp2(exponents.float() - 127).to(torch.bfloat16)
        given[kind] = packed, exponents
        sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device="cuda")
        numbers = torch.cat([sizes, -sizes])[codes.long()].to(torch.bfloat16)
    elif kind == "zeros":
        numbers = codes.to(torch.bfloat16) - z.repeat_interleave(group, 1)
    else:
        numbers = ((codes ^ 8) - 8).to(torch.bfloat16)
    w = numbers * s.repeat_interleave(group, 1)
    c = torch.zeros(m, n, device="cuda")
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def call(kernel: Any, tiles: tuple[int, ...]) -> None:
        if tiles[5] > 1:
            c.zero_()  # parts of K add to the result
        kernel(a, *given[kind], c)

    def wrong() -> str:
        exact = a.double() @ w.double().T
        return fault(torch, c, exact, 2.0**-9 * (a.double().abs() @ w.double().abs().T))

    peers = {"cuBLAS, bf16": functools.partial(torch.mm, a, w.T, out=out)}
    return Setup(call, wrong, [c], peers, 2.0 * m * n * k)


def fp8(torch: Any, m: int, n: int, k: int, *, rows: bool) -> Setup:
    """Return a product of 8-bit floats with a scale for each row, or for a tensor, beside torch's exact products."""
    a, b = (torch.randn(size, k, device="cuda").to(getattr(torch, _F8)) for size in (m, n))
    sa, sb = (torch.rand(size if rows else 1, device="cuda") + 0.5 for size in (m, n))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def wrong() -> str:
        at = torch.randint(m, (CHECKED,), device="cuda")
        x, y = a[at].double() * (sa[at] if rows else sa)[:, None], b.double() * sb[:, None]
        return product_fault(torch, c[at], x, y, k, 2.0**-12)

    scales = {"scale_a": sa[:, None], "scale_b": sb[None]} if rows else {"scale_a": sa[0], "scale_b": sb[0]}
    exact, fast = (
        functools.partial(torch._scaled_mm, a, b.T, **scales, out_dtype=torch.bfloat16, use_fast_accum=x)
        for x in (False, True)
    )
    peers, beside = {"torch._scaled_mm": exact}, {"torch._scaled_mm, fast accumulation": fast}
    return Setup(lambda kernel, _: kernel(a, sa, b, sb, c), wrong, [c], peers, 2.0 * m * n * k, beside=beside)


def fp8_blocks(torch: Any, m: int, n: int, k: int) -> Setup:
    """Return a product of 8-bit floats with scales of 1 x 128 and 128 x 128, beside cuBLASLt."""
    a, b = (torch.randn(rows, k, device="cuda").to(getattr(torch, _F8)) for rows in (m, n))
    sa = torch.rand(m, k // 128, device="cuda") + 0.5
    sb = torch.rand(n // 128, k // 128, device="cuda") + 0.5
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def wrong() -> str:
        rows = torch.randint(m, (CHECKED,), device="cuda")
        x = a[rows].double() * sa[rows].repeat_interleave(128, 1)
        y = b.double() * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return product_fault(torch, c[rows], x, y, k, 2.0**-12)

    # cuBLASLt takes scales of rows by columns.
    columns = sa.t().contiguous().t()
    peers = {
        "cuBLASLt": lambda: torch._scaled_mm(a, b.T, scale_a=columns, scale_b=sb.t(), out_dtype=torch.bfloat16),
    }  # fmt: skip
    return Setup(lambda kernel, _: kernel(a, sa, b, sb, c), wrong, [c], peers, 2.0 * m * n * k)


def rms(torch: Any, m: int, n: int) -> Setup:
    """Return RMSNorm of rows, beside torch.compile."""
    x, w = torch.randn(m, n, device="cuda", dtype=torch.bfloat16), torch.randn(n, device="cuda", dtype=torch.bfloat16)
    plain = functools.partial(torch.nn.functional.rms_norm, normalized_shape=(n,), eps=1e-6)

    def normed(x: Any, w: Any) -> Any:
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)

    return _rows(torch, x, (x, w), normed, 4.0 * m * n, {"torch": lambda: plain(x, weight=w)})


def softmax(torch: Any, m: int, n: int) -> Setup:
    """Return softmax of rows, beside torch.compile."""
    x = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
    return _rows(torch, x, (x,), lambda x: torch.softmax(x, -1), 4.0 * m * n, {"torch": lambda: torch.softmax(x, -1)})


def swiglu(torch: Any, m: int, n: int) -> Setup:
    """Return SwiGLU of two halves of rows, beside torch.compile."""
    x = torch.randn(m, 2 * n, device="cuda", dtype=torch.bfloat16)

    def gated(x: Any) -> Any:
        a, b = x.float().chunk(2, -1)
        return (torch.nn.functional.silu(a) * b).to(x.dtype)

    return _rows(torch, x[:, :n], (x,), gated, 6.0 * m * n, {})


def product_fault(torch: Any, found: Any, a: Any, b: Any, k: int, per_element: float = 0.0) -> str:
    """Report an element of a @ b^T beyond the error of float32 accumulation over K, and of a result of 16 bits."""
    a, b = a.double(), b.double()
    exact, size = a @ b.T, a.abs() @ b.abs().T
    return fault(torch, found, exact, (2.0**-23 * math.sqrt(k) * 4 + per_element) * size + 2.0**-8 * exact.abs())


def cudnn(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> Side:
    """Return cuDNN's attention; keys are expanded where it takes no groups."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attend = torch.nn.functional.scaled_dot_product_attention

    def grouped_heads() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return attend(q, k, v, is_causal=causal, enable_gqa=True)

    try:
        grouped_heads()
        return grouped_heads
    except RuntimeError:
        pass
    every = [x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)]

    def expanded() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return attend(q, *every, is_causal=causal)

    return expanded


def cudnn_gradients(torch: Any, q: Any, k: Any, v: Any, do: Any) -> tuple[Side, Any]:
    """Return cuDNN's backward pass alone, and the result; keys are expanded where it takes no groups."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attend = torch.nn.functional.scaled_dot_product_attention

    def prepared(keys: Any, values: Any, gqa: bool) -> tuple[Side, Any]:
        inputs = [x.detach().clone().requires_grad_() for x in (q, keys, values)]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = attend(*inputs, is_causal=True, enable_gqa=gqa)
        side = functools.partial(torch.autograd.grad, out, inputs, do, retain_graph=True)
        side()
        return side, out.detach().contiguous()

    try:
        return prepared(k, v, True)
    except RuntimeError:
        print("cuDNN's gradients without groups: keys are expanded", flush=True)
        return prepared(*(x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)), False)


def causal_gradients(torch: Any, q: Any, k: Any, v: Any, do: Any) -> tuple[list[Any], Any]:
    """Return the gradients of q, k and v in float64, and the base-2 logarithms of the rows' totals."""
    exact = [torch.zeros(x.shape, device=q.device, dtype=torch.float64) for x in (q, k, v)]
    logs, scale = torch.empty(q.shape[:3], device=q.device), 1 / math.sqrt(q.shape[3])
    hidden = torch.ones(q.shape[2], q.shape[2], device=q.device).triu_(1).bool()
    for at, head in ((i, j) for i in range(q.shape[0]) for j in range(q.shape[1])):
        group = head // (q.shape[1] // k.shape[1])
        x, y, z, slope = (t[at, i].double() for t, i in ((q, head), (k, group), (v, group), (do, head)))
        scores = (x @ y.T * scale).masked_fill_(hidden, -math.inf)
        totals = torch.logsumexp(scores, -1)
        weights = scores.sub_(totals[:, None]).exp_()
        slopes = slope @ z.T
        slopes = slopes.sub_((weights * slopes).sum(1, keepdim=True)).mul_(weights).mul_(scale)
        logs[at, head] = totals * math.log2(math.e)
        exact[0][at, head] = slopes @ y
        exact[1][at, group] += slopes.T @ x
        exact[2][at, group] += weights.T @ slope
    return exact, logs


SETUPS: dict[str, Callable[..., Setup]] = {
    "linear": linear, "prefill": attention, "paged_decode": paged_decode, "grouped": grouped,
    "window": functools.partial(attention, window=1024), "softcap": functools.partial(attention, softcap=30.0),
    "sinks": functools.partial(attention, sinks=True), "backward": backward,
    "sinks_window": functools.partial(attention, sinks=True, window=128),
    **{
        f"{line} packed": functools.partial(weights, kind=kind, ordered=True)
        for line, kind in (("w4a16", "int4"), ("zeros", "zeros"), ("fp4", "fp4"))
    },
    "w4a16": weights, "zeros": functools.partial(weights, kind="zeros"), "fp4": functools.partial(weights, kind="fp4"),
    "fp8_blocks": fp8_blocks, "fp8_rows": functools.partial(fp8, rows=True),
    "fp8_tensor": functools.partial(fp8, rows=False), "rms": rms, "softmax": softmax, "swiglu": swiglu,
}  # fmt: skip


def _rows(
    torch: Any, like: Any, inputs: tuple[Any, ...], function: Callable[..., Any], work: float, more: dict[str, Side]
) -> Setup:  # fmt: skip
    """Return a function of rows, beside torch.compile."""
    y = torch.empty(like.shape, device="cuda", dtype=like.dtype)
    fast = torch.compile(function, dynamic=False)

    def wrong() -> str:
        expected = function(*(x.double() for x in inputs)).double()
        return fault(torch, y, expected, 2.0**-7 * expected.abs() + 1e-6)

    peers = {"torch.compile": lambda: fast(*inputs), **more}
    return Setup(lambda kernel, _: kernel(*inputs, y), wrong, [y], peers, work, "TB/s")


def _flex(
    torch: Any, q: Any, k: Any, v: Any, window: int, softcap: float, sink: Any = None
) -> Side:  # fmt: skip
    """Return a compiled FlexAttention."""
    from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

    def seen(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (i >= j) & (i - j < window) if window else i >= j

    def capped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return softcap * torch.tanh(score / softcap)

    mask = create_block_mask(seen, None, None, q.shape[2], k.shape[2], device="cuda")
    more = {"score_mod": capped if softcap else None, "block_mask": mask, "enable_gqa": True}

    def plain() -> Any:
        return flex_attention(q, k, v, **more)

    def with_sinks() -> Any:
        out, aux = flex_attention(q, k, v, **more, return_aux=AuxRequest(lse=True))
        return out * torch.sigmoid(aux.lse - sink[None, :, None])[..., None].to(out.dtype)

    return torch.compile(plain if sink is None else with_sinks, dynamic=False)  # type: ignore[no-any-return]
