"""Objects that can be sent to another process: all errors, and common values."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import itertools
import pickle
import string
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error
from repository import ROOT

import tile_core as tile
import tile_core.language as T
from tile_core.errors import InternalError, TileError, Where
from tile_core.errors.language import BadReturn, NotImportable
from tile_core.errors.launch import BadOutIdx, NotProvided
from tile_core.plugins.manager import installed

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}
HERE = Where(__file__, 1)


def errors() -> list[type[TileError]]:
    """Return every error of every package."""
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        if "errors" in (path.parent.name, path.stem):
            parts = path.relative_to(next(p for p in path.parents if p.name == "src")).with_suffix("").parts
            library = {"tile_jax": "jax", "tile_torch": "torch"}.get(parts[0])
            if library is not None and importlib.util.find_spec(library) is None:
                continue
            importlib.import_module(".".join(p for p in parts if p != "__init__"))
    return sorted(set(below(TileError)), key=lambda error: (error.code, error.__module__, error.__name__))


def below(error: type[TileError]) -> Iterator[type[TileError]]:
    """Yield a class's subclasses, and theirs."""
    for one in error.__subclasses__():
        if one.__module__.startswith("tile_"):
            yield one
            yield from below(one)


def facts(error: type[TileError], odd: object) -> dict[str, object]:
    """Return facts for a class's placeholders: numbers where they are formatted as such, anything elsewhere."""
    found = [field for text in (error.template, error.remedy) for field in string.Formatter().parse(text)]
    return {name: 1234 if spec else odd for _, name, spec, _ in found if name}


ODD = {
    "text": "a text",
    "container": ({"a": [1, 2.5, None]}, np.float32(3)),
    "function": lambda: None,
    "module": np,
    "objects that hold others": [(threading.Lock(), {types: len})],
}


@pytest.mark.parametrize("error", errors(), ids=lambda error: f"{error.code}-{error.__name__}")
def test_every_error_says_the_same(error: type[TileError]) -> None:
    for odd, how in itertools.product(ODD, COPIES):
        raised = error(where=HERE, **facts(error, ODD[odd]))
        if sys.version_info >= (3, 11):
            raised.add_note("a note")
        found = COPIES[how](raised)
        assert type(found) is error
        assert str(found) == str(raised)
        assert (found.message, found.help, found.where, found.args) == (raised.message, raised.help, HERE, raised.args)
        assert {n: repr(v) for n, v in found.facts.items()} == {n: repr(v) for n, v in raised.facts.items()}
        assert getattr(found, "__notes__", None) == getattr(raised, "__notes__", None)
        assert pickle.loads(pickle.dumps(found)).facts == found.facts


def test_there_are_errors_of_every_package() -> None:
    packages = {error.__module__.partition(".")[0] for error in errors()}
    assert packages >= {
        *("tile_core", "tile_cuda", "tile_cuda_runtime", "tile_emulator", "tile_metal", "tile_rocm_stub"),
        *("tile_runtime", "tile_tilelang"),
    }
    assert len(errors()) > 250


def test_facts_keep_their_values_where_any_process_can_read_them() -> None:
    shape = (np.int64(3), [4, b"x"], {"y": None}, T.float16)
    raised = pickle.loads(pickle.dumps(BadOutIdx(kernel="k", found=shape, reason="r", fix="f")))
    assert raised.facts == {"kernel": "k", "found": shape, "reason": "r", "fix": "f"}
    assert type(raised.facts["found"][0]) is np.int64


def test_facts_that_cannot_be_shown_or_end_nowhere() -> None:
    class Hidden:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    endless: list[object] = []
    endless.append(endless)
    raised = InternalError(stage=endless, detail="d", other=Hidden())
    found = pickle.loads(pickle.dumps(raised))
    assert str(found) == str(raised)
    assert "[[...]]" in str(found)
    assert "Hidden object at" in found.facts["other"]


def test_an_error_with_arguments_of_its_own() -> None:
    found = copy.deepcopy(Odd(3))
    assert (found.number, str(found)) == (3, "[T000] number 3")


class Odd(TileError):
    """An error of somebody else's backend, whose constructor differs."""

    def __init__(self, number: int) -> None:
        super().__init__(message=f"number {number}")
        self.number = number


