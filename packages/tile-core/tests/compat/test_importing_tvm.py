"""What importing TVM through ``compat.tvm`` leaves in the process: only what tile uses, and nothing broken."""

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


def test_tvm_that_the_user_imported_stays_whole():
    code = """
import tvm
relax = tvm.relax
import tile_core.compat.tvm
print(tvm.relax is relax, "__getattr__" in vars(tvm))
"""
    assert printed(code) == ["True False"]
