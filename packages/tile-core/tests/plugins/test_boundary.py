"""Test that every failing hook of a backend becomes a typed error with its name."""

import dataclasses
import sys
import types
import warnings
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu import plugin as cpu
from tile_core.cpu.runtime.host import HostAdapter
from tile_core.errors.lowering import VariantCrashed
from tile_core.errors.plugins import BackendBroken, HookFailed, HookReturned, UnknownTarget
from tile_core.errors.setup import RuntimeBroken
from tile_core.lowering.variant import Variant
from tile_core.manifest import BackendManifest
from tile_core.passes.spine import SPINE, Pass, Spine
from tile_core.plugins import discovery, manager
from tile_core.plugins.contexts import make_context
from tile_core.plugins.discovery import BUILTIN, GROUP, BackendWarning
from tile_core.plugins.manager import Plugins


class Own(BaseException):
    """An error that no `except Exception` sees."""


ENDS = [SystemExit(3), Own("odd"), GeneratorExit(), RuntimeError("plain")]
HOOKS = {
    "tile_target": lambda p, t: p.resolve_target("good:other"),
    "tile_lowerings": lambda p, t: p.lowerings(t),
    "tile_pipeline": lambda p, t: p.pipeline(t, SPINE),
    "tile_runtimes": lambda p, t: p.runtimes(t),
    "tile_emulation": lambda p, t: p.emulation(t),
    "tile_strategies": lambda p, t: p.strategies(t),
    "tile_cases": lambda p, t: p.case_tables(t),
    "tile_tilings": lambda p, t: p.tilings(t),
}


def raising(error):
    def hook():
        raise error

    return hook


@pytest.mark.parametrize("error", ENDS, ids=repr)
@pytest.mark.parametrize("hook", HOOKS)
def test_what_a_hook_raises(world, hook, error):
    world.add("good", **{hook: raising(error)})
    plugins = world.plugins()
    target = world.target("good", "good")
    with pytest.raises(HookFailed, match=f"S111.*hook {hook} of backend 'good' raised {type(error).__name__}"):
        HOOKS[hook](plugins, target)


@pytest.mark.parametrize("hook", HOOKS)
def test_an_interrupt_passes(world, hook):
    world.add("good", **{hook: raising(KeyboardInterrupt)})
    with pytest.raises(KeyboardInterrupt):
        HOOKS[hook](world.plugins(), world.target("good", "good"))


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_auto_and_names_pass_over_it(world, error):
    world.add("bad", tile_detect=raising(error), tile_language=raising(error))
    plugins = world.plugins()
    with pytest.warns(BackendWarning, match=f"passes over backend 'bad'.*{type(error).__name__}"):
        assert plugins.resolve_target("auto").backend == "cpu"
    with pytest.warns(BackendWarning, match="adds no names"):
        assert plugins.language_name("unknown") is None


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_what_a_manifest_raises(world, error):
    world.add("bad", tile_backend=raising(error))
    plugins = world.plugins()
    with pytest.raises(HookFailed):
        plugins.manifest("bad")
    assert plugins.resolve_target("cpu").backend == "cpu"
    assert {i.name: i.status for i in plugins.targets(load=True)} == {"bad": "broken", "cpu": "ok"}


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_what_an_import_raises(world, error, monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "raises_at_import":
                raise error

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    world.add_entry("bad", "raises_at_import")
    with pytest.raises(BackendBroken, match=type(error).__name__):
        world.plugins().manifest("bad")


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_what_a_name_of_the_language_raises(world, error, monkeypatch):
    class Module(types.ModuleType):
        def __getattr__(self, name):
            if name == "odd":
                raise error
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "raising_names", Module("raising_names"))
    world.add("bad", tile_language=lambda: {"odd": "raising_names:odd"})
    with raises_error(HookFailed, hook="tile_language"):
        world.plugins().language_name("odd")


# --- compiling: an add-on or a backend around the built-in one ---


@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        a = T.alloc_shared((8,), "float32")
        T.copy(A, a)
        for i in T.Parallel(8):
            B[i] = a[i] * T.float32(2)


@pytest.fixture
def install(monkeypatch):
    """Install backends in memory beside the built-in one."""

    def add(name, functions):
        module = types.ModuleType(f"in_memory_{name.replace('.', '_')}")
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        plugins = Plugins([EntryPoint(name, module.__name__, GROUP), BUILTIN])
        monkeypatch.setattr(manager, "installed", lambda: plugins)
        monkeypatch.setattr("tile_core.reports.facts.installed", lambda: plugins)
        return plugins

    return add


def like_cpu(**changed):
    """The built-in backend under another name, with other hooks."""

    def tile_backend():
        return dataclasses.replace(cpu.tile_backend(), name="toy", target_kinds=("toy",))

    def tile_target(text):
        own = cpu.tile_target("cpu")
        return dataclasses.replace(own, text=text, kind="toy", backend="toy")

    hooks = {n: f for n, f in vars(cpu).items() if n.startswith("tile_")}
    return {**hooks, "tile_backend": tile_backend, "tile_target": tile_target, **changed}


