"""Copies of a thread, schedules of roles, marks of a profiler, and attributes that objects of tile do not have."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_core.errors import TileError
from tile_tilelang.errors import BadCall, NotOnHost
from tile_tilelang.host_tensors import in_host_memory
from tile_tilelang.running import answering, run
from tile_tilelang.unlaunched import NAME as UNLAUNCHED


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("dtype", "count"), [("float16", 8), ("int8", 16), ("float32", 4), ("float32", 1)])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_copies_of_a_thread_are_complete_for_those_that_wait(dtype, count, target) -> None:
    kept = 37

    @T.prim_func
    def kernel(A: T.Tensor((3, 64 * count), dtype), B: T.Tensor((64 * count,), dtype)):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((2, 64 * count), dtype)
            source = T.access_ptr(A[1, 0], "r", count, offset=tx * count)
            T.ptx_cp_async(T.access_ptr(S[1, tx * count], "w", count), source, count, tx < kept)
            T.sync_threads()
            for i in T.serial(count):
                B[tx * count + i] = S[1, (63 - tx) * count + i]

    if target != "cpu":
        pytest.importorskip("tile_emulator")
    rng = np.random.default_rng()
    a = rng.integers(1, 100, (3, 64 * count)).astype(dtype)
    b = np.full(64 * count, 101, dtype)
    tile.compile(kernel, target, runtime=None if target == "cpu" else "emulator")(a, b)
    expected = np.where(np.arange(64)[:, None] < kept, a[1].reshape(64, count), 0)[::-1]
    np.testing.assert_array_equal(b.reshape(64, count), expected)


@pytest.mark.parametrize("rows", [False, True])
def test_a_copy_that_may_cross_rows_or_types_is_refused(rows: bool) -> None:
    with pytest.raises(BadCall, match="a row of 63" if rows else "of type float32"):

        @T.prim_func
        def kernel(A: T.Tensor((2, 63 if rows else 64), "float16" if rows else "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((64,), "float16")
                T.ptx_cp_async(T.access_ptr(S, "w", 4), T.access_ptr(A[0, 0], "r", 4), 4)

    with pytest.raises(BadCall, match="sizes"):
        T.make_full_bank_swizzled_layout(8, 64, 16)
    with pytest.raises(BadCall, match="base"):
        T.access_ptr(3)


@pytest.mark.sweep(1)
def test_schedules_of_roles_change_nothing() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            scopes = [T.WSScope(T.WSScope.ROOT, {"copy": [T.WSSync.producer_acquire("s", stage=0), "load"]})]
            T.annotate_ws_schedule(
                T.WSSchedule(
                    num_warps=2,
                    roles=[T.WSRole("copy", warps_lo=0, warps_hi=1)],
                    pipelines=[T.WSPipeline("s", [S], depth=2)],
                    scopes=scopes,
                )
            )
            with T.ws_op("load"):
                T.copy(A, S, annotations={T.WSID: "load"})
            for i in T.Parallel(64):
                A[i] = S[63 - i]

    a = np.arange(64, dtype="float32")
    tilelang.compile(kernel, target="cpu").kernel(a)
    np.testing.assert_array_equal(a, np.arange(63, -1, -1))


def test_marks_of_a_profiler_record_nothing(tmp_path: Path) -> None:
    with answering():
        names: dict = {}
        exec("from tilelang.tools.cuda import iket", names)
        iket = names["iket"]
        session = iket.session(output_dir=tmp_path / "made")
        with pytest.warns(UserWarning, match="not recorded"):
            session.__enter__()
        with contextlib.ExitStack() as entered:
            entered.push(session)
            assert iket.output_path("a.cu").parent == tmp_path / "made"
            assert (tmp_path / "made").is_dir()
            with iket.range("part"):
                iket.mark("here", payload=iket.payload(1))
        assert iket.output_dir() is None
        assert (iket.event_table(), iket.trace_files(), iket.is_enabled()) == ([], [], False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import tilelang\ntilelang.language.GemmWarpPolicy.Square.compute_warp_partition(1, 2, 3)", "did you|it has"),
        ("from tilelang import tvm\ntvm.testing.no_such_name", "apache-tvm"),
        ("import tilelang\nimport tilelang.language as T\nT.float16.no_such_name", "it has|did you"),
    ],
)
def test_attributes_without_a_counterpart_end_in_the_catalogue(text: str, message: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    with pytest.raises(NotOnHost) as caught:
        run(str(script))
    assert isinstance(caught.value, AttributeError)
    assert any(part in (caught.value.help or "") for part in message.split("|"))
    script.write_text("import tilelang\n'text'.no_such_name")
    with pytest.raises(AttributeError) as other:
        run(str(script))
    assert not isinstance(other.value, TileError)


def test_targets_of_tvm_with_options_are_those_of_tile() -> None:
    with answering():
        names: dict = {}
        exec("from tilelang import tvm\nfound = tvm.target.Target('hip -mcpu=gfx942')", names)
        exec("own = tvm.target.Target('llvm').kind.name\nskips = tvm.testing.requires_package('no_such')", names)
    assert (names["found"], names["own"]) == ("rocm:gfx942", "llvm")


@pytest.mark.sweep(1)
def test_large_products_are_zeros_where_no_kernel_is_launched(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("torch has a device")
    large, small = torch.ones(1 << 10, 1 << 10, requires_grad=True), torch.ones(2, 2)
    with in_host_memory(products=False):
        found = large @ large.T
        assert found.shape == (1 << 10, 1 << 10)
        assert not found.any()
        found.sum().backward()
        assert torch.einsum("ij,jk->ki", [large.detach(), large.detach()]).dtype == torch.float32
        assert (small @ small == 2).all()
    assert large.grad is not None
    assert (large.detach() @ large.detach())[0, 0] == 1 << 10
    script = tmp_path / "script.py"
    script.write_text("import torch\nfound = torch.cuda.get_device_capability()")
    assert run(str(script), target="cuda:sm_120a")["found"] == (12, 0)
    script.write_text("import torch\na = torch.ones(1024, 1024)\nfound = float((a @ a).sum())")
    assert run(str(script), runtime=UNLAUNCHED)["found"] == 0
