"""Each error of these areas has a code of its own and a test that names it."""

import inspect
from pathlib import Path

import pytest

from tile_core.errors import TileError, lowering, plugins

TESTS = Path(__file__).parents[1]
CLASSES = [
    cls
    for module in (plugins, lowering)
    for cls in vars(module).values()
    if inspect.isclass(cls) and issubclass(cls, TileError) and cls.__module__ == module.__name__
]


def test_codes_are_unique():
    codes = [cls.code for cls in CLASSES]
    assert sorted(set(codes)) == sorted(codes)
    assert len(CLASSES) >= 20


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.code)
def test_each_has_a_description_a_remedy_and_a_test(cls):
    assert cls.__doc__
    assert cls.template
    assert cls.remedy
    text = "".join(path.read_text(encoding="utf-8") for area in ("plugins", "lowering", "cpu", "emit", "simt")
                   for path in (TESTS / area).glob("test_*.py"))  # fmt: skip
    assert f"raises({cls.__name__}" in text or f", {cls.__name__})" in text
