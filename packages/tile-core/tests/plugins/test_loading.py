"""Test loading a backend: contract violations are refused with the backend's name."""

import inspect
import sys
import traceback
import types

import pluggy
import pytest

from tile_core import __version__
from tile_core.emit.dialect import Dialect
from tile_core.errors import KernelError
from tile_core.errors.plugins import (
    BackendBroken,
    DuplicateBackend,
    HookFailed,
    HookReturned,
    IncompatibleApi,
    InvalidHook,
    InvalidManifest,
    UnknownBackend,
)
from tile_core.manifest import BackendManifest
from tile_core.plugins import hookspecs
from tile_core.plugins.loading import HOOKS


def manifest(name="good", **fields):
    return BackendManifest(**{"name": name, "api": ">=1", "target_kinds": (name,), "fingerprint": "1", **fields})


def depth(error):
    return len(traceback.extract_tb(error.__traceback__))


def refused(world, error, name="bad"):
    plugins = world.plugins()
    with pytest.raises(error) as first:
        plugins.manifest(name)
    deep = depth(first.value)
    with pytest.raises(error) as second:
        plugins.manifest(name)
    assert str(first.value) == str(second.value)
    assert depth(second.value) == deep
    assert plugins.manifest("cpu").name == "cpu"
    assert {info.name: info.status for info in plugins.targets()}[name] == "broken"
    return first.value


def test_a_backend_is_loaded_once(world):
    calls = []
    world.add("good", tile_backend=lambda: calls.append(1) or manifest())
    plugins = world.plugins()
    assert plugins.manifest("good") is plugins.manifest("good")
    assert calls == [1]
    assert [(i.name, i.status, i.target_kinds) for i in plugins.targets()] == [
        ("good", "ok", ("good",)),
        ("cpu", "not loaded", ()),
    ]


def test_a_backend_that_failed_is_not_tried_again(world):
    calls = []
    world.add("bad", tile_backend=lambda: calls.append(1))
    refused(world, HookReturned)
    assert calls == [1]


def test_unknown_backend(world):
    with pytest.raises(UnknownBackend) as caught:
        world.plugins().manifest("cppu")
    assert str(caught.value) == (
        "[S106] no installed distribution provides a backend 'cppu'; installed: cpu\n   = help: did you mean 'cpu'?"
    )


def test_an_import_error_is_the_cause(world):
    world.add_entry("bad", "no_such_module_at_all.plugin")
    error = refused(world, BackendBroken)
    assert isinstance(error.__cause__, ModuleNotFoundError)
    assert str(error) == (
        "[S107] backend 'bad' (an unknown distribution source) is installed but broken: "
        "ModuleNotFoundError: No module named 'no_such_module_at_all'\n"
        "   = help: reinstall or uninstall an unknown distribution source; the other backends are not affected"
    )


def test_exit_at_import_is_a_broken_backend(world, monkeypatch):
    class Exits(types.ModuleType):
        def __getattr__(self, name):
            raise SystemExit(3)

    monkeypatch.setitem(sys.modules, "in_memory_exit", Exits("in_memory_exit"))
    world.add_entry("bad", "in_memory_exit:plugin")
    assert isinstance(refused(world, BackendBroken).__cause__, SystemExit)


def test_wrong_api_is_told_before_hooks_are_looked_at(world):
    world.add("bad", tile_backend=lambda: manifest("bad", api=">=2"), tile_of_tomorrow=lambda: None)
    error = refused(world, IncompatibleApi)
    assert str(error) == (
        "[S108] backend 'bad' (an unknown distribution source) is made for plugin API >=2; this is tile-core "
        f"{__version__}, which has API 1.0\n"
        "   = help: update tile-core: it is the older of the two"
    )


def test_a_manifest_of_an_older_api_is_refused_and_its_package_is_the_one_to_upgrade(world):
    world.add("bad", tile_backend=lambda: manifest("bad", api=">=0,<1"))
    assert str(refused(world, IncompatibleApi)) == (
        "[S108] backend 'bad' (an unknown distribution source) is made for plugin API >=0,<1; this is tile-core "
        f"{__version__}, which has API 1.0\n"
        "   = help: update an unknown distribution: it is the older of the two"
    )


def test_a_manifest_that_needs_a_newer_minor_is_refused(world):
    world.add("bad", tile_backend=lambda: manifest("bad", api=">=1.1,<2"))
    assert "API >=1.1,<2" in str(error := refused(world, IncompatibleApi))
    assert "update tile-core" in error.help


def test_a_target_kind_that_is_another_backend(world):
    world.add("bad", tile_backend=lambda: manifest("bad", target_kinds=("bad", "cpu")))
    error = refused(world, DuplicateBackend)
    assert error.code == "S109"
    assert str(error).startswith("[S109] the target kind 'cpu' is provided by an unknown distribution source and by ")


def test_a_misspelt_hook_names_the_nearest(world):
    world.add("bad", tile_emulaton=lambda target: None)
    assert str(refused(world, InvalidHook)) == (
        "[S110] backend 'bad': there is no hook tile_emulaton\n   = help: did you mean tile_emulation?"
    )


def test_a_hook_with_an_argument_that_does_not_exist(world):
    world.add("bad", tile_emulation=lambda target, volume: None)
    text = str(refused(world, InvalidHook))
    assert "Plugin 'bad' for hook 'tile_emulation'" in text
    assert "{'volume'}" in text


