"""Text in lines and columns: what is too wide is folded, and nothing is lost."""

from __future__ import annotations

import random

from tile_core.reports.tables import folded, table


def test_lines_break_at_spaces_and_long_words_anywhere() -> None:
    assert folded("one two three", 7) == ["one two", "three"]
    assert folded("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]
    assert folded("", 5) == [""]
    assert folded("a\nb", 5) == ["a", "b"]


def test_a_table_aligns_its_columns() -> None:
    lines = list(table(("name", "bytes"), [("a", "1"), ("long name", "1,024")], 40, ("bytes",)))
    assert lines == ["name        bytes", "─────────────────", "a               1", "long name   1,024"]


def test_wide_tables_keep_their_width_and_words() -> None:
    draw = random.Random(7)
    for _ in range(50):
        rows = [["".join(draw.choices("ab ", k=draw.randrange(60))).strip() for _ in range(3)] for _ in range(4)]
        lines = list(table(("x", "y", "z"), rows, 40, ()))
        assert max(map(len, lines)) <= 40
        letters = sorted("".join(c for row in rows for cell in row for c in cell if c != " "))
        assert sorted("".join(c for line in lines[2:] for c in line if c != " ")) == letters
