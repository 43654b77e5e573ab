"""Unwritten registers and private arrays: a fault exactly where a result depends on them."""

import numpy as np
import pytest

from tile_emulator.registers import with_undefined

from .dialects.mini import kinds, run

TEXT = """\
__global__ void k(const float* a, float* out, int n) {
  float x[4];
  float y;
  bool seen[2];
  int at[1];
  {body}
}
"""

FAULTS = {
    "a sum": "for (int i = 0; i < 4; i++) x[i] += a[threadIdx.x]; out[threadIdx.x] = x[2];",
    "one of four": "x[0] = x[1] = x[3] = a[0]; out[threadIdx.x] = x[threadIdx.x % 4];",
    "a variable": "out[threadIdx.x] = y * a[threadIdx.x];",
    "a branch": "out[threadIdx.x] = x[0] > 0 ? a[0] : a[1];",
    "a flag": "out[threadIdx.x] = seen[1] ? a[0] : a[1];",
    "the larger of two": "out[threadIdx.x] = x[0] > a[threadIdx.x] ? x[0] : a[threadIdx.x];",
    "the smaller of two": "out[threadIdx.x] = x[0] < a[threadIdx.x] ? x[0] : a[threadIdx.x];",
    "an index": "out[threadIdx.x] = a[at[0] & 1];",
    "by way of shared memory": (
        "extern __shared__ float s[]; s[threadIdx.x] = x[0]; __syncthreads(); out[threadIdx.x] = s[31 - threadIdx.x];"
    ),
    "in some threads": "x[0] = 1; if (threadIdx.x == 17) x[0] = x[1]; out[threadIdx.x] = x[0];",
}

CLEAN = {
    "all are written": "for (int i = 0; i < 4; i++) x[i] = a[i]; out[threadIdx.x] = x[2];",
    "padding that is computed and dropped": (
        "x[0] = a[0]; for (int i = 0; i < 4; i++) x[i] = x[i] * 2 + 1; out[threadIdx.x] = x[0];"
    ),
    "a choice that leaves it out": "y = n > 0 ? a[0] : x[1]; out[threadIdx.x] = y;",
    "written by another type": "*(int*)&x[3] = 0x3f800000; out[threadIdx.x] = x[3];",
}


def execute(body, **how):
    a = np.arange(32, dtype=np.float32) / 7
    text = TEXT.replace("{body}", body)
    return run(text, {"a": a, "out": np.zeros(32, np.float32), "n": 3}, shared_bytes=128, **how)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", FAULTS)
def test_found(name):
    result = execute(FAULTS[name])
    assert kinds(result) == ["uninitialised"]
    (report,) = result.reports
    assert report.array == "out"
    assert "registers" in report.detail
    assert report.line == 6


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name):
    assert execute(CLEAN[name]).ok


def test_it_is_a_check():
    assert execute(FAULTS["a sum"], checks=("bounds", "race")).ok


def test_the_first_thread_concerned_is_named():
    (report,) = execute(FAULTS["in some threads"]).reports
    assert report.index == (17,)


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_every_order(order):
    assert execute(CLEAN["padding that is computed and dropped"], order=order, seed=3).ok
    assert not execute(FAULTS["one of four"], order=order, seed=3).ok


def test_what_counts_as_a_declaration():
    """Lines keep their numbers; only declarations without a value of the kernel's body change."""
    text = (
        "struct s { int a[2];\n  float b;\n};\nvoid k(int n) {\n  float c[4];\n  unsigned long long d;\n  half e = 1;\n"
    )
    text += "  return;\n  static int f[2];\n  matrix<float, 8, 8> g[2][2];\n  c[0] = 1;\n  alignas(16) float h[8];\n}\n"
    made, found = with_undefined(text, "k")
    assert found
    changed = [line.strip() for line in made.split("\n") if "undefined" in line]
    assert changed == [
        "float c[4]; simt::undefined(c);",
        "unsigned long long d; simt::undefined(d);",
        "matrix<float, 8, 8> g[2][2]; simt::undefined(g);",
        "alignas(16) float h[8]; simt::undefined(h);",
    ]
    assert made.count("\n") == text.count("\n")
    assert with_undefined("void k(int n) {\n  float x = n;\n}\n", "k")[1] is False
