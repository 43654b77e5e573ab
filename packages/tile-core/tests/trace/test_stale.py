"""Test stale kernels: values that reach a kernel, mutated or rebound, in each style.

Compilations are counted; instead of compiled code the reference runs, which is faster.
"""

import importlib
import itertools
import linecache
import sys
import types

import numpy as np
import pytest

from tile_core.reference import execute

from .stale_ways import ARGUMENTS, VALUES

HEAD = """
import collections, copy, dataclasses, enum, functools, os, types
import numpy as np
import tile_core as tile
import tile_core.language as T
class Plain:
    def __init__(self, s): self.S = s
class Slots:
    __slots__ = ("S", "other")
    def __init__(self, s): self.S = s
@dataclasses.dataclass
class Data:
    S: int
    other: int = 0
"""

STYLES = {
    "factory": """
@tile.jit(target="cpu", out_idx=-1)
def kernel({parameter}):
    number = {read}
    @T.prim_func
    def f(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * number
    return f
def run(a): return kernel({argument})(a)
""",
    "kernel of a factory": """
@tile.jit(target="cpu", out_idx=-1)
def kernel({parameter}):
    @T.prim_func
    def f(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * ({read})
    return f
def run(a): return kernel({argument})(a)
""",
    "eager": """
@tile.jit(target="cpu")
def kernel(A, {parameter}):
    A: T.Tensor[(4,), "int32"]
    B = T.empty((4,), "int32")
    number = {read}
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            B[i] = A[i] * number
    return B
def run(a): return kernel(a, {argument})
""",
    "macro": """
@T.macro
def scaled(v, {parameter}):
    return v * ({read})
@tile.jit(target="cpu")
def kernel(A, {parameter}):
    A: T.Tensor[(4,), "int32"]
    B = T.empty((4,), "int32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            B[i] = scaled(A[i], {parameter})
    return B
def run(a): return kernel(a, {argument})
""",
}


class Counted:
    """Stands for a compiled kernel: the reference runs its program."""

    made = 0

    def __init__(self, program, **options):
        self.program, self.options = program, options
        Counted.made += 1

    def __call__(self, a):
        b = np.zeros(4, "int32")
        execute(self.program, [a, b])
        return b


@pytest.fixture
def space(monkeypatch):
    monkeypatch.setattr("tile_core.compiler.compile", Counted)
    return Space(monkeypatch)


class Space:
    """A module of the user's, made of text."""

    numbers = itertools.count()

    def __init__(self, monkeypatch):
        self.patch, Counted.made = monkeypatch, 0
        self.module = self.new()

    def new(self, text="", **names):
        made = types.ModuleType(f"stale{next(Space.numbers)}")
        made.__dict__.update(names)
        self.patch.setitem(sys.modules, made.__name__, made)
        self.do(text, made)
        return made

    def do(self, text, module=None):
        module = self.module if module is None else module
        file = f"<{module.__name__} {next(Space.numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module.module = self.new
        exec(compile(text, file, "exec"), module.__dict__)
        del module.module  # this class is not part of the kernel

    def define(self, style, before, read, parameter="", argument=""):
        self.do(HEAD + before)
        self.do(STYLES[style].format(read=read, parameter=parameter, argument=argument))

    def expect(self, value, compilations):
        a = np.arange(4, dtype="int32")
        assert (self.module.run(a) == a * value).all()
        assert (self.module.run(a) == a * value).all()
        assert Counted.made == compilations


def check(space, change, equal, other=""):
    space.expect(2, 1)
    for text in filter(None, (other, equal)):
        space.do(text)
        space.expect(2, 1)
    if change:
        space.do(change)
        space.expect(5, 2)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("how", ["in place", "rebound"])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", VALUES)
def test_values(space, monkeypatch, name, style, how):
    monkeypatch.setenv("STALE_S", "")
    monkeypatch.setenv("STALE_Q", "")
    before, read, mutated, rebound, equal, other = VALUES[name]
    space.define(style, before, read)
    check(space, mutated if how == "in place" else rebound, "" if how == "in place" else equal, other)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("how", ["in place", "rebound"])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(space, name, style, how):
    before, read, mutated, rebound, equal = ARGUMENTS[name]
    space.define(style, before, read, "x", "x")
    check(space, mutated if how == "in place" else rebound, equal)


IMPORTS = {
    "import": ("import {module} as h", "h.S"),
    "from": ("from {module} import S", "S"),
    "function": ("from {module} import s", "s()"),
}


