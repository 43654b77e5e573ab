"""Test renamed options of a backend: old names warn once and have equal keys."""

import dataclasses
import pickle
import warnings

import pytest

import tile_core as tile
from tile_core import renamed_options as renaming
from tile_core.decorators import JitFunction
from tile_core.errors.plugins import InvalidOptions
from tile_core.manifest import BackendManifest
from tile_core.plugins import manager
from tile_core.plugins.contexts import make_context
from tile_core.renamed_options import RenamedOption, renamed_of, renamed_options
from tile_core.runtime.cache_key import content_hash


@renamed_options(blocks="persistent", stay="persistent", order="raster")
@dataclasses.dataclass(frozen=True)
class Options:
    persistent: int = 0
    raster: str = "auto"


@pytest.fixture
def plugins(world, monkeypatch):
    monkeypatch.setattr(renaming, "_warned", set())
    world.add("one", tile_backend=lambda: BackendManifest("one", ">=1", ("one",), "1", Options))
    return world.plugins()


def test_old_names_warn_once_with_the_new_name(plugins):
    with pytest.warns(RenamedOption, match="^option blocks is now persistent$") as seen:
        assert make_context("one:x", {"blocks": 3}, plugins=plugins).options == Options(persistent=3)
    assert [w.filename for w in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_context("one:x", {"blocks": 4}, plugins=plugins).options == Options(4)
        assert Options(blocks=5) == Options(5)  # type: ignore[call-arg]
    with pytest.warns(RenamedOption, match="^option order is now raster$"):
        assert Options(order="row") == Options(raster="row")  # type: ignore[call-arg]
    assert issubclass(RenamedOption, DeprecationWarning)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"blocks": 1, "persistent": 1}, "persistent only: option blocks is now persistent"),
        ({"blocks": 1, "stay": 1}, "persistent only: option blocks is now persistent"),
    ],
)
def test_an_option_by_two_names_is_refused(plugins, given, expected):
    with pytest.raises(InvalidOptions) as caught:
        make_context("one:x", given, plugins=plugins)
    found = ", ".join(f"{name}={value}" for name, value in given.items())
    assert str(caught.value) == (
        f"[S118] options of backend 'one': found {found}; expected {expected}\n   = help: use the new name only"
    )
    with pytest.raises(ValueError, match=f"^{expected}$"):
        Options(**given)


def test_keys_are_equal_under_both_names(plugins, monkeypatch):
    """The key of the cache has the context's options, and that of a factory the options of ``options_for``."""
    monkeypatch.setattr(manager, "installed", lambda: plugins)
    target = plugins.resolve_target("one:x")
    by_name = [{"blocks": 3}, {"stay": 3}, {"persistent": 3}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {content_hash(make_context("one:x", o, plugins=plugins).options, None) for o in by_name}
        assert len(found) == 1
        for given in by_name:
            factory = JitFunction(lambda: None, {}, None, target, given)
            assert factory.options_for(target) == {"persistent": 3}


def test_unknown_names_are_refused_by_current_names(plugins):
    with pytest.raises(InvalidOptions, match="one of: persistent, raster"):
        make_context("one:x", {"qqqqqq": 1}, plugins=plugins)


def test_options_stay_records():
    options = Options(2, "row")
    assert pickle.loads(pickle.dumps(options)) == options
    assert dataclasses.replace(options, raster="column") == Options(2, "column")
    assert renamed_of(Options) == {"blocks": "persistent", "stay": "persistent", "order": "raster"}
    assert renamed_of(None) == renamed_of(int) == {}


def test_old_names_stand_for_fields():
    with pytest.raises(TypeError, match="stand for its fields"):
        renamed_options(old="missing")(dataclasses.dataclass(frozen=True)(type("Some", (), {})))


def test_backends_without_renamed_options():
    cpu = manager.installed().resolve_target("cpu")
    assert tile.jit(options={"poison": True})(lambda: None).options_for(cpu) == {"poison": True}
