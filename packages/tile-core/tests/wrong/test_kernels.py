"""Kernels with one wrong line: every one is refused by the catalogue, at that line."""

import pytest

import tile_core as tile

from .kernels import BASES, CHANGES


def changed(base, old, new):
    """The text of a kernel with one line replaced, and what the error should show of its line."""
    text = BASES[base]
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    lines = new.split("\n")
    marked = [line for line in lines if line.endswith("# !")]
    return text.replace(old, new), (marked or lines)[0].strip()


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("base", BASES)
def test_the_kernels_are_correct(base, refusals):
    error, _ = refusals.run(BASES[base], lambda names: tile.compile(names["k"], target="cpu"))
    assert error is None, str(error)


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=lambda n: f"{n}-{CHANGES[n][0]}-{CHANGES[n][3]}")
def test_refused_at_the_line(number, refusals):
    base, old, new, code, *given = CHANGES[number]
    text, line = changed(base, old, new)
    # What only shows in the whole program (races, barriers) is found by the passes.
    refusals.wrong(text, given[0] if given else line, code, lambda names: tile.compile(names["k"], target="cpu"))


def test_there_are_enough():
    assert len({(base, new) for base, _, new, *_ in CHANGES}) >= 200
