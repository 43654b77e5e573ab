"""Test ``tools/ci_summary.py``: reports of the kit and fuzzer as a table and badge."""

from __future__ import annotations

import json

import pytest

CASE = """<testcase name="test_case[{name}]"><properties><property name="tile_target" value="toy:a"/>
<property name="tile_runtime" value="{runtime}"/><property name="tile_op" value="{op}"/>
<property name="tile_outcome" value="{kind}"/></properties>{more}</testcase>"""


@pytest.fixture
def kit(tmp_path):
    """Write a report of the kit: tuples of op, outcome, and what the case has inside."""

    def write(*cases, name="kit.xml", runtime="emulator"):
        texts = [
            CASE.format(name=f"{op}/{n}", op=op, kind=kind, runtime=runtime, more="".join(more))
            for n, (op, kind, *more) in enumerate(cases)
        ]
        path = tmp_path / name
        path.write_text(f"<testsuites><testsuite>{''.join(texts)}</testsuite></testsuites>", encoding="utf-8")
        return path

    return write


@pytest.fixture
def fuzz(tmp_path):
    def write(runtime="emulator", failures=(), **counts):
        record = {"target": "toy:a", "runtime": runtime, "seed": 3, "counts": counts, "failures": list(failures)}
        path = tmp_path / "fuzz.json"
        path.write_text(json.dumps(record), encoding="utf-8")
        return path

    return write


def rows(text):
    return [line for line in text.splitlines() if line.startswith(("| ✓", "| ✗"))]


def test_cases_are_counted_by_target_and_runtime(tool, kit, fuzz):
    first = kit(("gemm", "right"), ("gemm", "refused"), ("copy", "right"), ("copy", "skipped", "<skipped/>"))
    second = kit(("gemm", "compiled"), name="text.xml", runtime="text")
    result = tool("ci_summary", first, second, fuzz(right=1200, refused=5, ran=1))
    assert result.status == 0, result.err
    assert rows(result.out) == [
        "| ✓ | `toy:a` | emulator | 2 | - | 1 | 1 | - | 1,206 | - |",
        "| ✓ | `toy:a` | text | - | 1 | - | - | - | - | - |",
    ]
    assert "| `gemm` | 1 | - | 1 | - | - |" in result.out


def test_reports_of_one_target_and_runtime_are_added_up(tool, kit):
    result = tool("ci_summary", kit(("gemm", "right")), kit(("gemm", "right"), name="other.xml"))
    assert rows(result.out) == ["| ✓ | `toy:a` | emulator | 2 | - | - | - | - | - | - |"]


def test_a_wrong_case_is_shown_with_its_report(tool, kit):
    result = tool(
        "ci_summary", kit(("gemm", "wrong", "<failure>a ```fence``` in &lt;it&gt;</failure>"), ("copy", "right"))
    )
    assert result.status == 1
    assert rows(result.out) == ["| ✗ | `toy:a` | emulator | 1 | - | - | - | 1 | - | - |"]
    assert "<summary>toy:a, emulator: test_case[gemm/0]</summary>" in result.out
    assert "a ` ` `fence` ` ` in <it>" in result.out


def test_a_case_that_has_no_outcome_is_wrong_if_it_broke(tool, kit, tmp_path):
    path = tmp_path / "crash.xml"
    path.write_text('<testsuite><testcase name="x"><error message="worker crashed"/></testcase></testsuite>')
    result = tool("ci_summary", path)
    assert result.status == 1
    assert "worker crashed" in result.out


def test_failures_of_the_fuzzer_are_wrong(tool, fuzz):
    failure = {"kind": "over time", "report": "the program"}
    result = tool("ci_summary", fuzz(failures=[failure], **{"right": 3, "over time": 1}))
    assert result.status == 1
    assert rows(result.out) == ["| ✗ | `toy:a` | emulator | - | - | - | - | - | 4 | 1 |"]
    assert "fuzzer, seed 3: over time" in result.out


def test_many_reports_are_cut(tool, kit):
    result = tool("ci_summary", kit(*[("gemm", "wrong", "<failure>x</failure>")] * 13))
    assert result.out.count("```text") == 10
    assert "... and 3 more of toy:a, emulator" in result.out