def test_a_hook_may_take_fewer_arguments(world):
    dialect = Dialect("mine", ())
    world.add("good", tile_emulation=lambda: dialect, tile_pipeline=lambda spine: [*spine, "tail"])
    plugins = world.plugins()
    target = plugins.resolve_target("good")
    assert plugins.emulation(target) is dialect
    assert plugins.pipeline(target, ["head"]) == ["head", "tail"]


@pytest.mark.parametrize("hooks", [{"tile_emulaton": lambda target: None}, {"tile_emulation": lambda volume: None}])
def test_nothing_of_a_refused_backend_stays_registered(world, hooks):
    world.add("bad", **hooks, tile_detect=lambda: 1 / 0)
    plugins = world.plugins()
    with pytest.raises(InvalidHook):
        plugins.manifest("bad")
    assert plugins._registry._pluggy.get_plugins() == set()
    assert plugins.resolve_target("cpu").backend == "cpu"


def test_a_decorated_hook_works_too(world):
    dialect = Dialect("mine", ())

    @pluggy.HookimplMarker("tile")
    def tile_emulation(target):
        return dialect

    world.add("good", tile_emulation=tile_emulation)
    plugins = world.plugins()
    assert plugins.emulation(plugins.resolve_target("good")) is dialect


def test_no_manifest(world):
    world.add("bad", tile_backend=None)
    error = refused(world, InvalidHook)
    assert error.message == "backend 'bad': in_memory_bad does not implement the mandatory hook tile_backend"


def test_a_manifest_of_another_type(world):
    world.add("bad", tile_backend=lambda: {"name": "bad"})
    assert refused(world, HookReturned).message == (
        "hook tile_backend of backend 'bad' returned {'name': 'bad'}; expected a BackendManifest"
    )


def test_a_manifest_of_another_name(world):
    world.add("bad", tile_backend=lambda: manifest("good"))
    error = refused(world, InvalidManifest)
    assert error.message == "the manifest of backend 'bad' has name='good'; expected its entry point's name"


def test_a_mandatory_hook_is_missed_when_it_is_needed(world):
    world.add("good", tile_lowerings=None)
    plugins = world.plugins()
    target = plugins.resolve_target("good")
    with pytest.raises(InvalidHook, match=r"S110.*'good': it does not implement the mandatory hook tile_lowerings"):
        plugins.lowerings(target)
    with pytest.raises(InvalidHook, match="tile_pipeline"):
        plugins.pipeline(target, ())
    assert (plugins.runtimes(target), plugins.emulation(target)) == ((), None)


def test_an_error_of_the_catalogue_passes_a_hook_unchanged(world):
    mine = KernelError(message="too odd")

    def tile_emulation(target):
        raise mine

    world.add("good", tile_emulation=tile_emulation)
    plugins = world.plugins()
    with pytest.raises(KernelError) as caught:
        plugins.emulation(plugins.resolve_target("good"))
    assert caught.value is mine


def test_any_other_error_names_backend_and_hook(world):
    world.add("good", tile_runtimes=lambda target: target.nonsense)
    plugins = world.plugins()
    with pytest.raises(HookFailed) as caught:
        plugins.runtimes(plugins.resolve_target("good"))
    assert isinstance(caught.value.__cause__, AttributeError)
    assert str(caught.value) == (
        "[S111] hook tile_runtimes of backend 'good' raised AttributeError: 'Target' object has no attribute "
        "'nonsense'\n   = help: this is a defect of that backend, please report it to its authors with the traceback"
    )


@pytest.mark.parametrize(
    ("hook", "answer", "expected"),
    [
        ("tile_lowerings", None, "a sequence of variants, each with a name"),
        ("tile_lowerings", [object()], "a sequence of variants, each with a name"),
        ("tile_pipeline", None, "a pipeline"),
        ("tile_runtimes", None, "a sequence of RuntimeAdapters"),
        ("tile_runtimes", "adapter", "a sequence of RuntimeAdapters"),
        ("tile_runtimes", [1], "a sequence of RuntimeAdapters"),
        ("tile_emulation", "model", "a Dialect or None"),
        ("tile_emulation", 7, "a Dialect or None"),
        ("tile_tilings", "model", "a TilingModel or None"),
        ("tile_strategies", None, "a mapping of names"),
        ("tile_strategies", {"odd": 7}, "a mapping of names"),
        ("tile_cases", None, "a mapping of names"),
        ("tile_cases", ["tile_odd:units"], "a mapping of names"),
    ],
)
def test_rubbish_names_backend_and_hook(world, hook, answer, expected):
    # pluggy reads None as "no answer", which is the same refusal.
    world.add("good", **{hook: lambda: answer})
    plugins = world.plugins()
    target = plugins.resolve_target("good")
    with pytest.raises(HookReturned) as caught:
        plugins._registry.ask("good", hook, **({"spine": ()} if hook == "tile_pipeline" else {}), target=target)
    assert caught.value.code == "S112"
    assert caught.value.message.startswith(f"hook {hook} of backend 'good' returned {answer!r:.20}"[:60])
    assert expected in caught.value.message


def test_the_contract_file_documents_every_hook():
    assert len(HOOKS) == 11
    for name in HOOKS:
        text = inspect.getdoc(getattr(hookspecs, name)) or ""
        assert "Called" in text, name
        assert "Returns\n-------" in text, name
