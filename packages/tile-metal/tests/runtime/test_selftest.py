"""The self-test: measuring is fair, and all that the owner of a Mac runs once runs with the doubles."""

import dataclasses
import json
import subprocess
import sys
import time
import types
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import tile_core as tile
from tile_core import compiler
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_metal import versions
from tile_metal.lint import refusals
from tile_metal.testing import probes
from tile_metal.testing import selftest as module
from tile_metal.testing.cases import cases

from .fake_mlx import Mlx
from .fake_torch import Torch
from .texts import adapter

PAGE = Path(__file__).parents[4] / "docs" / "metal.md"
SMALL = cases(small=True)


@pytest.fixture
def selftest():
    return module


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

    def test_warm_up_comes_first_and_samples_alternate(self, selftest):
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
        a, kept = ramp(module, 64), []
        sides = [selftest.Side(n, lambda: kept.append(call(a, 2.0)), runtime.synchronize, True) for n in ("one", "two")]
        selftest.compare(sides, warmup=2, repeat=3, launches=4)
        assert len(module.launches) == 2 * (2 + 3 * 4)


def outcomes(report):
    return {name: outcome for _, name, outcome, _ in report.findings}


def double(library, generation, system, monkeypatch, **how):
    """The adapter of a double of a library, on a machine."""
    mx = Mlx(architecture=f"applegpu_g{generation}s", system=system, **how) if library == "mlx" else None
    torch = Torch(chip=f"Apple M{generation - 12}", system=system, **how)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return adapter(mx, torch, name=library, libraries=(library,))


TENSORS = [f"cooperative tensors of {kind}" for kind in ("half", "bfloat", "float", "char")]
TENSORS.append("indices of cooperative tensors")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("library", ["mlx", "torch"])
def test_assumptions_through_a_double(selftest, library, monkeypatch):
    report = selftest.Report()
    selftest.check_assumptions(report, double(library, 13, (15, 1), monkeypatch))
    assert [(name, detail) for _, name, outcome, detail in report.findings if outcome == "WRONG"] == []
    assert {n for n, outcome in outcomes(report).items() if outcome == "left"} == set(TENSORS)
    assert len(report.findings) == len(selftest.PROBES)
    (refused,) = [detail for _, name, _, detail in report.findings if name == "a product for metal4"]
    assert refused.startswith("refused: U808, MSL 4.0")
    verdicts = {claim: verdict for claim, verdict, _ in report.claims()}
    assert sorted(verdicts.values()).count("not asked") == 1
    assert "NO" not in verdicts.values()


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("library", "generation", "how", "tensors", "product", "said"),
    [("mlx", 17, {}, "ok", "ok", "all elements are right"), ("torch", 17, {}, "ok", "ok", "all elements are right"),
     ("mlx", 15, {}, "ok", "ok", "where metal4 is refused"), ("torch", 16, {}, "ok", "ok", "where metal4 is refused"),
     ("mlx", 18, {"actual": 15}, "WRONG", "WRONG", "of 2,048 elements are wrong")],
)  # fmt: skip
def test_generations(selftest, monkeypatch, library, generation, how, tensors, product, said):
    report = selftest.Report()
    runtime = double(library, generation, (26, 2), monkeypatch, **how)
    names = [TENSORS[0], TENSORS[-1], "a product for metal4", "version of MSL"]
    selftest.check_assumptions(report, runtime, names)
    assert outcomes(report) == dict(zip(names, (tensors, tensors, product, "ok"), strict=True))
    assert said in report.findings[0][3]
    assert report.findings[1][3].startswith("0 of") == (generation == 17)
    assert "MSL 4.0" in report.findings[3][3]


def test_a_library_that_compiles_another_language(selftest, monkeypatch):
    runtime = double("mlx", 13, (15, 1), monkeypatch)
    changed = types.SimpleNamespace(**{**vars(versions), "compiled_language": lambda *a: (3, 1)})
    monkeypatch.setattr(probes, "versions", changed)
    report = selftest.Report()
    selftest.check_assumptions(report, runtime, ["version of MSL"])
    assert "MSL 3.2, but MSL 3.1 is expected on macOS 15.1" in report.findings[0][3]


def test_the_statements_are_those_of_the_page(selftest):
    if not PAGE.is_file():
        pytest.skip("the pages are not here")
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for claim, names in selftest.CLAIMS:
        assert " ".join(claim.split()) in page
        assert set(names) <= set(selftest.PROBES)


