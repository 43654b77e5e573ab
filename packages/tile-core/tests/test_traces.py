"""Tracebacks of errors end at the user's code, unless a setting shows all frames."""

from __future__ import annotations

import copy
import inspect
import traceback

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.cli.app import run
from tile_core.errors import InternalError, TileError
from tile_runtime.knobs import override
from tile_runtime.traces import rendered, short_traces, shorten


def bad(step=64):
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=32):
            A[0, step] = 1

    return kernel


def bad_with_options():
    @T.prim_func(private=True)
    def kernel(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=32):
            A[0, 64] = 1


def good(block=32):
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        with T.Kernel(T.ceildiv(64, block), threads=32) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] += 1

    return kernel


def wrong_call():
    tile.compile(good(), "cpu")(np.zeros(64))


WRONG = {
    "prim_func": bad,
    "prim_func with options": bad_with_options,
    "compile": lambda: tile.compile(good(), "no_such_target"),
    "explain": lambda: tile.explain(good(), "no_such_target"),
    "call": wrong_call,
    "call by name": lambda: tile.compile(good(), "cpu")(B=np.zeros(64)),
    "verify": lambda: tile.compile(good(), "cpu").verify(np.zeros(64)),
    "bench": lambda: tile.compile(good(), "cpu").bench(np.zeros(64)),
    "jit": lambda: tile.jit(target="cpu")(bad)(),
    "jit, compile": lambda: tile.jit(target="cpu")(bad).compile(),
    "jit, program": lambda: tile.jit(target="cpu")(bad).program(),
    "autotune, compile": lambda: tile.autotune([{"step": 64}])(tile.jit(target="cpu")(bad)).compile(),
    "autotune": lambda: tile.autotune([{"step": 64}])(tile.jit(target="cpu")(bad))(),
    "tilings": lambda: tile.tilings(bad, target="cpu"),
}


@pytest.mark.parametrize("name", WRONG)
def test_at_most_one_frame_of_tile_is_left(name):
    with pytest.raises(TileError) as caught:
        WRONG[name]()
    assert len(_frames(caught.value, "tile_core")) <= 1
    assert _frames(caught.value, __name__.rpartition(".")[2])


def test_the_line_of_the_kernel_is_kept():
    with pytest.raises(TileError) as caught:
        bad()
    assert "A[0, step] = 1" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", WRONG)
def test_a_setting_shows_all_frames(name):
    with override(full_traceback=True), pytest.raises(TileError) as caught:
        WRONG[name]()
    assert len(_frames(caught.value, "tile_core") + _frames(caught.value, "tile_runtime")) >= 2


def test_the_environment_sets_it(monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "1")
    with pytest.raises(TileError) as caught:
        bad()
    assert len(_frames(caught.value, "tile_core")) > 3


def test_causes_are_shortened_too():
    def cause():
        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                A[0] = [1][2]

    with pytest.raises(TileError) as caught:
        cause()
    assert isinstance(caught.value.__cause__, IndexError)
    assert _frames(caught.value.__cause__, "tile_core") == []


def test_defects_keep_their_frames():
    inside = {"__name__": "tile_core.planted", "InternalError": InternalError}
    exec("def broken():\n    raise InternalError(stage='test', detail='planted')", inside)
    with pytest.raises(InternalError) as caught:
        short_traces(inside["broken"])()
    assert len(_frames(caught.value, "planted")) == 1


def test_an_error_that_is_its_own_context_ends():
    error = TileError(message="a")
    error.__context__ = other = ValueError()
    other.__context__ = error
    shorten(error)
    assert copy.copy(error).message == "a"


def test_lines_for_ipython():
    with override(full_traceback=True), pytest.raises(TileError) as caught:
        bad()
    lines = rendered(caught.value)
    assert not any("tile_core/trace/" in line for line in lines)
    assert any("[K106]" in line for line in lines)
    assert caught.value._render_traceback_() == lines
    with override(full_traceback=True), pytest.raises(TileError) as caught:
        bad()
    with override(full_traceback=True):
        assert any("tile_core/trace/" in line for line in rendered(caught.value))


def test_a_wrong_setting_does_not_hide_an_error(monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "perhaps")
    with pytest.raises(TileError, match="K411"):
        shorten_inside()


@short_traces
def shorten_inside():
    from tile_core.errors.launch import DTypeMismatch

    raise DTypeMismatch(kernel="k", name="A", expected="float32", found="float64", accepted="")


def _frames(error, package):
    found = traceback.walk_tb(error.__traceback__)
    return [frame for frame, _ in found if package in frame.f_globals["__name__"].split(".")]


@pytest.mark.parametrize("options", [(), ("--verbose",)])
def test_the_command_line_shows_all_frames_where_it_is_asked_to(tmp_path, capsys, options):
    file = tmp_path / "k.py"
    file.write_text(f"import tile_core.language as T\n{inspect.getsource(bad)}")
    assert run(["explain", f"{file}:bad", "--target", "cpu", *options]) == 1
    shown = capsys.readouterr()
    assert "[K106]" in shown.out + shown.err
    assert ("tile_core/trace/" in shown.out + shown.err) == bool(options)
