"""A small transformer whose linear layers and attention are operators, and its training beside torch's own."""

from __future__ import annotations

import copy
import math

import torch
from torch.nn import functional

import tile_core.language as T
import tile_torch
from tile_torch.modules.programs import product

WORDS, WIDTH, HEADS, LENGTH, BATCH, STEPS = 29, 48, 3, 19, 6, 50


def attention_forward(S, D):
    """Return causal attention over ``S`` positions, with its probabilities."""
    b, scale = T.dynamic("b"), D**-0.5

    @T.prim_func
    def attention(
        Q: T.Tensor((b, S, D), "float32"),
        K: T.Tensor((b, S, D), "float32"),
        V: T.Tensor((b, S, D), "float32"),
        O: T.Tensor((b, S, D), "float32"),  # noqa: E741
        P: T.Tensor((b, S, S), "float32"),
    ):
        with T.Kernel(b, threads=128) as n:
            Q_s, K_s, V_s = (T.alloc_shared((S, D), "float32") for _ in range(3))
            P_s, P_f = T.alloc_shared((S, S), "float32"), T.alloc_fragment((S, S), "float32")
            O_f, top, total = (T.alloc_fragment(shape, "float32") for shape in ((S, D), (S,), (S,)))
            T.copy(Q[n, 0, 0], Q_s)
            T.copy(K[n, 0, 0], K_s)
            T.copy(V[n, 0, 0], V_s)
            T.gemm(Q_s, K_s, P_f, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(S, S):
                P_f[i, j] = T.if_then_else(j <= i, P_f[i, j] * scale, -T.infinity("float32"))
            T.reduce_max(P_f, top, dim=1)
            for i, j in T.Parallel(S, S):
                P_f[i, j] = T.exp(P_f[i, j] - top[i])
            T.reduce_sum(P_f, total, dim=1)
            for i, j in T.Parallel(S, S):
                P_f[i, j] = P_f[i, j] / total[i]
            T.copy(P_f, P_s)
            T.copy(P_f, P[n, 0, 0])
            T.gemm(P_s, V_s, O_f, clear_accum=True)
            T.copy(O_f, O[n, 0, 0])

    return attention


def attention_backward(S, D):
    """Return the gradients of causal attention."""
    b, scale = T.dynamic("b"), D**-0.5

    @T.prim_func
    def attention_gradient(
        G: T.Tensor((b, S, D), "float32"),
        Q: T.Tensor((b, S, D), "float32"),
        K: T.Tensor((b, S, D), "float32"),
        V: T.Tensor((b, S, D), "float32"),
        P: T.Tensor((b, S, S), "float32"),
        DQ: T.Tensor((b, S, D), "float32"),
        DK: T.Tensor((b, S, D), "float32"),
        DV: T.Tensor((b, S, D), "float32"),
    ):
        with T.Kernel(b, threads=128) as n:
            G_s, Q_s, K_s, V_s = (T.alloc_shared((S, D), "float32") for _ in range(4))
            P_s, D_s = (T.alloc_shared((S, S), "float32") for _ in range(2))
            D_f, E_f = (T.alloc_fragment((S, S), "float32") for _ in range(2))
            total, out = T.alloc_fragment((S,), "float32"), T.alloc_fragment((S, D), "float32")
            T.copy(G[n, 0, 0], G_s)
            T.copy(Q[n, 0, 0], Q_s)
            T.copy(K[n, 0, 0], K_s)
            T.copy(V[n, 0, 0], V_s)
            T.copy(P[n, 0, 0], P_s)
            T.gemm(P_s, G_s, out, transpose_A=True, clear_accum=True)
            T.copy(out, DV[n, 0, 0])
            T.gemm(G_s, V_s, D_f, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(S, S):
                E_f[i, j] = D_f[i, j] * P_s[i, j]
            T.reduce_sum(E_f, total, dim=1)
            for i, j in T.Parallel(S, S):
                D_s[i, j] = P_s[i, j] * (D_f[i, j] - total[i]) * scale
            T.gemm(D_s, K_s, out, clear_accum=True)
            T.copy(out, DQ[n, 0, 0])
            T.gemm(D_s, Q_s, out, transpose_A=True, clear_accum=True)
            T.copy(out, DK[n, 0, 0])

    return attention_gradient


def make_attention():
    programs = (make(LENGTH, WIDTH // HEADS) for make in (attention_forward, attention_backward))
    forward, gradient = (tile_torch.op(f"tile_tests::{p.name}", p) for p in programs)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])
        ctx.set_materialize_grads(False)

    forward.register_backward(lambda ctx, g, _: gradient(g.contiguous(), *ctx.saved_tensors), setup_context=setup)
    return forward


def make_linear():
    def multiply(a: torch.Tensor, b: torch.Tensor, ta: bool, tb: bool) -> torch.Tensor:
        m, k = a.shape[::-1] if ta else a.shape
        n = b.shape[0] if tb else b.shape[1]
        run = product(int(m) if ta else None, int(n), None if ta else int(k), "float32", ta, tb)
        return run(a, b)

    mul = tile_torch.op("tile_tests::multiply", multiply)

    def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return mul(x, w, False, True)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return mul(g.contiguous(), w, False, False), mul(g.contiguous(), x, True, False)

    op = tile_torch.op("tile_tests::linear", linear)
    op.register_backward(backward)
    return op


class Block(torch.nn.Module):
    def __init__(self, linear, attention):
        super().__init__()
        self.linear, self.attention = linear, attention
        self.embed, self.positions = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(3))
        shapes = [(3 * WIDTH, WIDTH), (WIDTH, WIDTH), (2 * WIDTH, WIDTH), (WIDTH, 2 * WIDTH), (WORDS, WIDTH)]
        self.weights = torch.nn.ParameterList(torch.randn(s) / math.sqrt(s[1]) for s in shapes)

    def forward(self, words):
        batch, length = words.shape
        qkv, out, up, down, last = self.weights
        x = (self.embed(words) + self.positions.weight).view(-1, WIDTH)
        parts = self.linear(self.norms[0](x), qkv).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = self.attention(*(p.reshape(batch * HEADS, length, -1) for p in parts))
        mixed = mixed.view(batch, HEADS, length, -1).transpose(1, 2).reshape(-1, WIDTH)
        x = x + self.linear(mixed, out)
        x = x + self.linear(functional.gelu(self.linear(self.norms[1](x), up)), down)
        return self.linear(self.norms[2](x), last).view(batch, length, WORDS)


def networks():
    """Return a network of operators and the same of torch's functions."""
    attention = make_attention()
    net = Block(make_linear(), lambda q, k, v: attention(q, k, v)[0])
    theirs = copy.deepcopy(net)
    theirs.linear = functional.linear
    theirs.attention = lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return net, theirs


def batches():
    """Yield the words of each step: they follow a fixed rule."""
    torch.manual_seed(3)
    for _ in range(STEPS):
        start, step = torch.randint(0, WORDS, (BATCH, 1)), torch.randint(1, 4, (BATCH, 1))
        yield (start + step * torch.arange(LENGTH + 1)) % WORDS


def stepping(net, call, optimizer):
    """Return a function that takes a step and returns its loss."""

    def step(words):
        loss = functional.cross_entropy(call(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train(net, call):
    """Return the losses of steps on the device of the network."""
    step = stepping(net, call, torch.optim.Adam(net.parameters(), 3e-3))
    return torch.stack([step(words.to(net.embed.weight.device)) for words in batches()]).cpu()


def train_captured(net, call):
    """Return the losses of replays of one CUDA graph that holds a whole step."""
    optimizer = torch.optim.Adam(net.parameters(), 3e-3, capturable=True)
    step, words = stepping(net, call, optimizer), next(batches()).cuda()
    before = [p.detach().clone() for p in net.parameters()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # kernels are compiled and moments are allocated
        for _ in range(3):
            step(words)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(words)
    with torch.no_grad():
        for p, old in zip(net.parameters(), before, strict=True):
            p.copy_(old)
        for state in optimizer.state.values():
            for moment in state.values():
                moment.zero_()
    losses = []
    for new in batches():
        words.copy_(new)
        graph.replay()
        losses.append(loss.clone())
    return torch.stack(losses).cpu()
