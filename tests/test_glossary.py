"""The rules for words, and the data file of their findings, which may only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest
from glossary import Finding, findings, is_checked
from word_counts import COUNTS, check_glossary, read_counts, shrink

SOURCE = "packages/tile-x/src/tile_x/a.py"
PAGE = "docs/a.md"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def rules(text: str, name: str = SOURCE) -> list[tuple[int, str, str]]:
    return [tuple(finding) for finding in findings(name, text)]


class TestRules:
    @pytest.mark.parametrize(
        "word",
        [
            *(
                "told",
                "Nobody",
                "copier",
                "copiers",
                "in turns",
                "is none of",
                "are none of",
                "so many",
                "second cache",
            ),
            *("second-cache", "lines ahead", "divided sums", "zero sums", "lasting", "workers", "sums"),
            *("blocks that stay", "block that stays"),
        ],
    )
    def test_a_word_with_a_better_term_is_found_on_pages_and_in_code(self, word: str) -> None:
        expected = {(2, "word", word.removeprefix("divided ").removeprefix("zero "))}
        assert set(rules(f"# Head\nThe {word} here.\n", PAGE)) == expected
        assert set(rules(f"x = 1\ny = 'the {word} here'\n")) >= expected

    def test_a_phrase_is_found_across_lines(self) -> None:
        assert rules("# blocks\n# that stay\n") == [(1, "word", "blocks # that stay")]

    @pytest.mark.parametrize("text", ["sum", "accumulators", "everlasting", "max_workers", "totals", "sumsq"])
    def test_other_words_pass(self, text: str) -> None:
        assert rules(text, PAGE) == []

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            ("turns_of = 1", "turns_of"),
            ("def f(*, ahead=1): ...", "ahead"),
            ("class TakeTurn: ...", "TakeTurn"),
            ("LAST_TURN = 2", "LAST_TURN"),
            ("f(x.room_left)", "room_left"),
            ("f(place=1)", "place"),
            ("from a.later import b", "later"),
            ("import a as brought", "brought"),
            ("x = f'{all_pieces}'", "all_pieces"),
            ("def together(): ...", "together"),
            ("x = run_sums", "run_sums"),
        ],
    )
    def test_a_name_is_found(self, code: str, name: str) -> None:
        assert rules(code) == [(1, "identifier", name)]

    @pytest.mark.parametrize(
        "code", ["returned = turned = 1", "placement = replace", "x.in_place", "AddInPlace", "'ahead'", "# later"]
    )
    def test_other_names_and_texts_pass(self, code: str) -> None:
        assert rules(code) == []

    def test_a_name_that_is_a_word_counts_once(self) -> None:
        assert rules("sums = 1") == [(1, "word", "sums")]

    def test_a_file_name_is_found(self) -> None:
        assert rules("x = 1", "tools/turns_of/a.py") == [(1, "file-name", "turns_of")]
        assert rules("", "docs/ahead.md") == [(1, "file-name", "ahead")]

    @pytest.mark.parametrize("head", ["What a loop does.", "Those that wait.", "Return what is read.", "Who waits."])
    def test_a_summary_about_a_pronoun_is_found(self, head: str) -> None:
        assert rules(f'def f():\n    """{head}"""\n') == [(2, "summary", head)]

    def test_a_long_summary_is_found_in_packages(self) -> None:
        text = 'class A:\n    """Return one two three four five six seven\n    eight nine ten '
        text += 'eleven twelve thirteen fourteen fifteen.\n    """\n'
        assert rules(text) == [(2, "summary", "16 words")]
        assert rules(text, "tests/test_a.py") == []

    @pytest.mark.parametrize("text", ["Return the " + "x " * 13, "Check that x holds.", "Return it.\n\n" + "x " * 30])
    def test_other_docstrings_pass(self, text: str) -> None:
        assert rules(f'def f():\n    """{text}"""\n') == []

    @pytest.mark.parametrize("words", ["no longer", "used to be", "was changed", "now also", "Formerly"])
    def test_narration_is_found_in_comments(self, words: str) -> None:
        assert rules(f"x = 1  # {words} y\ns = '{words}'\n") == [(1, "narration", words)]

    def test_generated_pages_and_released_versions_pass(self) -> None:
        assert rules("# E\n\n<!-- Written by tools/x.py -->\nlasting\n", PAGE) == []
        changelog = "# C\n\n## [Unreleased]\n\n- lasting\n\n## [0.1.0]\n\n- lasting\n"
        assert list(findings("CHANGELOG.md", changelog)) == [Finding(5, "word", "lasting")]

    @pytest.mark.parametrize(
        "name", ["benchmarks/results/a.md", "docs/evidence/a.md", "a/golden/b.py", "tools/check_words.py", "a.txt"]
    )
    def test_records_and_other_files_are_left_out(self, name: str) -> None:
        assert not is_checked(name)
        assert is_checked(SOURCE)


class TestCounts:
    def test_more_findings_than_accepted_are_refused(self, tmp_path: Path) -> None:
        write(tmp_path / PAGE, "lasting\nlasting\n")
        write(tmp_path / COUNTS, f"{PAGE} word 1\n")
        for strict in (True, False):
            first, second, total = check_glossary(tmp_path, strict)
            assert first == f"{PAGE}:1: word: lasting"
            assert second == f"{PAGE}:2: word: lasting"
            assert total.startswith(f"{PAGE}: 2 of the rule 'word', {COUNTS.as_posix()} allows 1: ")

    def test_a_file_without_a_number_has_no_findings(self, tmp_path: Path) -> None:
        write(tmp_path / PAGE, "lasting\n")
        assert len(check_glossary(tmp_path, True)) == len(check_glossary(tmp_path, False)) == 2

    def test_ci_refuses_a_number_that_is_too_high(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(tmp_path / PAGE, "lasting\n")
        write(tmp_path / COUNTS, f"{PAGE} word 3\nb.py identifier 2\n")
        problems = [problem.partition(";")[0] for problem in check_glossary(tmp_path, True)]
        assert problems == [
            "tools/word_exceptions_prose.txt: b.py identifier: remove the line (2)",
            f"tools/word_exceptions_prose.txt: {PAGE} word: write 1, not 3",
        ]
        assert check_glossary(tmp_path, False) == []
        assert "2 count(s)" in capsys.readouterr().out

    def test_shrink_lowers_and_never_raises(self, tmp_path: Path) -> None:
        write(tmp_path / PAGE, "lasting\n")
        write(tmp_path / "docs" / "b.md", "lasting\nlasting\n")
        write(tmp_path / COUNTS, f"{PAGE} word 3\ndocs/b.md word 1\ndocs/b.md identifier 2\n")
        shrink(tmp_path)
        assert read_counts(tmp_path / COUNTS) == {(PAGE, "word"): 1, ("docs/b.md", "word"): 1}
        assert len(check_glossary(tmp_path, True)) == 3

    def test_a_renamed_file_keeps_its_numbers(self, tmp_path: Path) -> None:
        write(tmp_path / "docs" / "new.md", "lasting\nlasting\nlasting\n")
        write(tmp_path / COUNTS, "docs/old.md word 2\n")
        assert len(check_glossary(tmp_path, False)) == 4
        write(tmp_path / "docs" / "new.md", "lasting\nlasting\n")
        assert check_glossary(tmp_path, False) == []
        assert check_glossary(tmp_path, True) != []
        shrink(tmp_path)
        assert read_counts(tmp_path / COUNTS) == {("docs/new.md", "word"): 2}
        assert check_glossary(tmp_path, True) == []
