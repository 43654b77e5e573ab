"""What all tests share: the rule by which they are thinned, a cache, and the compiler that emulation needs.

The one rule of thinning is ``pytest.mark.sweep(n)``. Of the cases of a parametrised test, or of a module whose
``pytestmark`` it is, one in ``n * ROUNDS`` runs; a test without cases that has the mark itself runs in one rotation of
``n * ROUNDS``. The rotation follows from the commit, so that a few commits more than that run all of them. Cases are
dealt out in the order in which they are collected: two rotations differ by at most one case. The head of the report
shows the rotation: ``SWEEP_TURN=<number>`` repeats it, ``SWEEP_TURN=all`` runs everything. A test named on the command
line with ``::`` runs in every rotation.

The cache is new in each run and one for all its processes: the emulator's engine is compiled once. Python's bytecode is
kept even where ``PYTHONDONTWRITEBYTECODE`` is set, as in many containers: otherwise each process of a run, and there
are hundreds, would compile all modules again. The grammar of the IR is checked after every pass.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent
#: The one number that all sweeps have in common: chosen so that the tests of a commit take four minutes on two cores.
ROUNDS = 72
#: Folders and files whose tests run texts in the emulator, but for files that only look at texts.
_EMULATED = tuple(
    _ROOT / "packages" / folder
    for folder in (
        "tile-core/tests/plugins/test_toyc.py", "tile-cuda/tests/emulation", "tile-cuda/tests/zoo",
        "tile-emulator/tests", "tile-metal/tests/emulation", "tile-metal/tests/ops", "tile-metal/tests/zoo",
        "tile-rocm-stub/tests/emulation", "tile-rocm-stub/tests/zoo",
    )
)  # fmt: skip
#: Tests of which only the cases of a rotation are collected, by name, and whether there are any.
_DEALT = pytest.StashKey[dict[str, bool]]()
_TEXTS = ("test_asm.py", "test_compiled.py", "test_golden.py", "test_rewrite.py", "test_text.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the tests of kept texts."""
    parser.addoption("--update-golden", action="store_true", help="write the kept texts of kernels anew")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the rotation and the cache once, for all processes of a run."""
    os.environ.setdefault("SWEEP_TURN", str(_rotation_of_commit()))
    os.environ.setdefault("TILE_VERIFY_IR", "1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if not hasattr(config, "workerinput") and "TILE_CACHE_DIR" not in os.environ:
        folder = os.environ["TILE_CACHE_DIR"] = tempfile.mkdtemp(prefix="tile-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_report_header() -> str:
    """Say which part of the sweeps runs."""
    return f"sweeps: SWEEP_TURN={os.environ['SWEEP_TURN']}"


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make items for the cases of the rotation only: one in six, which halves the time of the collection."""
    yield
    test, rotation = metafunc.definition, os.environ["SWEEP_TURN"]
    share = _share(test, bool(metafunc._calls))
    if rotation == "all" or share == 1 or not metafunc._calls or _is_named(test, metafunc.config):
        return
    chosen = [call for n, call in enumerate(metafunc._calls) if _is_dealt(test.nodeid, n, share, int(rotation))]
    # Without cases pytest would make an item without arguments: one case is left out below.
    metafunc.config.stash.setdefault(_DEALT, {})[test.nodeid] = bool(chosen)
    metafunc._calls = chosen or metafunc._calls[:1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other rotations, and what needs a C++ compiler where there is none."""
    _skip_emulated(items)
    rotation = os.environ["SWEEP_TURN"]
    if rotation == "all":
        return
    selected = set(map(id, _of_rotation(items, int(rotation), config.stash.get(_DEALT, {}))))
    chosen = [item for item in items if id(item) in selected or _is_named(item, config)]
    kept = set(map(id, chosen))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = chosen


def pytest_collection_finish() -> None:
    """Exempt what exists now from garbage collections: modules and thousands of tests, which live to the end."""
    gc.collect()
    gc.freeze()


def _of_rotation(items: list[pytest.Item], rotation: int, chosen: dict[str, bool]) -> Iterator[pytest.Item]:
    """Yield the tests of a rotation; of a test whose cases are chosen already, all or none."""
    dealt: Counter[str] = Counter()
    for item in items:
        test = item.nodeid.split("[", 1)[0]
        if test in chosen:
            kept = chosen[test]
        else:
            kept = _is_dealt(test, dealt[test], _share(item, "[" in item.name), rotation)
            dealt[test] += 1
        if kept:
            yield item


def _is_dealt(test: str, case: int, share: int, rotation: int) -> bool:
    """Return whether a rotation runs a case; the first one of a test is not in the same as that of every other test."""
    return (zlib.crc32(test.encode()) + case) % share == rotation % share


def _is_named(test: pytest.Item, config: pytest.Config) -> bool:
    """Return whether the command line names a test, or cases of it."""
    within = test.nodeid.split("::", 1)[-1]
    named = [argument.split("::", 1) for argument in config.args if "::" in argument]
    alike = [path for path, name in named if within.startswith(name) or name.startswith(f"{within}[")]
    return any(test.path == Path(path).resolve() for path in alike)


def _share(test: pytest.Item, has_cases: bool) -> int:
    """Return of how many cases one runs: what the test itself says, else its class or module."""
    for node, mark in test.iter_markers_with_node("sweep"):
        if node is test or has_cases:
            return int(mark.args[0] * ROUNDS)
    return 1


def _skip_emulated(items: list[pytest.Item]) -> None:
    """Skip tests that run texts where no C++ compiler makes a program of them."""
    texts = {path: _runs_texts(path) for path in {item.path for item in items}}
    found = [item for item in items if texts[item.path]]
    if not found:
        return
    from tile_emulator.compilers import find_compiler
    from tile_emulator.errors import HostUnsupported, NoCompiler

    try:
        find_compiler()
    except (HostUnsupported, NoCompiler) as error:
        for item in found:
            item.add_marker(pytest.mark.skip(reason=error.message))


def _runs_texts(path: Path) -> bool:
    return path.name not in _TEXTS and any(path.is_relative_to(folder) for folder in _EMULATED)


def _rotation_of_commit() -> int:
    """Return a number that differs between commits; 0 without git."""
    command = ["git", "-C", str(_ROOT), "rev-parse", "--short=8", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(found.stdout, 16)
