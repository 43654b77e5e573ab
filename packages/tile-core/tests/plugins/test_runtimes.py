"""Runtimes that serve targets of any backend."""

import sys
import types
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.cpu.runtime.host import HostAdapter
from tile_core.errors.plugins import DuplicateBackend
from tile_core.errors.setup import NoRuntime, RuntimeBroken, UnknownRuntime
from tile_core.plugins import runtimes
from tile_core.plugins.manager import installed


@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] * T.float32(2)


class Counted(HostAdapter):
    name = "toy"
    calls = 0

    def load(self, artefact):
        launch = super().load(artefact)

        def counted(*values):
            Counted.calls += 1
            launch(*values)

        return counted


@pytest.fixture
def offer(monkeypatch):
    """Offer the runtime ``toy`` as an installed distribution would."""

    def install(make):
        module = types.ModuleType("in_memory_runtime")
        module.make = make
        monkeypatch.setitem(sys.modules, "in_memory_runtime", module)
        entry = EntryPoint("toy", "in_memory_runtime:make", runtimes.GROUP)
        monkeypatch.setattr(runtimes.distributions, "entry_points", lambda group: [entry] * (group == entry.group))

    return install


def test_serves_a_target_by_name_and_by_verify(offer):
    asked = []

    def make(target, dialect):
        asked.append((target.text, dialect))
        return Counted(target)

    offer(make)
    before = Counted.calls
    x = np.arange(8, dtype="float32")
    kernel = tile.compile(double, "cpu", out_idx=-1, runtime="toy")
    np.testing.assert_array_equal(kernel(x), 2 * x)
    assert Counted.calls == before + 1
    other = tile.compile(double, "cpu", out_idx=-1)
    assert other.adapter.name == "host"
    other.verify(x, runtime="toy")
    assert Counted.calls == before + 2
    assert asked == [(kernel.target, None)] * 2


def test_is_never_chosen_by_itself(offer):
    offer(lambda target, dialect: pytest.fail("an unexpected call"))
    assert tile.compile(double, "cpu").adapter.name == "host"


def test_an_unknown_name_lists_what_there_is(offer):
    offer(lambda target, dialect: Counted(target))
    with pytest.raises(UnknownRuntime, match=r"\[S202\] cpu.* has no runtime 'toi'") as caught:
        tile.compile(double, "cpu", runtime="toi")
    assert "its runtimes are: host, toy, emulator (of tile-emulator, not installed)" in str(caught.value)


def test_a_published_one_that_is_not_installed_is_named(offer):
    offer(lambda target, dialect: Counted(target))
    with pytest.raises(UnknownRuntime, match="of tile-emulator, not installed"):
        tile.compile(double, "cpu", runtime="emulator")


def test_a_target_that_launches_nothing_has_no_runtime(monkeypatch):
    monkeypatch.setattr("tile_core.plugins.manager.Plugins.runtimes", lambda self, target: ())
    with pytest.raises(NoRuntime):
        tile.compile(double, "cpu")


def raises(target, dialect):
    raise OSError("libtoy.so: cannot open shared object file")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (raises, "OSError: libtoy.so: cannot open shared object file"),
        (lambda target, dialect: 7, "in_memory_runtime:make returned int, not a runtime"),
    ],
)
def test_a_broken_one_is_named(offer, make, reason):
    offer(make)
    with raises_error(RuntimeBroken, name="toy") as caught:
        tile.compile(double, "cpu", runtime="toy")
    assert reason in str(caught.value)


def test_an_error_of_the_catalogue_reaches_the_user(offer):
    def make(target, dialect):
        raise NoRuntime(target=target.text)

    offer(make)
    with pytest.raises(NoRuntime):
        tile.compile(double, "cpu", runtime="toy")


class Of:
    """An entry point of a distribution."""

    def __init__(self, name, distribution):
        self.name, self.value, self.group = name, "a:make", runtimes.GROUP
        self.dist = type("Dist", (), {"metadata": {"Name": distribution}, "version": "1.0"})()


def test_two_of_one_name_are_refused_when_it_is_asked_for():
    entries = runtimes.offered([Of("toy", "tile-one"), Of("toy", "tile-two"), Of("other", "tile-one")])
    assert {name: len(found) for name, found in entries.items()} == {"other": 1, "toy": 2}
    with pytest.raises(DuplicateBackend) as caught:
        runtimes.make_runtime(entries["toy"], installed().resolve_target("cpu"), installed())
    assert str(caught.value).startswith("[S109] the runtime 'toy' is provided by tile-one 1.0 and by tile-two 1.0")


def test_the_name_of_a_published_one_belongs_to_its_distribution():
    mine, theirs = Of("emulator", "tile-emulator"), Of("emulator", "tile-stranger")
    assert runtimes.offered([theirs, mine]) == {"emulator": (mine,)}
    assert runtimes.offered([theirs]) == {"emulator": (theirs,)}
