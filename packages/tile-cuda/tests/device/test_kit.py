"""The page of evidence, from results of a device."""

import json
import re
from collections import Counter

import pytest

from tile_core.testing.tables import cases

from . import kit

JUNIT = """<testsuites><testsuite>
<testcase name="test_case[gemm/a/x/1]@gemm/a"><properties><property name="tile_op" value="gemm"/>
<property name="tile_outcome" value="right"/></properties></testcase>
<testcase name="test_case[gemm/b//1]"><properties><property name="tile_op" value="gemm"/>
<property name="tile_outcome" value="refused"/>
<property name="tile_refusal" value="main: no int4 (allowed: x)"/></properties></testcase>
<testcase name="test_case[copy/c/y]"><properties><property name="tile_op" value="copy"/>
<property name="tile_outcome" value="wrong"/></properties>
<failure message="[K438] the device reports a fault">more</failure>
</testcase>
<testcase name="test_case[copy/d/y]"><skipped message="s"/></testcase>
<testcase name="test_case[copy/e[0]]"><failure message="worker 'gw1' crashed while running it"/></testcase>
<testcase name="test_other"/>
</testsuite></testsuites>"""


def written(tmp_path):
    (tmp_path / "kit.xml").write_text(JUNIT)
    return dict(kit.read_junit(tmp_path / "kit.xml"))


def test_outcomes_are_read(tmp_path):
    found = written(tmp_path)
    assert {name: (kind, op) for name, (kind, op, _) in found.items()} == {
        "gemm/a/x/1": ("right", "gemm"),
        "gemm/b//1": ("refused", "gemm"),
        "copy/c/y": ("wrong", "copy"),
        "copy/d/y": ("skipped", "copy"),
        "copy/e[0]": ("wrong", "copy"),
    }
    lost = [name for name, (kind, _, detail) in found.items() if kind == "wrong" and kit._LOST.search(detail)]
    assert lost == ["copy/c/y", "copy/e[0]"]
    assert list(kit.read_junit(tmp_path / "none.xml")) == []


def test_the_page(tmp_path):
    record = {
        "target": "cuda:sm_90a", "seed": 3, "seconds": 77, "finished": False, "alone": 2,
        "counts": {"gemm": {"right": 5, "refused": 1}, "copy": {"right": 2, "wrong": 1}},
        "wrong": {"copy/c/y": "3 of 4 elements are wrong\nthe kernel"}, "refused": {"no int4": 1},
    }  # fmt: skip
    kit._write(tmp_path / "conformance.json", record)
    kit._write(tmp_path / "machine.json", {"device": "Some 90", "driver": "1.2", "commit": "abc", "day": "2026-01-02"})
    (tmp_path / "replay.txt").write_text("op  right\n")
    tool = {"code": 0, "seconds": 4, "summary": "ERROR SUMMARY: 0 errors", "version": "2026.1"}
    kit._write(tmp_path / "memcheck.json", tool)
    lines = kit.page(tmp_path, "def").splitlines()
    assert lines[0] == "# Some 90, 2026-01-02"
    for line in (
        "| commit | def |",
        "| copy | 2 | - | - | 1 |",
        "| all ops | 7 | 1 | - | 1 |",
        "- 1 x no int4",
        "- `copy/c/y`: 3 of 4 elements are wrong",
        "| memcheck | 0 | ERROR SUMMARY: 0 errors | 4 |",
    ):
        assert line in lines
    assert any("77 s, STOPPED before the end; 2 kernels" in line for line in lines)


def test_a_page_of_nothing_is_short(tmp_path):
    assert kit.page(tmp_path).splitlines()[0].startswith("# A device")


def test_a_machine_without_a_device_reports_its_versions():
    found = kit.machine()
    assert found["device"] == "" or found["driver"]
    assert found["tile-cuda"]


def test_names_of_cases_have_no_bracket_that_ends_a_name_early():
    assert Counter(c.id.endswith("]") for c in cases("cuda:sm_100a"))[True] == 0


def test_replay_of_a_recording_that_is_not_there(tmp_path):
    given = ["replay", str(tmp_path), "--recorded", str(tmp_path / "none")]
    assert kit.main(given) != 0
    assert re.search("no CUDA driver|manifest.json", (tmp_path / "replay.txt").read_text())
    assert json.loads((tmp_path / "machine.json").read_text())["python"]


@pytest.mark.sweep(3)
def test_the_kit_on_the_host(tmp_path, capsys):
    given = ["conformance", str(tmp_path), "--target", "cpu", "--workers", "1", "-k", "fill and int8"]
    assert kit.main(given) == 0
    record = json.loads((tmp_path / "conformance.json").read_text())
    assert record["finished"]
    assert record["counts"]["fill"]["right"] >= 1
    assert "all ops" in capsys.readouterr().out


@pytest.mark.sweep(3)
def test_a_run_without_cases_is_no_result(tmp_path):
    with pytest.raises(SystemExit, match=r"no case was run(.|\n)*deselected"):
        kit.main(["conformance", str(tmp_path), "--workers", "0", "-k", "nothing-is-called-so"])
    assert not (tmp_path / "conformance.json").exists()
