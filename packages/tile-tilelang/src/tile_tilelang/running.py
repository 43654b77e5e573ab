"""Run a script with ``import tilelang`` unchanged, in this process and during the run.

Nothing of that name is installed. While a script runs, the names ``tilelang`` and ``tilelang.*`` mean this package;
its other modules are refused by name.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import re
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from unittest import mock

from tile_core.errors import TileError
from tile_core.runtime.kernel import Kernel
from tile_runtime.errors.guess import nearest
from tile_tilelang import kernel
from tile_tilelang.errors import NoScript, NotAnswered, NotOnHost
from tile_tilelang.host import every_target
from tile_tilelang.host_tensors import in_host_memory
from tile_tilelang.modules import MODULES, NAME, Answered
from tile_tilelang.tvm_names import TranslatedModule
from tile_tilelang.unlaunched import NAME as UNLAUNCHED
from tile_tilelang.words import host_remedy, known_remedy


def run(
    script: str, arguments: Sequence[str] = (), target: str | None = None, runtime: str | None = None
) -> dict[str, object]:
    """Run a script as ``__main__`` and return its names.

    Parameters
    ----------
    script
        Its path.
    arguments
        ``sys.argv[1:]`` of the script.
    target
        The target of every kernel, overriding the script's; by default the script's.
    runtime
        The runtime of every kernel, ``"emulator"``; by default that of its target.

    Raises
    ------
    NoScript
        There is no such file.
    """
    path = Path(script)
    if not path.is_file():
        raise NoScript(path=script, reason="there is no such file")
    tensors = in_host_memory(computed=runtime != UNLAUNCHED) if _uses_torch(path) else contextlib.nullcontext()
    with answering(), every_target(target, runtime), _as_program(path, arguments), tensors:
        try:
            return runpy.run_path(str(path), run_name="__main__")
        except AttributeError as error:
            raise typed(error) from error


def typed(error: AttributeError) -> AttributeError:
    """Return the catalogue's error for an attribute that tile's or TVM's object does not have."""
    holder, last = getattr(error, "obj", None), error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    kind = holder if isinstance(holder, type) else type(holder)
    package = kind.__module__.partition(".")[0]
    own = last is not None and last.tb_frame.f_globals.get("__name__", "").startswith(("tile_", "tvm"))
    if isinstance(error, TileError) or own or not package.startswith(("tile_", "tvm")):
        return error
    known = [n for n in dir(holder) if n[0] != "_" and not hasattr(int, n)] if package != "tvm" else []
    instead = "tile has the TVM of apache-tvm; write it in the language"
    if known:
        near = nearest(str(error.name), known)
        instead = f"did you mean {near[0]}?" if near else f"it has: {', '.join(known)}"
    return NotOnHost(name=f"{kind.__name__}.{error.name}", instead=instead)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Answer ``import tilelang`` in this process until the end of the block."""
    import tvm.tirx  # scripts find it by its full name, too

    before = {n: m for n, m in sys.modules.items() if _ours(n) or n == "tvm"}
    for name in before:
        del sys.modules[name]
    own = {"": "tile_tilelang", "language": "tile_tilelang.language"}
    sys.modules.update({_full(name): importlib.import_module(module) for name, module in own.items()})
    sys.modules.update({_full(name): Answered(name) for name in MODULES})
    sys.modules["tvm"] = TranslatedModule(tvm)
    finder = _Refuser()
    sys.meta_path.insert(0, finder)
    try:
        with mock.patch.dict(vars(sys.modules[NAME]), _modules()):
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if _ours(n)]:
            del sys.modules[name]
        sys.modules.update(before)


def _modules() -> dict[str, ModuleType]:
    """Return the modules that are attributes of ``tilelang``, whose missing names are refused."""
    top = [name for name in MODULES if "." not in name]
    return {n: sys.modules[_full(n)] for n in top if isinstance(getattr(sys.modules[NAME], n), ModuleType)}


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


class _Refuser(importlib.abc.Loader):
    """Finds modules of TileLang that are known to have no counterpart, and refuses all others."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a module whose names are refused when used; refuse unknown ones."""
        if not _ours(name):
            return None
        if known_remedy(name.partition(".")[2]):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        known = [_full(n) for n in MODULES]
        raise NotAnswered(module=f"import {name}", instead=host_remedy(name.partition(".")[2], known))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module of a name that `find_spec` found."""
        return Answered(spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


@contextlib.contextmanager
def _as_program(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    argv, first = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(path), *arguments], str(path.resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[0] = argv, first


def _uses_torch(path: Path) -> bool:
    """Return whether a script, or a file beside it that it names, mentions torch."""
    text = path.read_text(errors="replace")
    beside = (p for p in path.parent.glob("*.py") if re.search(rf"\b{re.escape(p.stem)}\b", text))
    return "torch" in text or any("torch" in p.read_text(errors="replace") for p in beside)


def _ours(name: str) -> bool:
    return name == NAME or name.startswith(f"{NAME}.")


def _full(name: str) -> str:
    return f"{NAME}.{name}" if name else NAME
