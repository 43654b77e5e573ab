"""The runtime ``emulator`` for users, with a backend that emits text and has a dialect."""

import sys
import types
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
import tile_emulator.adapter
from tile_core.abi.kernel_text import KernelText, LaunchFacts, LineMap, ParamFact
from tile_core.errors.launch import VerifyMismatch
from tile_core.manifest import BackendManifest
from tile_core.passes.lower_ops import MeaningVariant
from tile_core.passes.spine import Pass
from tile_core.plugins import manager, runtimes
from tile_core.target import Capabilities, Target
from tile_emulator import RunLimits
from tile_emulator.adapter import EmulatorAdapter
from tile_emulator.errors import FaultFound, NotEmulated

from .dialects.mini import MINI

TEXT = """\
__global__ void twice(const float* a, float* out, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) out[i] = a[i] * 2;
}
"""


@T.prim_func
def twice(a: T.Tensor((T.dynamic("n"),), "float32"), out: T.Tensor((T.dynamic("n"),), "float32")):
    with T.Kernel(T.ceildiv(a.shape[0], 64), threads=64) as bx:
        for i in T.Parallel(64):
            out[bx * 64 + i] = a[bx * 64 + i] * T.float32(2)


def facts(where=None):
    params = (
        ParamFact("a", "pointer", "float32", "read"), ParamFact("out", "pointer", "float32", "write"),
        ParamFact("n", "scalar", "int32"),
    )  # fmt: skip
    return LaunchFacts("twice", params, (("ceildiv", "n", 64), 1, 1), (64, 1, 1), line_map=LineMap(((3, where),)))


def backend(text, dialect):
    """A backend that emits one text for every kernel."""

    def emit(plan, ctx):
        where = plan.program.where
        kernel = KernelText(text, facts(where))
        return plan.replace(lowered=kernel, source=text, hidden=("n",))

    target = Target("toy", "toy", "toy", Capabilities(max_threads=1024))
    return {
        "tile_backend": lambda: BackendManifest("toy", ">=1,<2", ("toy",), "print of toy"),
        "tile_target": lambda text: target,
        "tile_lowerings": lambda target: (MeaningVariant("toy", "copy"),),
        "tile_pipeline": lambda target, spine: spine.then(Pass("emit", emit, "the end: text")),
        "tile_emulation": lambda target: dialect,
    }


@pytest.fixture
def install(monkeypatch):
    """Install the backend ``toy``, and the emulator as its distribution does."""

    def run(text=TEXT, dialect=MINI):
        module = types.ModuleType("in_memory_toy")
        vars(module).update(backend(text, dialect))
        monkeypatch.setitem(sys.modules, "in_memory_toy", module)
        plugins = manager.Plugins([EntryPoint("toy", "in_memory_toy", "tile.backends")])
        monkeypatch.setattr(manager, "installed", lambda: plugins)
        entry = EntryPoint("emulator", "tile_emulator.adapter:runtime", runtimes.GROUP)
        monkeypatch.setattr(runtimes, "offered", lambda: {"emulator": (entry,)})

    return run


def test_a_kernel_is_called_and_verified(install):
    install()
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    x = np.random.default_rng(0).standard_normal(100).astype("float32")
    np.testing.assert_array_equal(kernel(x), 2 * x)
    kernel.verify(x)
    kernel.verify(x, runtime="emulator")
    assert kernel.source == TEXT
    assert kernel.adapter.name == "emulator"


def test_a_fault_names_the_line_of_the_kernel(install):
    install(TEXT.replace("i < n", "i <= n"))
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    with raises_error(FaultFound, kernel="twice", count=1) as caught:
        kernel(np.ones(100, "float32"))
    assert caught.value.where.file == __file__
    assert "a[100], by thread (36, 0, 0) of block (1, 0, 0)" in str(caught.value)


def test_a_race_between_blocks_says_what_to_do(install):
    install(TEXT.replace("out[i]", "out[threadIdx.x]"))
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    with pytest.raises(FaultFound, match=r"another block(.|\n)*help: let each block write elements of its own"):
        kernel(np.arange(100, dtype="float32"))


def test_wrong_numbers_are_found_by_verify(install):
    install(TEXT.replace("* 2", "* 3"))
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    with pytest.raises(VerifyMismatch):
        kernel.verify(np.ones(100, "float32"))


def test_a_target_without_a_dialect_is_refused(install):
    install(dialect=None)
    with raises_error(NotEmulated, target="toy") as caught:
        tile.compile(twice, "toy", runtime="emulator")
    assert "its backend offers no model of its text" in str(caught.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(NotEmulated, match="it is built from object, not from text"):
        EmulatorAdapter(MINI, "toy").load(object())


def test_settings_of_the_run_are_kept():
    adapter = EmulatorAdapter(MINI, checks=(), completion="early", limits=RunLimits(seconds=5))
    launch = adapter.load(KernelText(TEXT, facts()))
    a, out = np.ones(10, "float32"), np.zeros(10, "float32")
    launch(a, out, 10)
    np.testing.assert_array_equal(out, 2 * a)
    adapter.synchronize()


def test_the_entry_point_is_declared():
    from pathlib import Path

    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert '[project.entry-points."tile.runtimes"]\nemulator = "tile_emulator.adapter:runtime"' in text
    assert tile_emulator.adapter.NAME == "emulator"


def test_an_exported_kernel_runs_from_its_text(install, tmp_path):
    install()
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    loaded = tile.load(kernel.export(tmp_path / "twice.tile"), runtime="emulator")
    for n in (0, 1, 63, 64, 131):
        x = np.random.default_rng(n).standard_normal(n).astype("float32")
        np.testing.assert_array_equal(loaded(x), 2 * x)
    assert loaded.source == TEXT


def test_a_fault_of_a_loaded_kernel_names_file_and_line(install, tmp_path):
    install(TEXT.replace("i < n", "i <= n"))
    kernel = tile.compile(twice, "toy", out_idx=-1, runtime="emulator")
    loaded = tile.load(kernel.export(tmp_path / "twice.tile"), runtime="emulator")
    with pytest.raises(FaultFound) as caught:
        loaded(np.ones(100, "float32"))
    assert caught.value.where.file == "test_adapter.py"
    assert caught.value.where.line == kernel.signature.where.line