@pytest.mark.parametrize("change", ["attribute", "reloaded", "imported again"])
@pytest.mark.parametrize("where", ["outside", "inside"])
@pytest.mark.parametrize("kind", IMPORTS)
def test_modules_of_files(space, tmp_path, monkeypatch, kind, where, change):
    name = f"stale_file{next(Space.numbers)}"
    file = tmp_path / f"{name}.py"
    file.write_text("S = 2\ndef s(): return S\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    line, read = IMPORTS[kind]
    line = line.format(module=name)
    outside = where == "outside"
    space.do(HEAD + (line if outside else ""))
    space.do(
        f"def imported():\n {'pass' if outside else line}\n return {read}\n"
        + STYLES["factory"].format(read="imported()", parameter="", argument="")
    )
    space.expect(2, 1)
    importlib.invalidate_caches()
    if change == "attribute":
        sys.modules[name].S = 5
    else:
        file.write_text("S = 5  # changed\ndef s(): return S\n")
        if change == "reloaded":
            importlib.reload(sys.modules[name])
        else:
            del sys.modules[name]
            importlib.import_module(name)
    taken = outside and (kind == "from" or change == "imported again")
    if taken and not (kind == "function" and change == "attribute"):
        # The name in the user's module is still bound to the old value, as in Python.
        space.expect(2, 1)
        if change != "attribute":
            space.do(line)
            space.expect(5, 2)
    else:
        space.expect(5, 2)


def test_reloading_an_unchanged_module_compiles_nothing(space, tmp_path, monkeypatch):
    name = f"stale_file{next(Space.numbers)}"
    (tmp_path / f"{name}.py").write_text("class C:\n S = 2\ndef s(x): return x.S\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    space.define("eager", f"import {name} as h", "h.s(h.C())")
    space.expect(2, 1)
    importlib.reload(sys.modules[name])
    space.expect(2, 1)


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize("style", ["factory", "eager", "body", "closure"])
def test_names_in_annotations(space, style, future):
    """A name in an annotation reaches a kernel though the code of its function may not contain it."""
    head = future + HEAD + "cfg = Plain(4)\n"
    kernels = {
        "factory": "@tile.jit(target='cpu', out_idx=-1)\ndef kernel():\n @T.prim_func\n"
        " def f(A: T.Tensor((4,), 'int32'), B: T.Tensor((cfg.S,), 'int32')):\n"
        "  with T.Kernel(1, threads=32):\n   for i in T.Parallel(4): B[i] = A[i]\n return f\n"
        "def size(): return kernel().program.params[1].shape[0]\n",
        "body": "@tile.jit(target='cpu')\ndef kernel(A):\n A: T.Tensor[(cfg.S - 0,), 'int32']\n"
        " with T.Kernel(1, threads=32):\n  for i in T.Parallel(4): A[i] = 1\n"
        "def size(): return kernel.compile(np.zeros(cfg.S, 'int32')).program.params[0].shape[0]\n",
        "closure": "def make(cfg):\n @tile.jit(target='cpu')\n def kernel(A, n):\n  A: T.Tensor[(4,), 'int32']\n"
        "  B: T.Tensor[(cfg.S,), 'int32'] = T.empty((cfg.S,), 'int32')\n"
        "  with T.Kernel(1, threads=32):\n   for i in T.Parallel(4): B[i] = A[i]\n  return B\n return kernel\n"
        "kernel = make(cfg)\ndef size(): return kernel.compile(np.zeros(4, 'int32'), 1).program.params[1].shape[0]\n",
    }
    kernels["eager"] = kernels["body"].replace("cfg.S - 0", "cfg.S")
    space.do(head)
    space.do(future + kernels[style])
    assert space.module.size() == 4
    space.do("cfg.Q = 1")
    assert space.module.size() == 4
    assert Counted.made == 1
    space.do("cfg.S = 6")
    assert space.module.size() == 6
    assert Counted.made == 2


def test_defaults_of_the_kernel_itself(space):
    space.define("factory", "", "x", "x=2")
    space.expect(2, 1)
    space.do("kernel.function.__defaults__ = (5,)")
    space.expect(5, 2)


def test_a_trace_that_changes_what_it_reads_is_repeated(space):
    """Each call sees the number of its own trace."""
    space.define("factory", "seen = []\ndef count():\n seen.append(0)\n return len(seen)", "count()")
    a = np.ones(4, "int32")
    assert [space.module.run(a)[0] for _ in range(4)] == [1, 2, 3, 4]


def test_a_trace_that_only_records_calls_compiles_once(space):
    space.define("factory", "seen = []\ndef two():\n seen.append(0)\n return 2", "two()")
    for _ in range(4):
        space.expect(2, 1)


def test_going_back_takes_the_kernel_that_was_made(space):
    space.define("eager", "cfg = Plain(2)", "cfg.S")
    for value, compilations in ((2, 1), (5, 2), (2, 2), (5, 2), (7, 3), (2, 3)):
        space.do(f"cfg.S = {value}")
        space.expect(value, compilations)
    assert {f"changed: {n}" for n in ("S",)} <= set(space.module.kernel._memo.stats.reasons)


@pytest.mark.parametrize("library", ["import torch", "import logging\nlog = logging.getLogger('x')", "import json"])
def test_libraries_are_not_followed(space, library):
    name = library.split()[1]
    pytest.importorskip(name) if name == "torch" else None
    space.define("factory", library, "2 if str(x) else 0", "x=1")
    space.expect(2, 1)
    assert len(space.module.kernel.reads({"x": 1})) < 50


def test_more_values_than_can_be_compared_are_traced_again(space):
    space.define(
        "factory", "class C: pass\nx = C()\nfor i in range(3000): setattr(x, f'S{i}', [i])", "getattr(x, 'S2')[0]"
    )
    space.expect(2, 1)
    space.do("x.S2[0] = 5")
    space.expect(5, 2)
