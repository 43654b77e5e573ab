"""Host cost of a call: python packages/tile-cuda/tests/device/overhead.py (needs torch and a device)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from tile_core.abi.adapter import Location
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.abi.signature import Param, Signature
from tile_core.runtime.kernel import Kernel
from tile_cuda.resolve import detect
from tile_cuda.runtime import CudaAdapter

TEXT = """extern "C" __global__ void f(const float* a, const float* b, float* c, int n) {
  if (n < 0) c[0] = a[0] + b[0];
}"""


def main() -> None:
    """Print microseconds per call: medians of rounds short enough for the device's queue."""
    names = ("a", "b", "c")
    params = tuple(ParamFact(n, "pointer", "float32", "write" if n == "c" else "read", 16) for n in names)
    facts = LaunchFacts("f", (*params, ParamFact("n", "scalar", "int32")), (("ceildiv", "n", 128), 1, 1), (128, 1, 1))
    target = detect()
    assert target is not None
    adapter = CudaAdapter(target)
    launch = adapter.load(KernelText(TEXT, facts, lambda: KernelText(TEXT, facts)))
    tensors = [Param(n, "tensor", "float32", ("n",), access="write" if n == "c" else "read") for n in names]
    given = Kernel(Signature("f", tuple(tensors)), launch, adapter=adapter, hidden=("n",))
    made = Kernel(Signature("f", tuple(tensors), (2,)), launch, adapter=adapter, hidden=("n",))
    a, b, c = (torch.zeros(1024, device="cuda") for _ in names)
    values, location = (a.data_ptr(), b.data_ptr(), c.data_ptr(), 1024), Location((2, 0), "torch")
    adapter_calls = {
        "launch alone": lambda: launch(values, location),
        "call with three tensors": lambda: given(a, b, c),
        "call that allocates its output": lambda: made(a, b),
        "torch.add(a, b, out=c)": lambda: torch.add(a, b, out=c),
        "torch.empty": lambda: torch.empty((1024,), dtype=torch.float32, device="cuda"),
    }
    for name, call in adapter_calls.items():
        print(f"{name:32} {microseconds(call):6.2f} us")
    result = given.bench(a, b, c)
    print(f"on the device: {result}")


def microseconds(call: Callable[[], object]) -> float:
    """Return the median cost of a call."""
    rounds = []
    for _ in range(60):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(200):
            call()
        rounds.append((time.perf_counter() - begin) / 200)
    return statistics.median(rounds) * 1e6


if __name__ == "__main__":
    main()
