"""Examples of errors: the wrong ones raise their code, the right ones compile, and few errors have none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from error_examples import outcome

from tile_core.cli.app import run
from tile_core.errors import catalogue
from tile_core.errors.catalogue import ErrorEntry, entry_of
from tile_core.errors.cli import UnknownCode

EXAMPLES = catalogue.examples()
SHOWN = [code for code, example in EXAMPLES.items() if example.frame != "none"]
#: Errors without an example, each with a reason in examples.txt. This number may only shrink.
WITHOUT = 102


def test_every_error_has_an_example_or_a_reason_against_one() -> None:
    assert set(EXAMPLES) == set(catalogue.entries())
    without = {code: e.rest for code, e in EXAMPLES.items() if e.frame == "none"}
    assert all(without.values())
    assert len(without) == WITHOUT


def test_examples_are_short_and_have_a_reason() -> None:
    for code in SHOWN:
        example = EXAMPLES[code]
        assert example.frame in catalogue.FRAMES
        assert example.reason.endswith("."), code
        assert example.wrong != example.right
        for text in (example.wrong, example.right):
            assert len(text.splitlines()) <= 15, code


@pytest.mark.sweep(0.2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", SHOWN)
def test_an_example_does_what_it_shows(code: str, tmp_path: Path) -> None:
    example = EXAMPLES[code]
    for text, expected in ((example.wrong, code), (example.right, "")):
        folder = tmp_path / (expected or "right")
        folder.mkdir()
        assert outcome(example.frame, example.rest, text, folder) == expected


def test_an_entry_has_no_bare_placeholders() -> None:
    for code in catalogue.entries():
        entry = entry_of(code)
        assert entry.remedy or entry.reason or EXAMPLES[code].frame == "none", code
        assert "{fix}" not in entry.remedy + entry.message


def test_the_page_has_an_anchor_for_each_code() -> None:
    import error_catalogue

    anchors = re.findall(r"^### (\w+) \w+ \{ #(\w+) \}$", error_catalogue.page(), re.MULTILINE)
    assert {code for code, _ in anchors} == set(catalogue.entries())
    assert all(anchor == code.lower() for code, anchor in anchors)
    assert entry_of("K106").page == "docs/errors.md#k106"


def test_templates_are_shown_without_braces() -> None:
    assert catalogue.shown("{found!r} of {x:,} in {{y}}") == "<found> of <x> in {y}"


def test_why(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "k106"]) == 0
    shown = capfd.readouterr().out
    for text in ("K106 IndexOutOfRange", "wrong", "B[0, 32] = A[0, 0]", "right", "docs/errors.md#k106"):
        assert text in shown
    assert run(["why", "I000"]) == 0
    assert "no example: " in capfd.readouterr().out


def test_why_of_a_backend(capfd: pytest.CaptureFixture[str]) -> None:
    for code, name in (("U801", "UnknownFamily"), ("S702", "NoDriver")):
        assert run(["why", code]) == 0
        assert name in capfd.readouterr().out


def test_why_of_an_unknown_code_lists_the_nearest() -> None:
    with pytest.raises(UnknownCode) as caught:
        entry_of("K196")
    assert "K106" in caught.value.help
    with pytest.raises(UnknownCode, match=r"there is no error code NONSENSE"):
        entry_of("nonsense")


def test_tracebacks_and_the_command_line_name_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownCode) as caught:
        entry_of("K999")
    assert caught.value.__notes__ == ["   = more: tile why S322"]
    assert "tile why S322" in caught.value._repr_html_()
    assert run(["why", "K999"]) == 1
    assert "= more: tile why S322" in capfd.readouterr().err


def test_entries_are_json() -> None:
    entry = entry_of("K106")
    assert isinstance(entry, ErrorEntry)
    assert entry.to_json()["wrong"] == EXAMPLES["K106"].wrong


def test_former_codes_lead_to_the_present_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "K673"]) == 0
    shown = capfd.readouterr().out
    assert "K664 NoGradient" in shown
    assert "docs/errors.md#k664" in shown
    for error in catalogue.entries().values():
        assert all(entry_of(code).code == error.code for code in error.formerly)
