"""Helpers: execute a traced program, and look at refusals."""

import inspect

import pytest

from tile_core import reference
from tile_core.compat.tvm import ir
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.ir.visit import collect


@pytest.fixture
def execute():
    """Execute a program by the reference; reads of unwritten elements are errors."""

    def run(program, *arrays):
        reference.execute(program, arrays)

    return run


@pytest.fixture
def tile_calls():
    """Return the tile calls of a program in their order."""
    return lambda program: [c for c in collect(program.func.body, ir.Call) if nodes.is_tile_call(c)]


@pytest.fixture
def refused():
    """Check that a function raises an error at its line marked ``# here``."""

    def check(error, code, text, build):
        with pytest.raises(TileError) as info:
            build()
        assert type(info.value) is error, str(info.value)
        assert info.value.code == code
        assert text in str(info.value), str(info.value)
        assert info.value.help
        lines, first = inspect.getsourcelines(build)
        marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# here")]
        if marked:
            assert info.value.where is not None, "no place"
            assert info.value.where.file == inspect.getsourcefile(build)
            assert info.value.where.line == marked[0]
        return info.value

    return check
