"""Test expressions of a debugger's user: only a small set is evaluated."""

from typing import ClassVar

import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.debugging.expressions import parse
from tile_core.errors.debugging import BadExpression, NoSuchName


class Known:
    """VisibleNames with values."""

    values: ClassVar = {"a": np.arange(12.0).reshape(3, 4), "k": np.int32(2), "n": np.array([1.0, np.nan])}

    def __iter__(self):
        return iter(self.values)

    def value(self, name):
        return self.values.get(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k", 2), ("a[1, 2]", 6), ("a[k, -1]", 11), ("a[0, 1:3]", [1, 2]), ("a[:, 0]", [0, 4, 8]), ("-k + 3 * 2", 4),
        ("max(a) / 2", 5.5), ("any(a > 10)", True), ("all(a > 10)", False), ("any(isnan(n)) and k == 2", True),
        ("not k == 2 or k in_", None), ("0 <= k < 2", False), ("a[a > 9]", [10, 11]), ("k % 2 == 0", True),
    ],
)  # fmt: skip
def test_values(text, value):
    if value is None:
        with raises_error(BadExpression, found="it cannot be parsed"):
            parse(text)
        return
    np.testing.assert_array_equal(parse(text).value(Known()), value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "a.shape", "(lambda: 1)()", "[x for x in a]", "'text'", "open(k)", "a if k else n",
        "k ** 9",        "f'{k}'", "max(a, key=k)", "k := 3", "a @ a", "1 << k", "{1: 2}", "max(*a)",
        "a[k].__class__", "yield_(k)",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with raises_error(BadExpression):
        parse(text)


@pytest.mark.parametrize("text", ["x" * 300, "-" * 150 + "1" + "(" * 40, "a[9]", "a + n", "a[1, 2, 3]", "max(k[0])"])
def test_what_cannot_be_evaluated_is_refused(text):
    with raises_error(BadExpression):
        parse(text).value(Known())


def test_unknown_names_get_a_hint():
    with raises_error(NoSuchName, name="other", hint="the names are a, k, n"):
        parse("other + 1").value(Known())
