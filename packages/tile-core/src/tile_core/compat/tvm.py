"""The one door to TVM: ``from tile_core.compat.tvm import ir, tirx, tvm``.

Importing TVM has effects on the process that a library must not have: it replaces ``sys.excepthook``, patches
``inspect.getfile``, loads vendor runtimes, and its FFI imports torch when torch is installed (one more second). This
module imports TVM without them, and without the half that tile does not use. It is imported at the first trace or
compile, never by ``import tile_core``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tile_core.compat import crossing as _crossing
from tile_runtime.compat import exits as _exits

#: Optional imports of TVM and its FFI, which work without them. They take tensors of torch, and streams with a type,
#: in either case. ``disco`` is not in the wheel; finding that out takes TVM a tenth of a second.
_OPTIONAL = ("torch", "cuda.bindings", "tvm.runtime.disco")


@contextlib.contextmanager
def _without(names: tuple[str, ...]) -> Iterator[None]:
    """Make ``import`` of modules fail unless they were imported before."""
    hidden = [name for name in names if name not in sys.modules]
    # With None there, `import` raises an ImportError.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextlib.contextmanager
def _defer_relax() -> Iterator[None]:
    """Import TVM without ``tvm.relax``: half of its modules, unused by tile.

    ``tvm.relax`` is imported at its first use, as if TVM had done so.
    """
    name = "tvm.relax"
    if "tvm" in sys.modules:
        yield
        return
    sys.modules[name] = ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]
    names = vars(sys.modules["tvm"])
    del names["relax"]

    def ask(attribute: str) -> Any:
        if attribute == "relax":
            return importlib.import_module(name)
        raise AttributeError(f"module 'tvm' has no attribute {attribute!r}")

    names["__getattr__"] = ask
    names["script"].register_dialect("relax", f"{name}.script")


@contextlib.contextmanager
def _without_side_effects() -> Iterator[None]:
    hook, getfile = sys.excepthook, inspect.getfile
    autoload = os.environ.get("TVM_DEVICE_BACKEND_AUTOLOAD")
    os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # A fifth of the time goes to looking for garbage among thousands of new classes and functions that all stay.
    collects = gc.isenabled()
    gc.disable()
    try:
        with _without(_OPTIONAL), _defer_relax():
            yield
    finally:
        if collects:
            gc.enable()
            _age()
        if autoload is None:
            del os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"]
        else:
            os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = autoload
        sys.excepthook = hook
        inspect.getfile = getfile


def _age() -> None:
    """Make all objects old, without a collection.

    The next collection of young objects would look at everything that the import made, which takes as long as the
    passes over a kernel. What somebody has frozen stays frozen: then objects grow old by collections.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _set_threads() -> None:
    """Give TVM's thread pool all cores of this process, without pinning its threads.

    TVM reads these variables when its pool starts. By its own count it would leave out logical processors, and it would
    pin the calling thread to the first core for the rest of the process.
    """
    if "OMP_NUM_THREADS" not in os.environ and "TVM_NUM_THREADS" not in os.environ:
        available = getattr(os, "sched_getaffinity", None)
        count = len(available(0)) if available else os.cpu_count() or 1
        os.environ["TVM_NUM_THREADS"] = os.environ.get("TILE_NUM_THREADS") or str(count)
    os.environ.setdefault("TVM_BIND_THREADS", "0")


_set_threads()
with _without_side_effects():
    import tvm as _tvm
    import tvm_ffi as _tvm_ffi
    from tvm import ir as _ir
    from tvm import tirx as _tirx

# An error that passes through the FFI is made anew from the name of its class; by default these become RuntimeErrors.
for _interrupt in (KeyboardInterrupt, SystemExit, GeneratorExit):
    _tvm_ffi.register_error(_interrupt.__name__, _interrupt)
_crossing.install(_tvm_ffi)
_exits.leave_at_exit()

tvm: Any = _tvm
tvm_ffi: Any = _tvm_ffi
ir: Any = _ir
tirx: Any = _tirx


def reason_of(error: BaseException) -> str:
    """Return the line of an error with its type and cause; TVM's texts are long.

    They hold C++ stack traces, whole programs, and somewhere the condition that failed.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("File ", "at ", "Traceback", "0: ", "1: "))]
    telling = [line for line in lines if "Check failed" in line or "LLVM ERROR" in line]
    telling += [line for line in lines if line[0].isalpha()]
    return f"{type(error).__name__}: {(telling or lines or ['no message'])[0]}"
