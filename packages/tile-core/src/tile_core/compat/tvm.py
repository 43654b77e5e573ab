"""The one door to TVM: ``from tile_core.compat.tvm import ir, tirx, tvm``.

Importing TVM has effects on the process that a library must not have: it replaces ``sys.excepthook``, patches
``inspect.getfile``, loads vendor runtimes, and its FFI imports torch when torch is installed (one more second). This
module imports TVM without them. It is imported at the first trace or compile, never by ``import tile_core``.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def _without_side_effects() -> Iterator[None]:
    hook, getfile = sys.excepthook, inspect.getfile
    autoload = os.environ.get("TVM_DEVICE_BACKEND_AUTOLOAD")
    hide_torch = "torch" not in sys.modules
    os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if hide_torch:
        # None makes `import torch` raise ImportError; tvm_ffi treats torch as optional and still takes torch tensors.
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hide_torch:
            del sys.modules["torch"]
        if autoload is None:
            del os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"]
        else:
            os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = autoload
        sys.excepthook = hook
        inspect.getfile = getfile


with _without_side_effects():
    import tvm as _tvm
    import tvm_ffi as _tvm_ffi
    from tvm import ir as _ir
    from tvm import s_tir as _s_tir
    from tvm import tirx as _tirx

tvm: Any = _tvm
tvm_ffi: Any = _tvm_ffi
ir: Any = _ir
tirx: Any = _tirx
s_tir: Any = _s_tir
