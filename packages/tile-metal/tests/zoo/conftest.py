import contextlib
import os
from pathlib import Path

import pytest

from tile_emulator.compilers import find_compiler
from tile_emulator.errors import HostUnsupported, NoCompiler

FOLDER = Path(__file__).parent
TEXTS = ("test_golden.py", "test_text.py")


def pytest_addoption(parser):
    with contextlib.suppress(ValueError):  # the zoo of another backend has added it
        parser.addoption("--update-golden", action="store_true", help="write the kept texts of kernels anew")


def pytest_collection_modifyitems(items):
    """Tests that run kernels need a C++ compiler."""
    try:
        find_compiler()
        return
    except (HostUnsupported, NoCompiler) as error:
        skip = pytest.mark.skip(reason=error.message)
    for item in items:
        if FOLDER in item.path.parents and item.path.name not in TEXTS:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory):
    """One fresh cache for all tests, and all workers: the engine is compiled once."""
    folder = tmp_path_factory.getbasetemp()
    patch = pytest.MonkeyPatch()
    patch.setenv("TILE_CACHE_DIR", str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "kernels"))
    yield
    patch.undo()
