"""examples/metal_selftest.py: measuring is fair, and what a Mac's owner runs once runs with the doubles."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

import tile_core as tile

from .fake_mlx import Mlx
from .fake_torch import Torch
from .texts import adapter

FILE = Path(__file__).parents[4] / "examples" / "metal_selftest.py"


@pytest.fixture(scope="module")
def selftest():
    if not FILE.is_file():
        pytest.skip("the examples are not here")
    spec = importlib.util.spec_from_file_location("metal_selftest", FILE)
    module = sys.modules["metal_selftest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["metal_selftest"]


class TestFairness:
    def sides(self, selftest, log, **allocates):
        return [
            selftest.Side(name, lambda n=name: log.append((n, "launch")), lambda n=name: log.append((n, "wait")), each)
            for name, each in allocates.items()
        ]

    def test_both_sides_do_the_same(self, selftest):
        log = []
        found = selftest.compare(self.sides(selftest, log, a=True, b=True), warmup=3, repeat=4, launches=5)
        counts = Counter(log)
        assert counts["a", "launch"] == counts["b", "launch"] == 3 + 4 * 5
        assert counts["a", "wait"] == counts["b", "wait"] == 1 + 4 * 2
        assert [len(samples) for samples in found.values()] == [4, 4]

    def test_warm_up_comes_first_and_samples_take_turns(self, selftest):
        log = []
        selftest.compare(self.sides(selftest, log, a=False, b=False), warmup=1, repeat=2, launches=1)
        a = [("a", "wait"), ("a", "launch"), ("a", "wait")]
        b = [("b", "wait"), ("b", "launch"), ("b", "wait")]
        assert log == [("a", "launch"), ("a", "wait"), ("b", "launch"), ("b", "wait"), *a, *b, *b, *a]

    def test_the_clock_stops_after_waiting(self, selftest):
        log = []
        sides = self.sides(selftest, log, a=True)
        times = iter(range(100))

        def clock():
            log.append("clock")
            return next(times)

        found = selftest.compare(sides, warmup=0, repeat=1, launches=2, clock=clock)
        launch, wait = ("a", "launch"), ("a", "wait")
        assert log == [wait, wait, "clock", launch, launch, wait, "clock"]
        assert found == {"a": [0.5]}

    def test_outputs_are_allocated_by_both_or_by_none(self, selftest):
        with pytest.raises(ValueError, match=r"by all sides or by none \(a: allocates, b: given\)"):
            selftest.compare(self.sides(selftest, [], a=True, b=False))

    def test_names(self, selftest):
        sides = self.sides(selftest, [], a=True)
        with pytest.raises(ValueError, match="names of their own"):
            selftest.compare(sides * 2)

    @pytest.mark.parametrize("library", ["mlx", "torch"])
    def test_launches_reach_the_library(self, selftest, library, monkeypatch):
        from .test_adapter import ramp
        from .texts import kernel, scale, scale_params

        module = Mlx(run=False) if library == "mlx" else Torch(run=False)
        monkeypatch.setitem(sys.modules, "torch", module if library == "torch" else None)
        runtime = adapter(**{"mx" if library == "mlx" else "torch": module})
        call = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))
        a = ramp(module, 64)
        sides = [selftest.Side(n, lambda: call(a, 2.0), runtime.synchronize, True) for n in ("one", "two")]
        selftest.compare(sides, warmup=2, repeat=3, launches=4)
        assert len(module.launches) == 2 * (2 + 3 * 4)


@pytest.mark.parametrize("library", ["mlx", "torch"])
def test_assumptions_through_a_double(selftest, library, monkeypatch):
    mx, torch = Mlx(), Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(selftest.BUILTINS, "thread_index_in_simdgroup", "uint")
    report = selftest.Report()
    selftest.check_assumptions(report, adapter(mx if library == "mlx" else None, torch))
    assert [(name, detail) for _, name, outcome, detail in report.findings if outcome != "ok"] == []
    assert len(report.findings) == 8


def test_a_wrong_device_is_reported(selftest, tmp_path):
    class Wrong:
        name = "wrong"

        def from_host(self, array):
            return array

        to_host = from_host

        def load(self, text):
            return lambda *values: None

        def synchronize(self):
            pass

    report = selftest.Report({"system": "a | b"})
    selftest.check_assumptions(report, Wrong())
    assert report.failed == len(report.findings)
    report.timings.append({"name": "x", "seconds": {"a": [1e-6, 2e-6], "b": [3e-6]}})
    report.conformance["mlx"] = {"summary": "all right"}
    page = report.write(tmp_path)
    text = page.read_text()
    assert "| WRONG |" in text
    assert "| x | a | 1.5 us | 1.0 us |" in text
    assert "## Conformance, mlx" in text
    assert (tmp_path / "metal-selftest.json").is_file()


class TestTheCommand:
    def run(self, selftest, monkeypatch, *arguments):
        monkeypatch.setattr(sys, "argv", ["metal_selftest.py", *arguments])
        return selftest.main()

    def test_without_a_device(self, selftest, monkeypatch, capsys):
        monkeypatch.setattr(selftest, "runtimes", lambda: ({}, {"mlx": "mlx is not installed"}))
        assert self.run(selftest, monkeypatch) == 0
        assert "There is no Metal device here (mlx is not installed)" in capsys.readouterr().out

    def test_help(self, selftest, monkeypatch):
        with pytest.raises(SystemExit) as ended:
            self.run(selftest, monkeypatch, "--help")
        assert ended.value.code == 0

    def test_dry_run(self, selftest, monkeypatch, tmp_path):
        asked = []
        monkeypatch.setattr(selftest, "conformance", lambda *given: asked.append(given[1:]))
        assert self.run(selftest, monkeypatch, "--dry-run", "--output", str(tmp_path)) == 0
        assert asked == [("emulator", "1/400", tmp_path)]
        assert "matmul float16 32" in (tmp_path / "metal-selftest.md").read_text()

    def test_a_kernel_that_is_refused(self, selftest):
        def rows(sizes):
            raise tile.TileError(message="refused")
            yield

        report = selftest.Report()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(selftest.ROWS, "mlx", rows)
            selftest.benchmark(report, "mlx", (8,))
        assert report.failed == 1
