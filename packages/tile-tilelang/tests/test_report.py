"""Reports of folders: each script's outcome, host names that are imported, and tensors in host memory."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tile_core.errors import TileError
from tile_core.errors.language import BadArgument
from tile_tilelang.__main__ import main
from tile_tilelang.errors import NoScript, NotAnswered, NotOnHost
from tile_tilelang.modules import MODULES
from tile_tilelang.report import Outcome, lines_of, outcome_of, report
from tile_tilelang.running import answering

KERNEL = """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def scale(N, block=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[bx * block + i] * 2.0
    return main

y = scale(1000)(np.ones(1000, "float32"))
"""
TUNED = KERNEL.replace("import tilelang\n", "import tilelang\nfrom tilelang import autotune\n").replace(
    "@tilelang.jit", '@autotune(configs=[{"block": 64}, {"block": 128}], ref_prog=lambda x: x * 2)\n@tilelang.jit'
)
SCRIPTS = {
    "compares.py": f"{KERNEL}scale(1000).get_profiler().assert_allclose(lambda x: x * 2)\n",
    "tuned.py": TUNED,
    "runs.py": KERNEL,
    "below/checks.py": f"{KERNEL}assert (y == 3).all()\n",
    "refused.py": KERNEL.replace("* 2.0", "* T.no_such_name(2)"),
    "foreign.py": "import no_such_package\nimport tilelang\n",
    "exits.py": f"{KERNEL}raise SystemExit(2)\n",
    "hangs.py": f"{KERNEL}import time\ntime.sleep(600)\n",
    "module.py": "import tilelang\n",
    "other.py": "raise ValueError\n",
}
EXPECTED = {
    "compares.py": "compiles",
    "tuned.py": "runs",
    "runs.py": "runs",
    "below/checks.py": "compiles",
    "refused.py": "refused",
    "foreign.py": "needs",
    "exits.py": "needs",
    "hangs.py": "compiles",
    "module.py": "empty",
}


@pytest.mark.sweep(0.25)
def test_a_folder(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = report(str(tmp_path), "cuda:sm_90a", seconds=20)
    assert {o.script: o.status for o in found} == EXPECTED
    assert {o.script: o.kernels for o in found}["hangs.py"] == 1
    lines = list(lines_of(found))
    assert lines[-1] == "5 of 6 scripts that have kernels and all packages: 83%"
    assert any(line.startswith("refused   refused.py  [K") for line in lines)


def test_a_report_needs_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoScript):
        report(str(tmp_path), "cpu")
    assert main(["--report", str(tmp_path)]) == 1
    assert "S652" in capsys.readouterr().err


def test_outcomes_without_kernels() -> None:
    error = BadArgument(function="f", name="n", found="1", expected="2", instead="3")
    assert outcome_of([], error)[0] == "refused"
    assert outcome_of([], ValueError("no"))[0] == "stops"
    assert outcome_of([], None)[0] == outcome_of([], SystemExit(0))[0] == "empty"
    alone = list(lines_of([Outcome("a.py", "stops", 0, "ValueError: 'x' 3")]))
    assert "   1 x ValueError: … …" in alone


@pytest.mark.parametrize("name", MODULES)
def test_a_module_and_all_of_its_names(name: str) -> None:
    with answering():
        module = importlib.import_module(f"tilelang.{name}")
        for known in dir(module):
            if not known.startswith("__"):
                getattr(module, known)
        with pytest.raises(TileError) as caught:
            module.no_such_name()
        assert caught.value.help


@pytest.mark.parametrize(
    "statement",
    ["from tilelang.testing import no_such_name", "from tilelang import no_such_name", "import tilelang.no_such"],
)
def test_imports_of_unknown_names_end_in_the_catalogue(statement: str) -> None:
    with answering(), pytest.raises(NotAnswered):
        exec(statement, {})


def test_names_without_a_counterpart_are_refused_where_they_are_used() -> None:
    with answering():
        names: dict = {}
        exec("from tilelang.carver.template import MatmulTemplate\nfrom tilelang.cuda.macro import a, b", names)
        exec("import tilelang.language.tir.ir as ir", names)
        with pytest.raises(NotOnHost, match=r"language\.tir\.ir\.cast"):
            names["ir"].cast()
        with pytest.raises(NotOnHost, match=r"carver\.template\.MatmulTemplate"):
            names["MatmulTemplate"](M=1)
        with pytest.raises(NotOnHost, match=r"cuda\.macro\.a"):
            names["a"].field()


def test_tensors_of_a_device_are_in_host_memory() -> None:
    torch = pytest.importorskip("torch")
    from tile_tilelang.devices import get_num_sms
    from tile_tilelang.host_tensors import in_host_memory

    if torch.cuda.is_available():
        pytest.skip("torch has a device")
    assert get_num_sms() >= 1
    with in_host_memory():
        made = torch.ones(3, device="cuda"), torch.ones(3).cuda(), torch.ones(3).to(torch.device("cuda", 0))
        assert torch.cuda.is_available()
    assert all(t.device.type == "cpu" for t in made)
    assert not torch.cuda.is_available()
