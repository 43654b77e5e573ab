"""Every model against an oracle, and against recorded devices."""

import functools
from pathlib import Path

import numpy as np
import pytest

from tile_cuda.emulation import tensor_opcodes
from tile_cuda.emulation.async_opcodes import four_rows, rows, sm_80_rows, sm_100_rows
from tile_cuda.emulation.opcodes import TENSOR_MEMORY, opcodes

from ..vectors import groups, record, table
from .launches import SM90, run_plan

pytestmark = pytest.mark.sweep(12)

GROUPS = groups.groups(SM90)
RECORDED = sorted((Path(record.__file__).parent / "recorded").glob("*.npz"))


@functools.cache
def launched(group, completion, order):
    plan = table.plan_of(GROUPS[group], 17)
    return plan, run_plan(GROUPS[group], plan.arrays, completion=completion, order=order)


@pytest.mark.parametrize("vector", [v for vs in GROUPS.values() for v in vs], ids=lambda v: v.name)
def test_agrees_with_the_oracle(vector):
    for completion, order in (("early", "forward"), ("late", "random")):
        plan, result = launched(vector.group, completion, order)
        assert result.ok, [str(report) for report in result.reports]
        table.check(vector, plan, {name: np.asarray(array) for name, array in result.outputs.items()})


def test_every_opcode_has_a_vector_or_stands_in_one():
    everything = "".join(v.body for v in groups.vectors())
    helpers = {"bar", "barrier", "membar", "fence", "activemask", "setp", "selp", "mov", "trap"}  # in test_language.py
    helpers.add("pmevent")  # in tests/ops/test_gemm_sp_wgmma.py: it does nothing
    timed = {f"{kind}.{of}" for kind in ("max", "min") for of in ("f32", "f64")}  # in tests/emit/test_extremes.py
    # In tests/emit/test_approximations.py.
    timed |= {"div.full.f32", "rcp.approx.ftz.f32", "sqrt.approx.f32", "ex2.approx.ftz.f32"}
    # In test_tensor_copies.py, test_clusters.py and test_four_rows.py.
    timed |= {opcode for opcode, *_ in tensor_opcodes.rows(TENSOR_MEMORY)}  # in tests/ops/test_gemm_tensor.py
    timed |= {o for o in opcodes() if ".block_scale." in o}  # in tests/ops/test_gemm_scaled_mma.py
    timed |= {opcode for opcode, _ in (*rows(), *sm_80_rows(), *sm_100_rows(), *four_rows())}
    missing = [o for o in opcodes() if o + " " not in everything and o + ";" not in everything
               and o.split(".")[0] not in helpers and ".L2::" not in o and o not in timed]  # fmt: skip
    assert not missing


class Emulated(record.Driver):
    """A driver whose device is the emulator."""

    def __init__(self):
        self.name = "the emulator"
        self.left = iter(GROUPS.values())

    def open(self, arch):
        assert arch == "sm_90a"

    def launch(self, image, entry, blocks, threads, shared, arrays):
        assert (entry, threads, shared) == (table.ENTRY, table.LANES, table.SHARED_BYTES)
        assert blocks == len(arrays["plan"]) // 4
        assert image[:4] == b"\x7fELF"
        result = run_plan(next(self.left), arrays)
        return {**arrays, **{name: np.asarray(array) for name, array in result.outputs.items()}}


