"""The effect of importing TVM through ``compat.tvm``: only modules of tile's, and none broken."""

from __future__ import annotations

import subprocess
import sys

import pytest


def printed(code: str) -> list[str]:
    """Return the lines that a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_half_of_tvm_is_not_imported():
    """And what was hidden meanwhile is not in the way of a later import."""
    code = """
import sys
import tile_core.compat.tvm
print(*sorted(m for m in sys.modules if m in ("torch", "cuda", "tvm.relax", "tvm.s_tir", "tvm.topi")))
print(None in sys.modules.values())
try:
    sys.modules["tvm"].missing
except AttributeError as error:
    print(error)
"""
    assert printed(code) == ["", "False", "module 'tvm' has no attribute 'missing'"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "use",
    [
        "import tvm; print(tvm.relax.op.add.__name__)",
        "from tvm.relax.op import add; print(add.__name__)",
        "from tvm.script.parser import relax; import tvm; print(tvm.relax.op.add.__name__)",
    ],
)
def test_relax_is_there_for_who_asks(use):
    assert printed(f"import tile_core.compat.tvm\n{use}") == ["add"]


@pytest.mark.sweep(1)
def test_relax_is_there_after_kernels_were_hashed_and_compiled(tmp_path):
    """TVM's registry admits no class once it has objects, as the type of functions does."""
    (tmp_path / "program.py").write_text(
        "import tile_core.language as T\n"
        "@T.prim_func\n"
        'def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), n: T.int32):\n'
        "    with T.Kernel(1, threads=32):\n"
        "        s = T.alloc_shared((64,), 'float32')\n"
        "        for _ in T.Pipelined(n, num_stages=2):\n"
        "            T.copy(A, s)\n"
        "            T.copy(s, B)\n"
    )
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import tile_core as tile, program
from tile_core.runtime import cache_key
cache_key.content_hash(cache_key.program_parts(program.k))
for target in ("cpu", "cuda:sm_90a", "metal"):
    tile.compile(program.k, target=target).explain()
import tvm
print(tvm.relax.op.add.__name__)
"""
    assert printed(code) == ["add"]


@pytest.mark.sweep(1)
def test_tvm_that_the_user_imported_stays_whole():
    code = """
import tvm
relax = tvm.relax
import tile_core.compat.tvm
print(tvm.relax is relax, "__getattr__" in vars(tvm))
"""
    assert printed(code) == ["True False"]