@pytest.mark.parametrize(
    ("cases", "message", "colour"),
    [
        ([("gemm", "right"), ("gemm", "right"), ("gemm", "refused")], "2 right, 1 refused", "brightgreen"),
        ([("gemm", "compiled")], "1 compiled", "brightgreen"),
        ([("gemm", "right"), ("gemm", "wrong", "<failure/>")], "1 wrong", "red"),
        ([("gemm", "skipped", "<skipped/>")], "nothing ran", "lightgrey"),
    ],
)
def test_badge(tool, kit, tmp_path, cases, message, colour):
    badge = tmp_path / "badge.json"
    tool("ci_summary", kit(*cases), "--badge", badge, "--label", "toy")
    assert json.loads(badge.read_text()) == {"schemaVersion": 1, "label": "toy", "message": message, "color": colour}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.xml", "no xml", "ParseError"),
        ("a.xml", "<testsuite><testcase name='x'/></testsuite>", "it has no case of the kit"),
        ("a.json", "{", "JSONDecodeError"),
        ("a.json", "{}", "KeyError"),
        ("a.json", "[]", "TypeError"),
    ],
)
def test_other_files_are_refused(tool, tmp_path, name, text, reason):
    path = tmp_path / name
    path.write_text(text)
    result = tool("ci_summary", path)
    assert result.status == 1
    assert "error[S317]" in result.err
    assert reason in result.err


def test_a_file_that_is_not_there_is_refused(tool, tmp_path):
    assert "error[S301]: cannot read" in tool("ci_summary", tmp_path / "gone.xml").err


def test_a_badge_that_cannot_be_written_is_refused(tool, kit, tmp_path):
    assert "error[S312]" in tool("ci_summary", kit(("gemm", "right")), "--badge", tmp_path / "no" / "x.json").err


class TestMatrix:
    """Jobs that left no report have failed, however right the others are."""

    @pytest.fixture
    def matrix(self, tmp_path):
        def write(*runtimes):
            path = tmp_path / "matrix.json"
            path.write_text(json.dumps({"include": [{"target": "toy:a", "runtime": r} for r in runtimes]}))
            return path

        return write

    def test_all_are_there(self, tool, kit, matrix):
        reports = [kit(("copy", "right"), name=f"{n}.xml") for n in range(2)]
        result = tool("ci_summary", *reports, "--matrix", matrix("emulator", "emulator"))
        assert result.status == 0
        assert rows(result.out) == ["| ✓ | `toy:a` | emulator | 2 | - | - | - | - | - | - |"]

    @pytest.mark.parametrize("runtimes", [("emulator", "emulator"), ("emulator", "text")])
    def test_one_is_missing(self, tool, kit, matrix, tmp_path, runtimes):
        badge = tmp_path / "badge.json"
        result = tool("ci_summary", kit(("copy", "right")), "--matrix", matrix(*runtimes), "--badge", badge)
        assert result.status == 1
        assert [row[:3] for row in rows(result.out)][-1] == "| \N{BALLOT X}"
        assert f"1 of {runtimes.count(runtimes[1])} jobs left no report" in result.out
        record = json.loads(badge.read_text(encoding="utf-8"))
        assert (record["message"], record["color"]) == ("1 of the jobs failed", "red")

    def test_none_is_there(self, tool, matrix):
        result = tool("ci_summary", "--matrix", matrix("text"))
        assert result.status == 1
        assert "1 of 1 jobs left no report" in result.out

    def test_without_reports_or_jobs_it_is_a_wrong_command_line(self, tool):
        assert tool("ci_summary").status == 2

    @pytest.mark.parametrize("text", ["", "[]", '{"include": [{}]}', '{"include": 3}'])
    def test_what_is_no_matrix_is_refused(self, tool, kit, tmp_path, text):
        path = tmp_path / "m.json"
        path.write_text(text)
        result = tool("ci_summary", kit(("copy", "right")), "--matrix", path)
        assert (result.status, "error[S" in result.err or "error[K" in result.err) == (1, True)


def test_a_line_of_which_nothing_ran_is_not_right(tool, kit):
    result = tool("ci_summary", kit(("copy", "skipped"), ("gemm", "refused")))
    assert "| - | `toy:a` | emulator | - | - | 1 | 1 | - | - | - |" in result.out