MODULE = """
    import threading
    import tile_core as tile
    import tile_core.language as T
    from tile_core.errors.language import BadReturn

    @T.macro
    def twice(x):
        return x * 2

    @tile.jit(target="cpu", out_idx=-1)
    def make(n):
        @T.prim_func
        def body(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            with T.Kernel(1):
                for i in T.Parallel(n):
                    Y[i] = twice(X[i])

        return body

    @tile.autotune(configs=[{"threads": 1}])
    @tile.jit(target="cpu", out_idx=-1)
    def tuned(threads):
        return make.function(threads)

    @tile.jit(target="cpu")
    def eager(X):
        N = T.const("N")
        X: T.Tensor[(N,), "float32"]
        Y = T.empty((1,), "float32")
        with T.Kernel(1):
            Y[0] = X[0]
        return Y

    class Holder:
        @tile.jit(target="cpu", out_idx=-1)
        def method(self, n):
            return make.function(n)

    def fails():
        raise BadReturn(kernel=threading.Lock(), found=make.program(4).func, expected=make)

    def returns_a_kernel():
        return make(4)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module that other processes find, too."""
    (tmp_path / "sent_to_processes.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("sent_to_processes")
    del sys.modules["sent_to_processes"]


def test_errors_of_workers_arrive_and_the_pool_goes_on(module: Any) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with pytest.raises(BadReturn, match=r"<unlocked _thread\.lock object") as info:
            pool.submit(module.fails).result()
        assert "JitFunction" in info.value.facts["expected"]
        with pytest.raises(TileError) as unknown:
            pool.submit(tile.compile, module.make.program(4), "nonsense").result()
        assert "nonsense" in str(unknown.value)
        assert unknown.value.code.startswith("S")
        with raises_error(NotProvided, action="pickling"):
            pool.submit(module.returns_a_kernel).result()
        x = np.ones(4, "float32")
        program = pool.submit(module.make.program, 4).result()
        assert (tile.compile(program, "cpu", out_idx=-1)(x) == 2).all()
        assert (pool.submit(module.eager, x).result() == 1).all()
        assert pool.submit(repr, module.twice).result().startswith("<tile_core.trace.decorators.Macro")


@pytest.mark.parametrize("how", COPIES)
def test_decorated_functions_are_themselves(module: Any, how: str) -> None:
    for function in (module.make, module.tuned, module.eager, module.twice, module.Holder.method):
        assert COPIES[how](function) is function


def test_decorated_functions_without_a_name_elsewhere(module: Any) -> None:
    @T.macro
    def local(x: Any) -> None:
        T.clear(x)

    assert copy.deepcopy(local) is local
    with pytest.raises(NotImportable, match=r"local cannot be sent.*inside of a function") as info:
        pickle.dumps(local)
    assert info.value.code == "K147"
    assert "top level" in info.value.help
    for other in (module.make.changed(target="cpu"), module.tuned.function):
        with pytest.raises(NotImportable, match="is not this object"):
            pickle.dumps(other)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
@pytest.mark.parametrize("text", ["cpu", "cuda:sm_90a", "cuda:sm_100a", "metal", "rocm"])
def test_targets_and_options(text: str, how: str) -> None:
    target = installed().resolve_target(text)
    assert COPIES[how](target) == target
    manifest = installed().manifest(target.backend)
    assert COPIES[how](manifest) == manifest
    if manifest.options is not None:
        assert COPIES[how](manifest.options()) == manifest.options()


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_layouts_signatures_and_reports(module: Any, how: str) -> None:
    kernel = module.make(4)
    for value in (
        T.Layout((8, 8), lambda i, j: (j, i)),
        T.Fragment((8, 8), forward_fn=lambda i, j: (i, j)),
        kernel.signature,
        kernel.explain(),
        kernel.bench(np.ones(4, "float32")),
        tile.targets(),
        T.float16,
        T.GemmWarpPolicy.FullRow,
    ):
        assert COPIES[how](value) == value
    assert COPIES["deepcopy"](kernel) is kernel


def test_warnings_say_the_same() -> None:
    paths = [p for p in ROOT.glob("packages/*/src/**/*.py") if "Warning)" in p.read_text(encoding="utf-8")]
    assert len(paths) >= 5
    for path in paths:
        parts = path.relative_to(next(p for p in path.parents if p.name == "src")).with_suffix("").parts
        importlib.import_module(".".join(parts))
    classes = [c for c in every(Warning) if c.__module__.startswith("tile_")]
    assert len(classes) >= 6
    for one in classes:
        for how in COPIES.values():
            found = how(one("a text"))
            assert type(found) is one
            assert str(found) == "a text"


def every(kind: type[Warning]) -> Iterator[type[Warning]]:
    """Yield a class's subclasses, and theirs."""
    for one in kind.__subclasses__():
        yield one
        yield from every(one)
