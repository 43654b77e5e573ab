"""Run a script with ``import tilelang`` unchanged, in this process and during the run.

Nothing of that name is installed. While a script runs, the names ``tilelang`` and ``tilelang.*`` mean this package;
its other modules are refused by name.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from tile_core.errors import TileError
from tile_core.runtime.kernel import Kernel
from tile_tilelang import kernel
from tile_tilelang.errors import NoScript, NotAnswered
from tile_tilelang.host import every_target
from tile_tilelang.words import host_remedy

NAME = "tilelang"

#: Module of TileLang -> module of this package.
MODULES = {
    "": "",
    "language": "language",
    "autotuner": "autotuner",
    "jit": "compiling",
    "jit.kernel": "kernel",
    "layout": "layout",
    "profiler": "profiler",
    "profiler.bench": "profiler",
    "testing": "testing",
    "transform": "host",
    "transform.pass_config": "host",
    "utils": "utils",
    "utils.tensor": "supply",
    "utils.target": "host",
}


def run(script: str, arguments: Sequence[str] = (), target: str | None = None) -> dict[str, object]:
    """Run a script as ``__main__`` and return its names.

    Parameters
    ----------
    script
        Its path.
    arguments
        ``sys.argv[1:]`` of the script.
    target
        The target of every kernel, overriding the script's; by default the script's.

    Raises
    ------
    NoScript
        There is no such file.
    """
    path = Path(script)
    if not path.is_file():
        raise NoScript(path=script, reason="there is no such file")
    with answering(), every_target(target), _as_program(path, arguments):
        return runpy.run_path(str(path), run_name="__main__")


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Answer ``import tilelang`` in this process until the end of the block."""
    before = {n: m for n, m in sys.modules.items() if _ours(n)}
    for name in before:
        del sys.modules[name]
    sys.modules.update({_full(name): _module(own) for name, own in MODULES.items()})
    finder = _Refuser()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if _ours(n)]:
            del sys.modules[name]
        sys.modules.update(before)


@contextlib.contextmanager
def compiled() -> Iterator[list[Kernel]]:
    """Collect the kernels that are compiled in the block, in order."""
    kernel.made.append([])
    try:
        yield kernel.made[-1]
    finally:
        kernel.made.pop()


def also_for(kernels: Sequence[Kernel], target: str) -> list[str]:
    """Compile programs for another target as well, to text; return the refusals.

    Parameters
    ----------
    kernels
        Kernels with their programs.
    target
        The other target, ``"cuda:sm_90a"``.
    """
    from tile_core.compiler import compile as compile_program

    refusals = []
    for one in kernels:
        assert one.program is not None, "what was just compiled has its program"
        try:
            text = compile_program(one.program, target, one.signature.results or None).source
            print(f"{one.name}: {len(text.splitlines())} lines for {target}", file=sys.stderr)
        except TileError as error:
            refusals.append(f"{one.name}: {error}")
    return refusals


class _Refuser:
    """Refuses modules of TileLang that have no counterpart, before others look for them."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Raise for names of TileLang; those that are answered are modules already."""
        if not _ours(name):
            return None
        known = [_full(n) for n in MODULES]
        raise NotAnswered(module=f"import {name}", instead=host_remedy(name.partition(".")[2], known))


@contextlib.contextmanager
def _as_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, first = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(path), *arguments], str(path.resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[0] = argv, first


def _ours(name: str) -> bool:
    return name == NAME or name.startswith(f"{NAME}.")


def _full(name: str) -> str:
    return f"{NAME}.{name}" if name else NAME


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"tile_tilelang.{name}" if name else "tile_tilelang")
