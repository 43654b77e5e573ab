"""Test settings: types, environment, overrides for a block, and misspelt names."""

import dataclasses
import threading
from pathlib import Path

import pytest

from tile_core.errors.plugins import InvalidKnob
from tile_runtime import knobs
from tile_runtime.knobs import Knobs, UnknownKnob


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in knobs._READERS:
        monkeypatch.delenv("TILE_" + name.upper(), raising=False)


def test_every_field_has_a_reader():
    assert list(knobs._READERS) == [f.name for f in dataclasses.fields(Knobs)]


def test_defaults():
    assert knobs.current() == Knobs()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cache_dir", "/x/y", Path("/x/y")),
        ("disable_cache", "1", True),
        ("disable_cache", "off", False),
        ("verify_ir", "True", True),
        ("dump_dir", "d", Path("d")),
        ("num_threads", "3", 3),
        ("target", "cpu:x", "cpu:x"),
        ("disable_backends", "a, b,", ("a", "b")),
        ("trace_plugins", "yes", True),
        ("num_threads", "", None),
    ],
)
def test_from_the_environment(monkeypatch, name, text, value):
    monkeypatch.setenv("TILE_" + name.upper(), text)
    assert getattr(knobs.current(), name) == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("TILE_NUM_THREADS", "0", "a positive number"), ("TILE_NUM_THREADS", "x", "a positive number"),
     ("TILE_VERIFY_IR", "2", "0 or 1")],
)  # fmt: skip
def test_a_value_that_cannot_be_read(monkeypatch, name, text, expected):
    monkeypatch.setenv(name, text)
    with pytest.raises(InvalidKnob) as caught:
        knobs.current()
    assert str(caught.value) == f"[S119] {name}={text!r}; expected {expected}\n   = help: correct or unset it"


def test_override_nests_and_ends(monkeypatch):
    monkeypatch.setenv("TILE_NUM_THREADS", "2")
    with knobs.override(num_threads=5, verify_ir=True) as outer:
        assert (outer.num_threads, outer.verify_ir) == (5, True)
        with knobs.override(num_threads=None):
            assert knobs.current() == Knobs(num_threads=None, verify_ir=True)
        with pytest.raises(InvalidKnob), knobs.override(verify_ir=False):
            knobs.override(nonsense=1).__enter__()
        assert knobs.current() == outer
    assert knobs.current() == Knobs(num_threads=2)


def test_override_is_of_this_thread_only():
    seen = []
    with knobs.override(num_threads=5):
        thread = threading.Thread(target=lambda: seen.append(knobs.current().num_threads))
        thread.start()
        thread.join()
    assert seen == [None]


def test_override_of_something_unknown():
    with (
        pytest.raises(InvalidKnob, match=r"verfy_ir=True; expected the setting 'verify_ir'"),
        knobs.override(verfy_ir=True),
    ):
        pass
    with pytest.raises(InvalidKnob, match=r"qqq=1; expected one of: cache_dir, "), knobs.override(qqq=1):
        pass


def test_unknown_variables_are_reported_with_the_nearest():
    environ = {"TILE_NUM_THREAD": "1", "TILE_QQQ": "1", "TILE_CACHE_DIR": "x", "TILE_MY_BACKEND_X": "1", "TILES": "1"}
    with pytest.warns(UnknownKnob) as caught:
        knobs.check_environment(["my-backend"], environ)
    texts = [str(w.message) for w in caught]
    assert texts[0] == "environment variable TILE_NUM_THREAD has no effect; did you mean TILE_NUM_THREADS?"
    assert texts[1].startswith("environment variable TILE_QQQ has no effect; the settings are TILE_CACHE_DIR, ")
    assert len(texts) == 2
