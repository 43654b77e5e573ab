"""Texts with barriers of a program's own become machine code."""

from __future__ import annotations

import pytest

from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.build import build

from .programs import Shape
from .programs import product as stored
from .test_copies import in_flight, whole
from .test_copies import product as copied
from .test_parts import of_roles, of_threads

pytest.importorskip("cuda.bindings.nvrtc")
pytestmark = pytest.mark.sweep(4)

PROGRAMS = {
    "stored": (lambda: stored(Shape(2, 5, True)), {"wgmma": "always"}), "copied": (lambda: copied(3, 5, True), {}),
    "announced": (lambda: copied(2, 5, True, True), {}), "in flight": (lambda: in_flight(False), {}),
    "whole": (whole, {}), "roles": (lambda: of_roles, {}), "threads": (lambda: of_threads, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
def test_compiles(name, arch):
    program, options = PROGRAMS[name]
    if arch != "sm_90a":
        options = {}
        program = (lambda: copied(2, 5, True)) if name == "in flight" else program
    cubin = build(lower(program(), make_context(f"cuda:{arch}", options), installed()).lowered, arch)
    assert cubin.data[:4] == b"\x7fELF"
    assert cubin.spill_bytes == 0, cubin
