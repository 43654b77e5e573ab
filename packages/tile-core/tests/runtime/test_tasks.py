"""Searches over executors, and the database of what was measured."""

from __future__ import annotations

import sqlite3
import warnings
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core import tasks
from tile_core.abi.adapter import RuntimeAdapter
from tile_core.errors.launch import NoWorkingConfig
from tile_core.runtime.kernel import there
from tile_core.runtime.results import Measured, Measurements, ResultsWarning
from tile_core.tuning import Trial, Tuned

CONFIGS = [{"block": 16}, {"block": -1}, {"block": 32}, {"block": 64}]


def scaled(n: int, block: int = 64) -> Any:
    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            B[bx * block : bx * block + block] = A[bx * block : bx * block + block] * 2

    return scale


def tuned(**options: Any) -> Any:
    factory = tile.jit(out_idx=[-1], target="cpu")(scaled)
    return tile.autotune(CONFIGS, warmup=0, repeat=1, **options)(factory)


class Deadly(Executor):
    """Loses the process of one configuration, and on the first round that of another one too."""

    def __init__(self, kills: int) -> None:
        self.kills, self.calls = kills, 0

    def submit(self, fn: Any, *args: Any, **keywords: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls += 1
        (task,) = args
        if _block(task) == self.kills or self.calls == 1:
            future.set_exception(BrokenExecutor("a process ended"))
        else:
            future.set_result(fn(*args, **keywords))
        return future


def _block(task: Any) -> int:
    return int(task.program.func.body.extent) and -(-100 // int(task.program.func.body.extent))


def test_any_executor_runs_the_configurations():
    with ThreadPoolExecutor(2) as pool:
        found = tuned(executor=pool).tune(100)
    assert [t.seconds is None for t in found.trials] == [False, True, False, False]
    a = np.arange(100, dtype="float32")
    assert np.array_equal(found.kernel(a), 2 * a)


@pytest.mark.sweep(1)
def test_processes_of_this_machine():
    found = tuned(executor=2).tune(100)
    assert [t.seconds is None for t in found.trials] == [False, True, False, False]


def product(n: int, block: int = 32) -> Any:
    @T.prim_func
    def square(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32")):
        with T.Kernel(T.ceildiv(n, block), T.ceildiv(n, block), threads=32) as (bx, by):
            total = T.alloc_fragment((block, block), "float32")
            left, right = T.alloc_shared((block, n), "float32"), T.alloc_shared((n, block), "float32")
            T.copy(A[by * block, 0], left)
            T.copy(A[0, bx * block], right)
            T.clear(total)
            T.gemm(left, right, total)
            for i, j in T.Parallel(block, block):
                total[i, j] = T.max(T.erf(total[i, j]), 0)
            T.copy(total, B[by * block, bx * block])

    return square


@pytest.mark.sweep(1)
def test_processes_read_programs_with_tile_ops():
    factory = tile.jit(out_idx=[-1], target="cpu")(product)
    configs = [{"block": 16}, {"block": 32}]
    found = tile.autotune(configs, warmup=0, repeat=1, executor=1)(factory).tune(70)
    assert [t.error for t in found.trials] == ["", ""]


def test_a_lost_process_loses_no_other_configuration():
    executor = Deadly(kills=_block_of(64))
    found = tuned(executor=executor).tune(100)
    assert [t.seconds is None for t in found.trials] == [False, True, False, True]
    assert found.trials[3].error.startswith("[S206] the process that ran it ended: BrokenExecutor")
    assert executor.calls == 5


def _block_of(block: int) -> int:
    return -(-100 // -(-100 // block))


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    file = tmp_path / "results.sqlite"
    first = tuned(results=file).tune(100)
    assert not any(t.known for t in first.trials)
    monkeypatch.setattr(tasks, "measure", None)  # a call would fail
    again = tuned(results=file).tune(100)
    assert [t.known for t in again.trials] == [True, False, True, True]  # tracing refuses the second at once
    assert again.config == first.config
    with pytest.raises(TypeError):
        tuned(results=file).tune(101)  # other sizes
    monkeypatch.setattr(RuntimeAdapter, "device_name", lambda self: "another device")
    with pytest.raises(TypeError):
        tuned(results=file).tune(100)


def test_what_this_process_traced_is_not_traced_again(tmp_path, monkeypatch):
    file, factory = tmp_path / "results.sqlite", tile.jit(out_idx=[-1], target="cpu")(scaled)
    how: dict[str, Any] = {"warmup": 0, "repeat": 1, "results": file}
    configs = [{"block": 16}, {"block": 32}]
    first = tile.autotune(configs, **how)(factory).tune(100)
    traced = []
    real = type(factory).program
    monkeypatch.setattr(type(factory), "program", lambda self, *a, **k: traced.append(k) or real(self, *a, **k))
    again = tile.autotune(configs[::-1], **how)(factory).tune(100)
    assert all(t.known for t in again.trials)
    assert again.config == first.config
    assert not traced
    other = tile.autotune(configs, check=False, **how)(factory).tune(100)  # another question
    assert not any(t.known for t in other.trials)
    tile.autotune(configs, **how)(factory).tune(101)
    assert len(traced) == 4
    monkeypatch.setattr(RuntimeAdapter, "device_name", lambda self: "another device")
    assert not any(t.known for t in tile.autotune(configs, **how)(factory).tune(100).trials)


def test_every_outcome_is_shown_when_it_is_there(tmp_path):
    seen: list[tuple[Any, int]] = []
    for _ in range(2):
        found = tuned(results=tmp_path / "r", watch=lambda trial, total: seen.append((trial, total))).tune(100)
        assert sorted(id(t.config) for t in found.trials) == sorted(id(t.config) for t, _ in seen)
        assert {total for _, total in seen} == {4}
        seen.clear()


@pytest.mark.parametrize("path", ["text", "text/below", "."])
def test_a_file_that_cannot_hold_results_is_refused_before_anything_is_measured(tmp_path, monkeypatch, path):
    (tmp_path / "text").write_text("this is no database" * 100)
    monkeypatch.setattr(tasks, "measure", None)
    with pytest.raises(tile.TileError, match="S207"):
        tuned(results=tmp_path / path).tune(100)


def test_an_interrupted_search_goes_on(tmp_path, monkeypatch):
    file, real, measured = tmp_path / "results.sqlite", tasks.measure, []

    def interrupted(task: Any) -> Any:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(task.key)
        return real(task)

    monkeypatch.setattr(tasks, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuned(results=file).tune(100)
    monkeypatch.setattr(tasks, "measure", real)
    found = tuned(results=file).tune(100)
    assert [t.known for t in found.trials] == [True, False, True, False]


def test_without_the_name_of_a_device_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(RuntimeAdapter, "device_name", lambda self: "")
    file = tmp_path / "results.sqlite"
    tuned(results=file).tune(100)
    assert not any(t.known for t in tuned(results=file).tune(100).trials)


def test_a_wrong_result_is_kept_with_its_code(tmp_path, monkeypatch):
    from tile_core.errors.launch import VerifyMismatch
    from tile_core.runtime.kernel import Kernel

    def wrong(self: Kernel, *values: Any, **rest: Any) -> None:
        facts = dict.fromkeys(("kernel", "name", "index", "found", "expected", "count", "size", "error"), 0)
        raise VerifyMismatch(**{**facts, **dict.fromkeys(_fields(VerifyMismatch), 0)})

    monkeypatch.setattr(Kernel, "verify", wrong)
    with raises_error(NoWorkingConfig, count=4):
        tuned(results=tmp_path / "r").tune(100)
    monkeypatch.setattr(tasks, "measure", None)
    with pytest.raises(tile.TileError, match=VerifyMismatch.code):
        tuned(results=tmp_path / "r").tune(100)


def _fields(error: Any) -> list[str]:
    import string

    return [f for _, f, _, _ in string.Formatter().parse(error.template + error.remedy) if f]


def odd(n: int, block: int = 32, factor: float = 2.0) -> Any:
    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    B[bx * block + i] = A[bx * block + i] * factor

    return scale


def inplace(n: int, block: int = 32) -> Any:
    @T.prim_func
    def add(A: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    A[bx * block + i] = A[bx * block + i] + 1

    return add


class TestResultsOfConfigurations:
    CONFIGS = ({"block": 16}, {"block": 16, "factor": 3.0}, {"block": 32})

    def search(self, configs: Any = CONFIGS, **how: Any) -> Any:
        factory = tile.jit(out_idx=[-1], target="cpu")(odd)
        return tile.autotune(list(configs), warmup=0, repeat=1, **how)(factory).tune(70)

    def test_one_that_changes_the_results_does_not_win(self, tmp_path):
        for _ in range(2):  # measured, and known
            found = self.search(results=tmp_path / "r")
            assert [t.error[:6] for t in found.trials] == ["", "[K430]", ""]
        assert [t.known for t in found.trials] == [True, True, True]

    def test_what_was_compared_with_another_is_compared_again(self, tmp_path):
        self.search(results=tmp_path / "r")
        found = self.search(self.CONFIGS[1:], results=tmp_path / "r")
        assert [t.error[:6] for t in found.trials] == ["", "[K430]"]
        assert found.config == self.CONFIGS[1]

    def test_a_reference_decides(self):
        found = self.search(reference=lambda a: a * 3)
        assert found.config == self.CONFIGS[1]
        assert [t.error[:6] for t in found.trials] == ["[K430]", "", "[K430]"]

    def test_without_checks_nothing_is_compared(self):
        assert not any(t.error for t in self.search(check=False).trials)

    def test_kernels_that_update_their_arguments(self):
        factory, a = tile.jit(target="cpu")(inplace), np.arange(70, dtype="float32")
        configs = [{"block": 16}, {"block": 32}, {"block": 64}]
        how = {"inputs": lambda n: [a], "warmup": 0, "repeat": 1}
        found = tile.autotune(configs, **how)(factory).tune(70)
        assert not any(t.error for t in found.trials)
        assert np.array_equal(a, np.arange(70))


class TestDamagedDatabases:
    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("seed", range(6))
    def test_scribbled_pages(self, tmp_path, seed):
        file = tmp_path / "r.sqlite"
        tuned(results=file).tune(100)
        rng, content = np.random.default_rng(seed), bytearray(file.read_bytes())
        start = int(rng.integers(16, len(content) - 600))
        content[start : start + 600] = rng.bytes(600)
        file.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tuned(results=file).tune(100)
        assert [t.seconds is None for t in found.trials] == [False, True, False, False]
        assert all(t.known for t in tuned(results=file).tune(100).trials if t.seconds is not None)

    def test_a_truncated_file_is_set_aside_with_a_warning(self, tmp_path):
        file = tmp_path / "r.sqlite"
        tuned(results=file).tune(100)
        file.write_bytes(file.read_bytes()[:5000])
        with pytest.warns(ResultsWarning, match="was damaged"):
            tuned(results=file).tune(100)
        assert file.with_name("r.sqlite.damaged").exists()

    def test_only_its_own_file_is_set_aside_without_its_header(self, tmp_path):
        file = tmp_path / "r.sqlite"
        file.write_text("a text of the user's" * 200)
        with pytest.raises(tile.TileError, match="S207"):
            Measurements(file).prepare()
        assert file.read_text().startswith("a text")
        with pytest.warns(ResultsWarning):
            Measurements(file, own=True).prepare()

    def test_rows_that_hold_something_else_are_unknown(self, tmp_path):
        file = tmp_path / "r.sqlite"
        tuned(results=file).tune(100)
        with sqlite3.connect(file) as db:
            db.execute("update results set seconds = 'fast'")
        assert not any(t.known for t in tuned(results=file).tune(100).trials)

    def test_databases_of_before_get_the_new_columns(self, tmp_path):
        file = tmp_path / "r.sqlite"
        with sqlite3.connect(file) as db:
            db.execute(
                "create table results (key text not null, device text not null, seconds real, error text not null, "
                "config text not null, kernel text not null, target text not null, at real not null, "
                "primary key (key, device))"
            )
        tuned(results=file).tune(100)
        assert any(t.known for t in tuned(results=file).tune(100).trials)

    def test_concurrent_writers_lose_nothing(self, tmp_path):
        file = tmp_path / "r.sqlite"

        def write(thread: int) -> None:
            kept = Measurements(file)
            for n in range(20):
                kept.store(f"{thread} {n}", Measured(1.0, "", "d"), config="", kernel="", target="")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        kept = Measurements(file)
        assert all(kept.find(f"{w} {n}", "d") for w in range(6) for n in range(20))


def _future(result: Any = None, error: BaseException | None = None, cancelled: bool = False) -> Future[Any]:
    future: Future[Any] = Future()
    if cancelled:
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


class Odd(Executor):
    """One that does something else with the second configuration that it gets."""

    def __init__(self, does: Any) -> None:
        self.does, self.seen = does, []

    def submit(self, fn: Any, *args: Any, **keywords: Any) -> Any:
        (task,) = args
        if task.key not in self.seen:
            self.seen.append(task.key)
        return self.does() if self.seen.index(task.key) == 1 else _future(fn(*args))


def _raise() -> None:
    raise ValueError("no")


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("does", "error"), [
    (lambda: None, "[S206]"), (_raise, "[S206]"), (lambda: _future(None), "[S206]"), (lambda: _future("x"), "[S206]"),
    (lambda: _future(error=ValueError("no")), "[S206]"), (lambda: _future(cancelled=True), "[S206]"),
    (Future, "[S210]"),
], ids=["nothing", "raises", "none", "text", "error", "cancelled", "never"])  # fmt: skip
def test_odd_executors_lose_one_configuration(does: Any, error: str) -> None:
    found = tuned(executor=Odd(does), timeout=1.0).tune(100)
    assert [t.error[:6] for t in found.trials if t.config["block"] != -1] == ["", error, ""]


def test_times_that_overlap_are_no_ranking() -> None:
    slow, fast = Trial({"a": 1}, 8.1e-3, low=1e-3, high=9e-3), Trial({"a": 2}, 2.3e-3, low=1e-3, high=3e-3)
    other = Trial({"a": 3}, 7e-3, low=6e-3, high=8e-3)
    assert slow.ties(fast)
    assert fast.ties(slow)
    assert not fast.ties(other)
    tuned_ = Tuned(None, fast.config, (slow, fast, other))
    assert tuned_.ties == (slow,)


def test_spread_is_kept(tmp_path) -> None:
    first = tuned(results=tmp_path / "r").tune(100)
    again = tuned(results=tmp_path / "r").tune(100)
    for trial, known in zip(first.trials, again.trials, strict=True):
        assert (trial.low, trial.seconds, trial.high) == (known.low, known.seconds, known.high)
        assert trial.seconds is None or trial.low <= trial.seconds <= trial.high


def test_arrays_of_other_libraries_stay_on_their_device() -> None:
    """An eager kernel is tuned with the arrays of its call, such as torch's on a GPU."""
    facts = SimpleNamespace(devices=(2,), from_host=lambda array: ("moved", array.shape))
    assert there(facts, np.zeros(3)) == ("moved", (3,))
    tensor = SimpleNamespace(shape=(3,), __dlpack__=None)
    assert there(facts, tensor) is tensor
