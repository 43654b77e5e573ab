"""The context is frozen once; options are those of the backend."""

import dataclasses

import pytest

from tile_core.context import Context
from tile_core.errors.plugins import InvalidOptions
from tile_core.manifest import BackendManifest
from tile_core.plugins.contexts import make_context
from tile_runtime import knobs


@dataclasses.dataclass(frozen=True)
class Options:
    level: int = 2
    fast: bool = False

    def __post_init__(self):
        if self.level > 3:
            raise ValueError("level up to 3")


@pytest.fixture
def plugins(world):
    world.add("one", tile_backend=lambda: BackendManifest("one", ">=1", ("one",), "1", Options))
    return world.plugins()


def test_it_holds_what_a_stage_may_depend_on(plugins):
    with knobs.override(num_threads=3):
        ctx = make_context("one:x", {"level": 3}, plugins=plugins)
    assert (ctx.target.text, ctx.backend.name, ctx.options, ctx.knobs.num_threads) == ("one:x", "one", Options(3), 3)
    assert ctx.capabilities is ctx.target.capabilities
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctx.options = None
    assert isinstance(ctx, Context)


def test_options(plugins):
    given = Options(1)
    assert make_context("one", given, plugins=plugins).options is given
    assert make_context("one", plugins=plugins).options == Options()
    assert make_context("cpu", {}, plugins=plugins).options is None


@pytest.mark.parametrize(
    ("target", "options", "found", "expected"),
    [
        ("one", {"levle": 1}, "'levle'", "'level'"),
        ("one", {"qqq": 1}, "'qqq'", "one of: level, fast"),
        ("one", {"level": 4}, "level=4", "level up to 3"),
        ("one", 7, "7", "Options or a mapping"),
        ("cpu", {"level": 1}, "{'level': 1}", "no options: this backend has none"),
    ],
)
def test_wrong_options(plugins, target, options, found, expected):
    with pytest.raises(InvalidOptions) as caught:
        make_context(target, options, plugins=plugins)
    form = "pass options={...} with the fields of the backend's options type, or an instance of it"
    value = "correct the value, or leave the option out for its default"
    assert str(caught.value) == (
        f"[S118] options of backend {target!r}: found {found}; expected {expected}\n"
        f"   = help: {value if options == {'level': 4} else form}"
    )