class TestProcesses:
    """A probe may crash or hang; the report has a line for it anyway."""

    SCRIPTS: ClassVar = {
        "lanes are numbered like threads": 'print(\'PROBE {"outcome": "ok", "detail": "fine"}\')',
        "macros": "import os, signal; os.kill(os.getpid(), signal.SIGABRT)",
        "atomics": "import time; time.sleep(60)",
        "pragmas": "raise SystemExit('the compiler is gone')",
    }

    @pytest.mark.sweep(1)
    def test_each_is_a_line(self, selftest, monkeypatch, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import sys\n" + "".join(f"if {n!r} in sys.argv:\n    {c}\n" for n, c in self.SCRIPTS.items())
        )
        report, clock = selftest.Report(), selftest.Clock(time.monotonic() + 100)
        for name in self.SCRIPTS:
            # The others end before that on a busy machine, too.
            monkeypatch.setattr(selftest, "PROBE_SECONDS", 2.0 if name == "atomics" else 60.0)
            selftest.check_apart(report, "mlx", [name], clock, [sys.executable, str(script)])
        found = {name: (outcome, detail) for _, name, outcome, detail in report.findings}
        assert found["lanes are numbered like threads"] == ("ok", "fine")
        assert found["macros"][0] == found["atomics"][0] == found["pragmas"][0] == "WRONG"
        assert found["macros"][1].startswith("the process ended with -6")
        assert found["atomics"][1] == "did not end within 2 seconds"
        assert "the compiler is gone" in found["pragmas"][1]

    def test_without_time_nothing_is_asked(self, selftest):
        report = selftest.Report()
        selftest.check_apart(report, "mlx", ["macros"], selftest.Clock(time.monotonic() - 1), ["no such program"])
        assert report.findings == [("assumption, mlx", "macros", "left", "no time is left")]
        assert report.failed == 0

    @pytest.mark.sweep(1)
    def test_one_probe(self, tmp_path):
        command = [sys.executable, "-m", "tile_metal.selftest", "--probe", "bytes of scalars", "--runtime", "emulator"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == 'PROBE {"outcome": "ok", "detail": ""}', done.stderr

    @pytest.mark.sweep(1)
    def test_a_kit_that_does_not_end(self, selftest, monkeypatch, tmp_path):
        kit = tmp_path / "pytest.py"
        kit.write_text("import time\nprint('..s..F.. [ 5%]\\n..', flush=True)\ntime.sleep(60)\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        report = selftest.Report()
        selftest.conformance(report, "mlx", "", tmp_path, 10.0)
        ((part, name, outcome, detail),) = report.findings
        assert (part, name, outcome) == ("conformance", "mlx", "WRONG")
        assert detail.startswith("stopped after 10 seconds: 8 cases passed")
        selftest.conformance(report, "mlx", "", tmp_path, 0.0)
        assert report.findings[-1][2:] == ("left", "no time is left")


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
    asked = ["lanes are numbered like threads", "threadgroup memory", "bytes of scalars", "8-bit floats"]
    selftest.check_assumptions(report, Wrong(), asked)
    assert report.failed == len(report.findings) == 4
    report.timings.append({"name": "x", "seconds": {"a": [1e-6, 2e-6], "b": [3e-6]}})
    report.conformance["mlx"] = {"summary": "all right"}
    page = report.write(tmp_path)
    text = page.read_text()
    assert "| WRONG |" in text
    assert "| x | a | 1.5 us | 1.0 us |" in text
    assert "## Conformance, mlx" in text
    assert "| NO | lanes are numbered like threads: WRONG |" in text
    assert (tmp_path / "metal-selftest.json").is_file()


class TestKernels:
    """The 40 kernels run through the double of MLX, whose own functions are the references here."""

    def checked(self, case, monkeypatch, mx=None, **changes):
        mx = mx or Mlx()
        monkeypatch.setitem(sys.modules, "mlx", types.SimpleNamespace(core=mx))
        monkeypatch.setitem(sys.modules, "mlx.core", mx)
        monkeypatch.setattr(compiler, "find_runtime", lambda *_: adapter(mx))
        monkeypatch.setattr(module, "target_here", lambda: "metal")

        def theirs(_, *given):
            wide = [np.array(x if x.dtype.name == "int32" else x.astype(mx.float32)) for x in given]
            return mx.array(np.asarray(case.reference(*wide), np.float32))

        report = module.Report()
        changed = dataclasses.replace(case, **{"theirs": theirs, **changes})
        how = {"warmup": 1, "repeat": 1, "launches": 1}
        module.check_kernels(report, "mlx", [changed], module.Clock(time.monotonic() + 100), **how)
        return report, mx

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
    def test_each(self, case, monkeypatch):
        report, mx = self.checked(case, monkeypatch)
        ((part, name, outcome, detail),) = report.findings
        assert (part, name, outcome) == ("kernel, mlx", case.name, "ok"), detail
        (row,) = report.timings
        assert [len(samples) for samples in row["seconds"].values()] == [1, 1]
        assert len(mx.launches) >= 3  # the check, the launch before the samples, the sample

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
    def test_each_at_unaligned_addresses(self, case, monkeypatch):
        """Arguments begin in the middle of arrays, so that texts take the branch without vectors."""

        def shifted(mx, array):
            longer = np.concatenate([np.zeros(1, array.dtype), array.reshape(-1)])
            return mx.array(longer)[1:].reshape(array.shape)

        monkeypatch.setattr(module, "on_mlx", shifted)
        report, mx = self.checked(case, monkeypatch)
        assert report.findings[0][2] == "ok", report.findings
        assert mx.copies == 0

    def test_there_are_forty(self):
        assert len({case.name for case in SMALL}) == len({case.name for case in cases()}) == 40

    @pytest.mark.sweep(0.25)
    def test_a_wrong_kernel(self, monkeypatch):
        case = next(case for case in SMALL if case.name == "add f16 2100")
        report, _ = self.checked(case, monkeypatch, reference=lambda x, y: x + y + 0.1 * (np.arange(2100) == 7))
        assert report.findings[0][3].startswith("1 of 2100 elements differ by up to 0.1")
        assert report.timings == []

    @pytest.mark.sweep(0.25)
    def test_a_compiler_that_refuses(self, monkeypatch):
        case = next(case for case in SMALL if case.name == "add f16 2100")
        report, _ = self.checked(case, monkeypatch, Mlx(refuse="program_source:3: error: unknown type name"))
        assert report.findings[0][2] == "WRONG"
        assert "unknown type name" in report.findings[0][3]

    def test_without_time(self):
        report = module.Report()
        module.check_kernels(report, "mlx", SMALL[:2], module.Clock(time.monotonic() - 1))
        assert [row[2:] for row in report.findings] == [("left", "no time is left")] * 2

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("target", ["metal", "metal:metal4"])
    @pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
    def test_full_sizes_compile(self, case, target):
        context = make_context(target)
        text = lower(case.make(), context, installed()).lowered
        assert text.facts.shared_bytes <= 32768
        assert refusals(text.text) == ()


class TestTheCommand:
    def run(self, selftest, monkeypatch, *arguments):
        monkeypatch.setattr(sys, "argv", ["selftest", *arguments])
        return selftest.main()

    def test_without_a_device(self, selftest, monkeypatch, capsys):
        monkeypatch.setattr(selftest, "runtimes", lambda: ({}, {"mlx": "mlx is not installed"}))
        assert self.run(selftest, monkeypatch) == 0
        assert "There is no Metal device here (mlx is not installed)" in capsys.readouterr().out

    def test_help(self, selftest, monkeypatch):
        with pytest.raises(SystemExit) as ended:
            self.run(selftest, monkeypatch, "--help")
        assert ended.value.code == 0

    @pytest.mark.sweep(1)
    def test_dry_run(self, selftest, monkeypatch, tmp_path):
        asked = []
        monkeypatch.setattr(selftest, "conformance", lambda *given: asked.append(given[1:]))
        only = ("--only", "bytes of scalars", "--kernels", "add f16 2100", "product f16 40x40x40")
        assert self.run(selftest, monkeypatch, "--dry-run", "--output", str(tmp_path), *only) == 0
        ((runtime, part, folder, seconds),) = asked
        assert (runtime, part, folder) == ("emulator", "1/400", tmp_path)
        assert 0 < seconds <= 300
        page = (tmp_path / "metal-selftest.md").read_text()
        assert "| add f16 2100 | tile (emulator) |" in page
        timings = json.loads((tmp_path / "metal-selftest.json").read_text())["timings"]
        assert [row["name"] for row in timings] == ["product f16 40x40x40", "add f16 2100"]

    @pytest.mark.parametrize(
        ("auto", "chosen"), [("metal:metal4", "metal:metal4"), ("metal", "metal"), ("cpu", "metal")]
    )
    def test_the_target(self, selftest, monkeypatch, auto, chosen, tmp_path):
        plugins = types.SimpleNamespace(resolve_target=lambda text: types.SimpleNamespace(text=auto))
        monkeypatch.setattr(selftest, "installed", lambda: plugins)
        assert selftest.machine()["target"] == chosen
        (tmp_path / "pytest.py").write_text("import sys\nprint(' '.join(sys.argv))\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        report = selftest.Report()
        selftest.conformance(report, "mlx", "", tmp_path, 20.0)
        assert f"--tile-backend {chosen} " in report.conformance["mlx"]["summary"]

    def test_a_kernel_that_is_refused(self, selftest):
        def rows(sizes):
            raise tile.TileError(message="refused")
            yield

        report = selftest.Report()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selftest, "torch_rows", rows)
            selftest.benchmark(report, "torch", (8,))
        assert report.failed == 1
