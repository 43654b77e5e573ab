"""The errors of this package: complete, unique codes, on the page for Mac users."""

import inspect
import re
from pathlib import Path

import pytest

from tile_core.errors import KernelError, SetupError, UnsupportedError
from tile_core.errors.launch import DeviceFault, GridTooLarge, TextRefused, TooMuchShared
from tile_metal import errors
from tile_runtime.errors.operators import NoGradient

PAGE = Path(__file__).parents[4] / "docs" / "metal-first-kernel.md"
FAMILIES = {"K": KernelError, "S": SetupError, "U": UnsupportedError}
CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]


@pytest.mark.parametrize("error", CLASSES, ids=lambda c: c.code)
def test_a_class_is_complete(error):
    assert re.fullmatch(r"[KSU]8\d\d", error.code)
    assert issubclass(error, FAMILIES[error.code[0]])
    assert error.__doc__
    assert error.remedy
    assert [c.__name__ for c in CLASSES if c.code == error.code] == [error.__name__]


def test_the_page_has_them_all():
    if not PAGE.is_file():
        pytest.skip("the pages are not here")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shared = (DeviceFault, GridTooLarge, NoGradient, TextRefused, TooMuchShared)
    found = dict(rows)
    assert {c.code: c.__name__ for c in (*CLASSES, *shared) if c.code in found} == found
    assert {c.code for c in shared} < found.keys()


def test_how_they_read():
    fault = DeviceFault(kernel="f", reporter="MLX", reason="it stopped")
    assert "= help: run the kernel with runtime" in str(fault)