PASSES = {
    "none": (lambda plan, ctx: None, HookReturned, "returned None; expected a Plan"),
    "raises": (lambda plan, ctx: plan.nothing, HookFailed, "raised AttributeError"),
    "ends": (lambda plan, ctx: sys.exit(2), HookFailed, "raised SystemExit"),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass(install, name):
    run, error, said = PASSES[name]
    install("toy", like_cpu(tile_pipeline=lambda target, spine: spine.then(Pass("odd", run))))
    with pytest.raises(error, match=f"tile_pipeline, pass 'odd', of backend 'toy' {said}"):
        tile.compile(double, "toy")


@pytest.mark.parametrize("answer", [7, [], SPINE.passes, object()], ids=["int", "list", "tuple", "object"])
def test_a_pipeline_of_another_type(install, answer):
    install("toy", like_cpu(tile_pipeline=lambda target, spine: answer))
    with pytest.raises(HookReturned, match="expected a Spine"):
        tile.compile(double, "toy")


def test_a_pipeline_of_other_things_than_passes(install):
    install("toy", like_cpu(tile_pipeline=lambda target, spine: Spine((*spine.passes, "tail"))))
    with pytest.raises(HookFailed, match="'tail' is not a Pass"):
        tile.compile(double, "toy")


def returning(value):
    return lambda self, *arguments: value


def ending(self, *arguments):
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ({"load": returning(3)}, "load returned 3; expected a function"),
        ({"load": ending}, "load raised SystemExit"),
    ],
)
def test_a_runtime(install, methods, said):
    odd = type("Odd", (HostAdapter,), {"__module__": "odd", "name": "odd", **methods})
    install("toy", like_cpu(tile_runtimes=lambda target: [odd(target)]))
    with pytest.raises(RuntimeBroken, match=said):
        tile.compile(double, "toy")


@pytest.mark.parametrize("toolchain", [returning(3), ending], ids=["another type", "ends"])
def test_a_cache_does_without_a_broken_toolchain(install, toolchain):
    odd = type("Odd", (HostAdapter,), {"__module__": "odd", "name": "odd", "toolchain": toolchain})
    install("toy", like_cpu(tile_runtimes=lambda target: [odd(target)]))
    assert tile.compile(double, "toy")


class Empty(Variant):
    """Takes every copy, and does nothing."""

    name, op, priority = "extra.copy.nothing", "copy", 10**6

    def lower(self, call, ctx):
        return tirx.Evaluate(0)


class Loops(Variant):
    """Takes every copy as the core's own loops do."""

    name, op, priority = "extra.copy.loops", "copy", 10**6

    def lower(self, call, ctx):
        from tile_core.ops.registry import OPS

        return OPS["copy"].meaning(call)


def addon(variant):
    def tile_backend():
        return BackendManifest("cpu.extra", api=">=1,<2", target_kinds=(), fingerprint="1")

    return {"tile_backend": tile_backend, "tile_lowerings": lambda target: (variant,)}


def test_a_variant_that_does_nothing_is_refused(install):
    install("cpu.extra", addon(Empty()))
    with pytest.raises(VariantCrashed, match=r"extra\.copy\.nothing lowered the call to a statement that writes"):
        tile.compile(double, "cpu")


def test_a_variant_of_an_addon_is_named(install):
    install("cpu.extra", addon(Loops()))
    kernel = tile.compile(double, "cpu")
    b = np.zeros(8, "float32")
    kernel(np.arange(8, dtype="float32"), b)
    assert b.tolist() == [2 * i for i in range(8)]
    said = kernel.explain()
    assert "extra.copy.loops" in said
    assert "from the add-on" in " ".join(said.split())


# --- what is installed ---


def test_the_built_in_backend_stays(monkeypatch):
    monkeypatch.setitem(sys.modules, "evil_cpu", types.ModuleType("evil_cpu"))
    entries = [EntryPoint("cpu", "evil_cpu", GROUP), BUILTIN]
    monkeypatch.setattr(discovery.distributions, "entry_points", lambda group: entries)
    with pytest.warns(BackendWarning, match="offers a backend 'cpu', which is the name of the built-in backend"):
        plugins = Plugins()
    assert plugins.resolve_target("auto").backend == "cpu"
    assert plugins.manifest("cpu").name == "cpu"


@pytest.mark.parametrize("name", ["", " ", ".", "cpu.", "a b", "\x1b[1m", "3", "cpu..x"])
def test_a_name_that_is_none_is_left_out(world, name):
    world.add_entry(name, "nothing")
    with pytest.warns(BackendWarning, match="which is not a name: it is left out"):
        plugins = world.plugins()
    with pytest.raises(UnknownTarget):
        plugins.resolve_target("cpi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [info.name for info in plugins.targets(load=True)] == ["cpu"]


def test_core_passes_stay_defects_of_the_core():
    def broken(plan, ctx):
        raise ZeroDivisionError

    broken.__module__ = "tile_core.passes.some"
    with pytest.raises(ZeroDivisionError):
        Pass("core", broken)(None, make_context("cpu"))
