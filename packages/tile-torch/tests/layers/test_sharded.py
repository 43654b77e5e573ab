"""Two processes train a model whose parameters FSDP shards and gathers; its layers call operators of tile."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = """
import sys

import torch
from torch.distributed.fsdp import fully_shard

import tile_core.language as T
import tile_torch

m, N = T.dynamic("m"), 16


@T.prim_func
def square_mul(X: T.Tensor((m, N), "float32"), w: T.Tensor((N,), "float32"), Y: T.Tensor((m, N), "float32")):
    with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
        for i, j in T.Parallel(32, N):
            Y[bx * 32 + i, j] = X[bx * 32 + i, j] * X[bx * 32 + i, j] * w[j]


f = tile_torch.op("fsdp::square_mul", square_mul)


def backward(ctx, g):
    x, w = ctx.saved_tensors
    return 2 * g * x * w, (g * x * x).sum(0)


f.register_backward(backward)


class Layer(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call, self.linear, self.w = call, torch.nn.Linear(N, N), torch.nn.Parameter(torch.ones(N))

    def forward(self, x):
        return self.call(torch.tanh(self.linear(x)), self.w)


def model(call):
    torch.manual_seed(0)
    return torch.nn.Sequential(Layer(call), Layer(call), tile_torch.Linear24(N, 3))


def losses(net, x):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


store, rank = sys.argv[1], int(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
x = torch.randn(10, N, generator=torch.Generator().manual_seed(1))
expected = list(losses(model(lambda x, w: x * x * w), x))
net = model(f)
for layer in net:
    fully_shard(layer, mesh=mesh, reshard_after_forward=True)
fully_shard(net, mesh=mesh)
found = list(losses(net, x))  # the same rows in both, whose mean gradient is that of one process
torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
sharded = net[0].w  # after a step it has this process's half again
assert type(sharded.data).__name__ == "DTensor" and sharded.to_local().numel() == N // 2
torch.distributed.destroy_process_group()
"""


def test_parameters_are_sharded_between_calls(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path / "store")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([*command, str(rank)], env=environment) for rank in (0, 1)]
    try:
        assert [rank.wait(timeout=240) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
