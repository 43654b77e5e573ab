"""Test that reads of uninitialized scratch memory are refused where it is certain."""

from __future__ import annotations

import pytest

import tile_core as tile
from tile_core.errors.ops import NeverWritten

#: name -> (statements, text of the message, text of the remedy).
REFUSED = {
    "a product without T.clear": (
        "for k in T.Pipelined(2, num_stages=2):;     T.copy(A, a);     T.gemm(a, a, c)",
        "T.gemm adds to c, which has not been written before",
        "T.clear(c) first, or clear_accum=True",
    ),
    "a product that is cleared afterwards": (
        "T.copy(A, a); T.gemm(a, a, c); T.clear(c)", "T.gemm adds to c", "T.clear(c) first"
    ),
    "a reduction that goes on": (
        "T.copy(A, a); T.reduce_sum(a, row, dim=1, clear=False)", "T.reduce_sum adds to row", "or clear=True"
    ),
    "a copy": ("T.copy(a, A)", "T.copy reads a", "write it first, with T.copy, T.clear, T.fill"),
    "a copy in a branch": ("if n > 3:;     T.copy(a, A)", "T.copy reads a", "write it first"),
    "an operand": ("T.clear(c); T.gemm(a, a, c)", "T.gemm reads a", "write it first"),
    "the other half": ("T.clear(a[0:8, 0:16]); T.copy(a[8:16, 0:16], A[0:8, 0:16])", "T.copy reads a", "write"),
    "an element": ("for i in T.Parallel(16):;     B[i] = row[i]", "this statement reads row", "write it first"),
    "an element that is written next": (
        "for i in T.Parallel(16):;     row[i] = row[i] + 1.0", "this statement reads row", "write it first"
    ),
    "an atomic": ("T.atomic_add(s[0], 1.0); T.copy(s, B)", "T.atomic_add adds to s", "T.clear(s) first"),
    "an array of a thread": (
        "for i in T.Parallel(16):;     own = T.alloc_local((2,), 'float32');     B[i] = own[1]", "reads own", "write"
    ),
    "an index": ("for i in T.Parallel(16):;     B[at[i]] = 0.0", "this statement reads at", "write it first"),
    "a condition": ("if at[0] > 0:;     T.clear(s)", "this statement reads at", "write it first"),
    "the first iteration": (
        "for k in T.serial(n):;     T.copy(s, B);     T.clear(s)", "T.copy reads s", "write it first"
    ),
    "through a view": ("v = T.view(s, (4, 4)); T.copy(v[0, 0:4], B[0:4])", "reads s", "write it first"),
}  # fmt: skip

ACCEPTED = {
    "cleared": "T.copy(A, a); T.clear(c); T.gemm(a, a, c)",
    "clear_accum": "T.copy(A, a); T.gemm(a, a, c, clear_accum=True)",
    "cleared in the first iteration": (
        "for k in T.serial(4):;     T.copy(A, a);     T.gemm(a, a, c, clear_accum=k == 0)"
    ),
    "under a condition": "for k in T.serial(4):;     if k == 0:;         T.clear(row);     T.copy(row, B)",
    "written by the iteration before": (
        "for k in T.serial(n):;     if k > 0:;         T.copy(s, B);     T.clear(s)"
    ),
    "after an inner loop that may be empty": (
        "for k in T.serial(4):;     for j in T.serial(k):;         T.copy(row, B);     T.clear(row)"
    ),
    "after a loop that may be empty": "for k in T.serial(n):;     T.clear(s)\n        T.copy(s, B)",
    "on the other side of a choice": (
        "for k in T.serial(4):;     x = T.if_then_else(k > 0, row[0], 0.0);     T.fill(row, x)"
    ),
    "through a view": "v = T.view(s, (4, 4)); T.clear(v); T.copy(s, B)",
    "its half": "T.clear(a[0:8, 0:16]); T.copy(a, A)",
    "a part that depends": "T.clear(a[n * 8, 0]); T.copy(a[8:16, 0:16], A[0:8, 0:16])",
    "a variable": "x = T.alloc_var('float32'); B[0] = x",
    "a reducer": "r = T.alloc_reducer((16,), 'float32'); T.finalize_reducer(r); T.copy(r, B)",
    "a loop that never runs": "for k in T.serial(0):;     T.copy(s, B)",
    "other threads": (
        "t = T.get_thread_binding(0); if t == 1:;     B[0] = s[0]; if t == 0:;     s[0] = 1.0"
    ),
}  # fmt: skip

TEXT = """
import tile_core.language as T

@T.prim_func
def k(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16,), "float32"), n: T.int32):
    with T.Kernel(2, threads=32) as bx:
        a = T.alloc_shared((16, 16), "float16")
        s = T.alloc_shared((16,), "float32")
        at = T.alloc_shared((16,), "int32")
        c = T.alloc_fragment((16, 16), "float32")
        row = T.alloc_fragment((16,), "float32")
        {body}
"""


def program(path, body):
    text = TEXT.format(body=body.replace("; ", "\n" + " " * 8))
    path.write_text(text)
    scope: dict[str, object] = {"__name__": "written"}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    body, found, remedy = REFUSED[name]
    with pytest.raises(NeverWritten) as caught:
        tile.compile(program(tmp_path / "k.py", body), target="cpu")
    assert caught.value.code == "K225"
    assert found in caught.value.message
    assert remedy in caught.value.help
    assert caught.value.where is not None
    assert caught.value.where.source in body


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name, tmp_path):
    try:
        tile.compile(program(tmp_path / "k.py", ACCEPTED[name]), target="cpu")
    except NeverWritten:
        raise
    except tile.TileError as error:
        pytest.fail(f"not even legal: {error}")


def test_every_target_refuses(tmp_path):
    body = REFUSED["a product without T.clear"][0]
    for target in ("cuda:sm_80", "metal:metal3"):
        with pytest.raises(NeverWritten):
            tile.compile(program(tmp_path / f"{target[:3]}.py", body), target=target, runtime="emulator")
