"""The conformance suite finds wrong results, distinguishes rejections, and skips by declaration."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import KernelError, UnsupportedError
from tile_core.target import ABSENT, Capabilities
from tile_core.testing.case import EXACT, Launch, Part, Tolerance, Unit, one, output, refused, tensor
from tile_core.testing.data import TYPES, anything, different, from_codes, numbers, poisoned, stored, unharmed, values
from tile_core.testing.needs import excuse, optional
from tile_core.testing.run import Session
from tile_core.testing.tables import cases


def doubled(want=lambda d: values(d["A"], "float32") * 2, code="B[i] = A[i] * 2"):
    params = [tensor("A", "float32", 8), output("B", "float32", 8)]
    data = {"": lambda rng: {"A": numbers(rng, (8,), "float32")}}
    return one("parallel", "doubled", params, f"for i in T.Parallel(8):\n    {code}", want, data)


def outcome(unit, session=None):
    (case,) = unit.cases()
    # As the suite runs: other levels admit what the reference computes where it differs from the expected values.
    return (session or Session(options={"numerics": "strict"})).run(case)


def test_there_are_enough_cases_and_every_op_has_some():
    every = cases()
    assert len(every) >= 1500
    tested = "\n".join(text for unit in {id(c.unit): c.unit for c in every}.values() for text in [unit.text()])
    special = {
        "warp_reduce_sum",
        "print",
        "device_assert",
        "annotate_l2_hit_ratio",
        "annotate_layout",
        "make_tensor",
        "Ref",
    }
    ops = {
        n
        for n in T.__all__
        if re.fullmatch(
            "copy|fill|clear|transpose|view|reshape|gemm\\w*|gather|scatter|fp8_\\w+|reduce_\\w+|"
            "cum\\w+|finalize\\w+|atomic_\\w+|c2d_\\w+|dp4a|shfl_\\w+|warp_\\w+|ballot|any_sync|all_sync|sync_threads",
            n,
        )
    }
    missing = sorted(n for n in ops - special - {"gemm_v2", "gemm_sp_v2"} if f"T.{n}(" not in tested)
    assert not missing
    assert {
        d
        for unit in {id(c.unit): c.unit for c in every}.values()
        for d in unit.features(next(iter(unit.parts)))
        if d in TYPES
    } == set(TYPES)


def test_right_and_wrong():
    assert outcome(doubled()).kind == "right"
    wrong = outcome(doubled(lambda d: values(d["A"], "float32") * 3))
    assert wrong.kind == "wrong"
    assert "elements are wrong, first at" in wrong.detail
    assert "def main(" in wrong.detail
    assert "B[i] = A[i] * 2" in wrong.detail


def test_an_input_that_is_written_is_found():
    assert "the input A was written" in outcome(doubled(code="A[i] = B[i]", want=lambda d: {})).detail


def test_elements_that_nobody_wrote_are_found():
    wrong = outcome(doubled(code="B[i // 2] = A[i // 2] * 2"))
    assert wrong.kind == "wrong"
    assert "nan" in wrong.detail


def test_illegal_kernels_must_be_refused():
    a = [tensor("A", "float32", 8)]
    assert outcome(refused("copy", "x", "A[8] = 0.0", "K106", params=a)).kind == "refused"
    other = outcome(refused("copy", "x", "A[8] = 0.0", "K999", params=a))
    assert other.kind == "wrong"
    assert "expected K999, found K106" in other.detail
    assert "but the kernel compiled" in outcome(refused("copy", "x", "A[7] = 0.0", "K106", params=a)).detail


class Picky(Session):
    """A target that refuses programs with a word in them."""

    strict = False
    word = "T.gemm"
    error: type[Exception] = UnsupportedError

    def compile(self, program):
        if self.word in str(program.func.script()):
            raise self.error(message="it cannot")
        return super().compile(program)


@pytest.mark.parametrize(("dtype", "kind"), [("float64", "refused"), ("float32", "wrong")])
def test_refusals_of_legal_kernels(dtype, kind):
    params = [tensor("A", dtype, 8), output("B", dtype, 8)]
    data = {"": lambda rng: {"A": numbers(rng, (8,), dtype)}}
    unit = one("copy", "x", params, "T.copy(A, B)", lambda d: values(d["A"], dtype), data)
    session = Picky()
    session.word = "tile.copy"
    assert outcome(unit, session).kind == kind
    session.error = KernelError
    assert "a legal kernel was refused" in outcome(unit, session).detail


def test_a_refused_part_does_not_take_the_others_with_it():
    parts = {
        "good": Part((output("B", "float32", 4),), "T.fill(B, 1)", lambda d: np.ones(4)),
        "bad": Part((output("C", "float64", 4),), "T.copy(A, C)", lambda d: values(d["A"], "float32")),
    }
    data = {"": Launch(lambda rng: {"A": numbers(rng, (4,), "float32")})}
    unit = Unit("copy", "x", (tensor("A", "float32", 4),), "", parts, data)
    session = Picky()
    session.word = "tile.copy"
    session.select(unit.cases())
    assert [session.run(c).kind for c in unit.cases()] == ["right", "refused"]


def test_skips_are_declared():
    none = Capabilities(max_threads=64, shared_bytes=1024, extra=ABSENT.value(("float64", "warps")))
    assert "no float64" in excuse(frozenset({"copy", "float64"}), 32, none)
    assert "no warps" in excuse(frozenset({"warps"}), 32, none)
    assert "128 threads" in excuse(frozenset({"copy"}), 128, none)
    assert "2048 bytes" in excuse(frozenset({"shared:2048"}), 32, none)
    assert "no atomic add of float16" in excuse(frozenset({"atomic:add:float16"}), 32, none)
    assert not excuse(frozenset({"copy", "float32"}), 64, none)
    assert "int4" in optional(frozenset({"copy", "int4"}))
    assert not optional(frozenset({"copy", "float16"}))
    assert "gemm_sp" in optional(frozenset({"gemm_sp", "float16"}))


@pytest.mark.parametrize("dtype", TYPES)
def test_data_of_every_type(dtype):
    rng = np.random.default_rng(1)
    for array in (anything(rng, (6, 10), dtype), numbers(rng, (6, 10), dtype), poisoned((6, 10), dtype)):
        assert values(array, dtype, (6, 10)).shape == (6, 10)
        assert unharmed(array)
    numbered = numbers(rng, (6, 10), dtype)
    assert not different(numbered, values(numbered, dtype), dtype, EXACT)
    again = stored(values(numbered, dtype), dtype)
    assert again.tobytes() == numbered.tobytes()
    assert from_codes(np.ones((2, 4), np.uint64), dtype).size


def test_comparison():
    found = np.array([0.0, -0.0, np.nan, np.inf, 1.0], np.float32)
    assert not different(found, found, "float32", EXACT)
    assert "first at (0,)" in different(found, np.array([-0.0, -0.0, np.nan, np.inf, 1.0]), "float32", EXACT)
    assert not different(found, np.array([-0.0, 0.0, np.nan, np.inf, 1.0]), "float32", Tolerance(zeros=False))
    assert "first at (3,)" in different(found, np.array([0, -0.0, np.nan, 5.0, 1.0]), "float32", Tolerance(rtol=1.0))
    assert not different(found, np.array([0, -0.0, np.nan, np.inf, 1.1]), "float32", Tolerance(rtol=0.2))
    assert "shape" in different(found, np.zeros(4), "float32", EXACT)


def test_strided_outputs_keep_their_strides():
    params = [dataclasses.replace(output("B", "float32", 3, 4), strides=(10, 2))]
    data = {"": lambda rng: {"B": np.zeros((3, 10), np.float32)[:, :8:2]}}
    unit = one("copy", "x", params, "for i, j in T.Parallel(3, 4):\n    B[i, j] = i * 10 + j",
               lambda d: np.arange(3)[:, None] * 10 + np.arange(4), data)  # fmt: skip
    assert outcome(unit).kind == "right"


def pytest_run(*arguments):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tile_core.testing.plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.sweep(1)
def test_the_command_of_the_documentation(tmp_path):
    report = tmp_path / "junit.xml"
    done = pytest_run(
        "--pyargs",
        "tile_core.testing",
        "--tile-backend",
        "cpu",
        "--tile-runtime",
        "host",
        "-k",
        "dp4a",
        f"--junitxml={report}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tile conformance: cpu, host, seed 0" in done.stdout
    assert re.search(r"dp4a\s+4\s+2\s+-\s+-", done.stdout)
    properties = [p.attrib for p in ET.parse(report).iter("property")]
    assert {"name": "tile_op", "value": "dp4a"} in properties
    assert sum(p["value"] == "refused" for p in properties) == 2


@pytest.mark.sweep(1)
def test_unknown_runtimes_are_refused():
    done = pytest_run("--pyargs", "tile_core.testing", "--tile-runtime", "abacus", "-k", "dp4a/int8-int8")
    assert done.returncode == 1
    assert "has no runtime 'abacus'" in done.stdout
    assert "its runtimes are: host" in done.stdout


def test_the_plugin_is_inert_without_the_kit(tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain(): pass\n")
    done = pytest_run(str(tmp_path))
    assert done.returncode == 0
    assert "tile" not in done.stdout.replace(str(tmp_path), "").replace("tile-core", "")


@pytest.mark.parametrize("count", [1, 3, 4, 24])
def test_parts_of_the_kit_are_the_kit(count: int) -> None:
    from tile_core.testing.plugin import _in_part
    from tile_core.testing.tables import cases

    all_cases = list(cases())
    kernels = {(c.unit.op, c.unit.name) for c in all_cases}
    parts = [_in_part(all_cases, f"{k}/{count}") for k in range(1, count + 1)]
    assert set().union(*parts) == kernels
    assert all({op for op, _ in part} == {op for op, _ in kernels} for part in parts)


@pytest.mark.parametrize("part", ["0/2", "3/2", "x", "1", "1/0"])
def test_a_part_that_does_not_exist_is_refused(part: str) -> None:
    from tile_core.testing.plugin import _in_part

    with pytest.raises(pytest.UsageError, match="expected K/N"):
        _in_part([], part)
