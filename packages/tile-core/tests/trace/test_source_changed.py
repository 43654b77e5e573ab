"""A kernel is made of the text that its function was compiled from, or refused."""

import ast
import dataclasses
import enum
import importlib
import importlib.util
import inspect
import json
import linecache
import logging
import os
import statistics
import textwrap
import types
import typing

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import NoSource, SourceChanged
from tile_core.trace.source import definition
from tile_core.trace.source_text import definition_of, is_text_of, lines_of

FACTORY = """
import tile_core as tile
import tile_core.language as T

LATER = 5
{decorator}
def make(n):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(n):
                B[i] = A[i] * 2 + 1
    return kernel


def other(n):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(n):
                B[i] = A[i] * 7
    return kernel
"""

EDITS = {
    "constant": lambda s: s.replace("* 2 + 1", "* 2 + 3"),
    "type of a constant": lambda s: s.replace("* 2 + 1", "* 2 + True"),
    "operator": lambda s: s.replace("* 2 + 1", "* 2 - 1"),
    "name": lambda s: s.replace("* 2 + 1", "* 2 + n"),
    "more statements": lambda s: s.replace("* 2 + 1", "* 2 + 1\n                B[i] = B[i] + 1"),
    "another function at the line": lambda s: s.replace("LATER = 5", "LATER = 5\n" * 9),
    "a function of the same name at the line": lambda s: "\n" + s[s.index("def other") - 8 :].rjust(len(s)),
    "truncated": lambda s: s[:60],
    "no Python": lambda s: s.replace("with T.Kernel(1)", "with with T.Kernel(1)"),
    "unfinished": lambda s: s.replace("with T.Kernel(1)", "with ((T.Kernel(1)"),
    "empty": lambda s: "",
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write a module, import it; the answer has `edit(text)`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    count = iter(range(100))

    def make(text):
        name = f"edited_{tmp_path.name.replace('-', '_')}_{next(count)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        importlib.invalidate_caches()
        module = importlib.import_module(name)

        def edit(new):
            path.write_text(new)
            os.utime(path, (1, 1))
            return module

        module.edit = edit
        return module

    return make


def answer(program):
    out = np.zeros(5, "int32")
    tile.compile(program, target="cpu")(np.arange(5, dtype="int32"), out)
    return out.tolist()


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_factory_is_refused(load, edit):
    text = FACTORY.format(decorator="")
    module = load(text)
    module.edit(EDITS[edit](text))
    with pytest.raises(NoSource if edit == "empty" else SourceChanged) as info:
        module.make(5)
    assert info.value.where.file == module.__file__


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("edit", EDITS)
def test_a_decorated_factory_keeps_its_text(load, edit):
    text = FACTORY.format(decorator="@tile.jit(target='cpu')")
    module = load(text)
    module.edit(EDITS[edit](text))
    out = np.zeros(5, "int32")
    module.make(5)(np.arange(5, dtype="int32"), out)
    assert out.tolist() == [1, 3, 5, 7, 9]


def test_lines_that_move_nothing_are_no_change(load):
    text = FACTORY.format(decorator="")
    module = load(text)
    module.edit(text + "\n# more\n")
    assert answer(module.make(5)) == [1, 3, 5, 7, 9]


EAGER = """
import tile_core as tile
import tile_core.language as T

@tile.jit(target="cpu")
def kernel(A):
    N = T.const("N")
    A: T.Tensor[(N,), "int32"]
    B = T.empty((N,), "{type}")
    with T.Kernel(1) as bx:
        x: T.{type}
        for i in T.Parallel(N):
            B[i] = A[i] * {factor}
    return B
"""


def test_an_edited_eager_kernel_keeps_its_text_and_a_reloaded_one_has_the_new(load):
    module = load(EAGER.format(type="int32", factor=2))
    module.edit(EAGER.format(type="int32", factor=3))
    assert module.kernel(np.arange(3, dtype="int32")).tolist() == [0, 2, 4]
    importlib.reload(module)
    assert module.kernel(np.arange(3, dtype="int32")).tolist() == [0, 3, 6]


def test_what_python_does_not_compile_is_kept_too(load):
    """Annotations of local names are in no code object, and the two codes are equal."""
    text = EAGER.replace("N = T.const", "# N = T.const").replace("(N,)", "(4,)").replace("Parallel(N)", "Parallel(4)")
    module = load(text.format(type="int32", factor=2))
    before = definition(module.kernel.function).node
    module.edit(text.format(type="int64", factor=2).replace('"int64"', '"int32"'))
    assert "T.int32" in ast.unparse(definition(module.kernel.function).node)
    importlib.reload(module)
    assert "T.int64" in ast.unparse(definition(module.kernel.function).node)
    assert ast.dump(before) != ast.dump(definition(module.kernel.function).node)


MODULES = (ast, dataclasses, enum, inspect, json.decoder, linecache, logging, statistics, typing)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_functions_as_they_are_written_are_no_change(module):
    """Methods, nested classes, mangled names, decorators, defaults, generators, comprehensions."""
    found = [f for f in vars(module).values() if isinstance(f, types.FunctionType)]
    for cls in [c for c in vars(module).values() if isinstance(c, type)]:
        found += [f for f in vars(cls).values() if isinstance(f, types.FunctionType)]
    seen = 0
    for fn in found:
        if fn.__code__.co_name == "<lambda>" or not os.path.exists(fn.__code__.co_filename):
            continue
        lines = lines_of(fn)
        node = definition_of(fn, lines)
        if isinstance(node, ast.FunctionDef):
            seen += 1
            assert is_text_of(node, fn, lines), fn
    assert seen > 5


def cell(text, name, **names):
    """Run text as a notebook does: it lies in linecache and in no file."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"T": T, "tile": tile, **names}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space


BODY = textwrap.dedent("""\
    @T.prim_func
    def kernel(A: T.Tensor((5,), "int32"), B: T.Tensor((5,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(5):
                B[i] = A[i] * 2 + 1
    """)


@pytest.mark.parametrize("head", ["", "from __future__ import annotations\n", "x = 1\n\n\n"])
def test_cells(head):
    space = cell(head + BODY, f"<cell {len(head)}>")
    assert answer(space["kernel"]) == [1, 3, 5, 7, 9]


def test_a_cell_in_a_class_and_one_that_calls_itself():
    text = textwrap.dedent("""\
        class Kernels:
            def make(self, n, __depth=1):
                @T.macro
                def again(B, i, left):
                    B[i] = B[i] + 1
                    if left > 0:
                        again(B, i, left - 1)

                @T.prim_func
                def kernel(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
                    with T.Kernel(1) as bx:
                        for i in T.serial(n):
                            B[i] = A[i] + __depth
                            again(B, i, 2)

                return kernel
        """)
    # Python mangles `__depth` in a class, tile does not.
    made = cell(text.replace("__depth", "depth"), "<class>")["Kernels"]().make(5)
    assert answer(made) == [4, 5, 6, 7, 8]


def test_text_that_an_importer_changed(tmp_path):
    """As pytest does it to the assertions of a test."""
    path = tmp_path / "asserted.py"
    path.write_text("def k(n):\n    assert n > 1, 'more'\n    return n + 41\n")

    class Loader(importlib.machinery.SourceFileLoader):
        def source_to_code(self, data, path, *, _optimization=-1):
            return compile(data.replace(b"assert n > 1, 'more'", b"if n < 0: print(n)"), path, "exec")

    spec = importlib.util.spec_from_file_location("asserted", path, loader=Loader("asserted", str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert definition(module.k).node.name == "k"
    path.write_text("def k(n):\n    assert n > 1, 'more'\n    return n + 43\n")
    importlib.invalidate_caches()
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    path.write_text("def k(n):\n    assert n > 1, 'more'\n    return n + 44\n")
    with pytest.raises(SourceChanged):
        definition(fresh.k)


def test_this_file_with_assertions():
    def helper(n):
        assert n > 1, f"more than {n}"
        return n

    assert definition(helper).node.name == "helper"
