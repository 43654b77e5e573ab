"""Load kernels that were linked to shared libraries, and call them through ctypes.

A library has one function that takes addresses, scalars and values of symbols, and returns 0. Of tile it imports one
function, the parallel launch (`tile_runtime.cpu.parallel`), through a variable that is set when it is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tile_runtime.abi.adapter import HOST_DEVICE, Built, Convention, Location, RuntimeAdapter
from tile_runtime.abi.kernel_text import KernelText, ParamFact
from tile_runtime.cpu.interrupts import interruptible
from tile_runtime.cpu.parallel import launcher
from tile_runtime.cpu.processor import lacking
from tile_runtime.cpu.scalars import coded, with_codes
from tile_runtime.dtypes import DTYPES
from tile_runtime.errors.base import InternalError
from tile_runtime.errors.setup import OutOfMemory
from tile_runtime.types import Argument

KIND = "shared library"
#: Facts of a library: LLVM's names of the instruction sets that it uses, and whether a launch may never end.
NEEDS, ENDLESS = "needs", "endless"
_PARALLEL = "__TVMBackendParallelLaunch"
_FLOATS = {"float16": ctypes.c_float, "float32": ctypes.c_float, "float64": ctypes.c_double}


class LibraryAdapter(RuntimeAdapter):
    """Calls kernels in shared libraries on host memory.

    Parameters
    ----------
    target
        The target's text.
    """

    name = "library"
    devices = frozenset({HOST_DEVICE})
    convention: Convention = "pointers"

    #: Where libraries run: the system and the family of processors, by Python's name.
    platform = sysconfig.get_platform()

    def __init__(self, target: str) -> None:
        self.target = target

    def refuses(self, built: Built) -> str:
        """Return why this machine cannot run a library; empty if it can."""
        if built.arch != self.platform:
            return f"it was linked for {built.arch}, and this is {self.platform}"
        missing = lacking(str(built.facts.get(NEEDS, "")).split())
        return f"its processor may lack {', '.join(missing)}" if missing else ""

    def load(self, artefact: Any) -> Callable[..., object]:
        """Return the launch of a text with its library."""
        built = artefact.built if isinstance(artefact, KernelText) else None
        if built is None or built.kind != KIND:
            raise InternalError(stage="loading", detail="a kernel for the CPU without a shared library")
        with _file_of(built.data) as path:
            library = ctypes.CDLL(path)
        with contextlib.suppress(ValueError):  # it has no parallel loop
            ctypes.c_void_p.in_dll(library, _PARALLEL).value = ctypes.cast(launcher(), ctypes.c_void_p).value  # type: ignore[arg-type]
        launch = _launch_of(getattr(library, artefact.facts.entry), artefact.facts.kernel, artefact.facts.params)
        return interruptible(launch) if built.facts.get(ENDLESS) else launch

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its blocks are done."""


def make(target: str) -> LibraryAdapter:
    """Return the loader of a CPU target."""
    return LibraryAdapter(target)


def c_type(param: ParamFact) -> Any:
    """Return the type of a parameter in C."""
    if param.kind == "pointer":
        return ctypes.c_void_p
    storage = DTYPES[param.dtype].storage
    return _FLOATS.get(storage) or getattr(ctypes, f"c_{storage}")


def _launch_of(function: Any, kernel: str, params: Sequence[ParamFact]) -> Callable[..., object]:
    function.argtypes, function.restype = [c_type(p) for p in params], ctypes.c_int
    codes = coded([p.dtype if p.kind == "scalar" else None for p in params])
    entry = with_codes(function, codes) if codes else function

    def launch(values: Sequence[Argument], location: Location) -> None:
        if entry(*values):
            raise OutOfMemory(kernel=kernel)

    return launch


@contextlib.contextmanager
def _file_of(content: bytes) -> Iterator[str]:
    """Yield the path of a file with this content while a library is loaded.

    Its name is new: of two files of one name, the system would load the first.
    """
    with tempfile.TemporaryDirectory(prefix="tile-") as folder:
        path = os.path.join(folder, f"{os.path.basename(folder)}.so")
        with open(path, "wb") as file:
            file.write(content)
        yield path