@pytest.mark.sweep(2)
def test_a_recording_is_made_and_read(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    record.build(tmp_path / "built", "sm_90a")
    path = record.run(tmp_path / "built", tmp_path, Emulated())
    assert path.stat().st_size < 4 << 20
    for group in list(GROUPS)[-2:]:
        agree_with_recording(path, group)


def test_failed_launches_are_reported_and_the_others_are_kept(tmp_path):
    class Broken(Emulated):
        def launch(self, image, *rest):
            if image == b"bad":
                raise record.DriverError("cuLaunchKernel: no (1)")
            return rest[-1]

    arrays = {key: np.zeros(4, np.int32) for key in record.ARRAYS}
    for name in ("good", "bad"):
        (tmp_path / f"{name}.cubin").write_bytes(name.encode())
        np.savez(tmp_path / f"{name}.npz", **arrays)
    manifest = '{"arch": "sm_90a", "entry": "e", "lanes": 32, "shared": 0, "groups": {"bad": %s, "good": %s}}'
    group = '{"blocks": 1, "vectors": []}'
    (tmp_path / "manifest.json").write_text(manifest % (group, group))
    with pytest.raises(SystemExit, match=r"bad: cuLaunchKernel"):
        record.run(tmp_path, tmp_path / "results", Broken())
    with np.load(tmp_path / "results" / "sm_90a.npz") as found:
        assert "good/out" in found
        assert "bad/out" not in found


def test_a_machine_without_a_driver_is_reported(tmp_path, monkeypatch):
    def nothing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(record.ctypes, "CDLL", nothing)
    with pytest.raises(SystemExit, match="no CUDA driver"):
        record.main(["run", str(tmp_path), str(tmp_path)])


def recorded_groups():
    for path in RECORDED:
        with np.load(path) as found:
            for key in found.files:
                if key.endswith("/names"):
                    yield pytest.param(path, key[: -len("/names")], id=f"{path.stem}-{key[:-6]}")


@pytest.mark.parametrize(("path", "group"), list(recorded_groups()))
def test_agrees_with_a_device(path, group):
    agree_with_recording(path, group)


@np.errstate(all="ignore")
def agree_with_recording(path, group):
    with np.load(path) as found:
        kept = {key.split("/")[1]: found[key] for key in found.files if key.startswith(group + "/")}
    known = {v.name: v for v in groups.vectors()}
    vectors = [known[str(name)] for name in kept["names"]]
    arrays = {key: kept[key] for key in ("in", "plan", "memory")} | {"out": np.full_like(kept["out"], 0xFFFFFFFF)}
    result = run_plan(vectors, arrays)
    assert result.ok, [str(report) for report in result.reports]
    out, memory = (np.asarray(result.outputs[key]) for key in ("out", "memory"))
    wrong = []
    for index, at_in, at_out, at_memory in kept["plan"].reshape(-1, 4):
        v = vectors[index]
        x = kept["in"][at_in : at_in + 32 * v.inputs].reshape(32, v.inputs)
        size = v.memory(np.random.default_rng(0)).size if v.memory else 0
        expected = v.oracle(x, kept["memory"][at_memory : at_memory + size])
        rows = slice(at_out, at_out + 32 * v.outputs)
        cells = slice(at_memory, at_memory + size)
        try:
            model, device = (array[rows].reshape(32, v.outputs) for array in (out, kept["out"]))
            table.compare("words", model, device, None, v.name)
            if expected.memory is not None:
                table.compare("words", memory[cells], kept["memory_after"][cells], None, v.name)
        except AssertionError as difference:
            wrong.append(str(difference))
    assert not wrong, "\n".join(wrong)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_100a", "sm_120a"])
def test_the_device_compiler_accepts_the_texts_where_the_table_does(arch):
    pytest.importorskip("cuda.bindings.nvrtc")
    for vectors in groups.groups(groups.Arch.of(arch)).values():
        assert record.compiled(table.text_of(vectors), arch)


@pytest.mark.sweep(4)
def test_the_device_compiler_refuses_unsupported_instructions():
    pytest.importorskip("cuda.bindings.nvrtc")
    for v in groups.vectors():
        need = groups.model_of(v.opcode).need
        earlier = {89: "sm_86", 90: "sm_89"}.get(need.number)
        if earlier:
            with pytest.raises(SystemExit, match="NVRTC"):
                record.compiled(table.text_of([v]), earlier)
