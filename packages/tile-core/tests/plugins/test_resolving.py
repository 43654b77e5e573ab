"""Test the resolution of target texts, and of names that backends add to ``T``."""

import sys
import types

import pytest
from expected_errors import raises_error

from tile_core.errors import UnsupportedError
from tile_core.errors.plugins import (
    AmbiguousPriority,
    AmbiguousTarget,
    BackendBroken,
    DuplicateName,
    DuplicateVariant,
    HookFailed,
    HookReturned,
    MalformedTarget,
    NotOffered,
    ProvidedElsewhere,
    UnknownTarget,
    UnknownTargetOption,
)
from tile_core.lowering.variant import Variant
from tile_core.manifest import BackendManifest
from tile_core.plugins.manager import BackendWarning, installed, installed_again, targets
from tile_runtime import knobs


def variant(name, op="fill", priority=0):
    def lower(self, call, ctx):
        return call

    fields = {"name": name, "op": op, "priority": priority, "lower": lower}
    return type("Made", (Variant,), fields)()


def owning(name, *kinds):
    return lambda: BackendManifest(name, ">=1", kinds, "1")


class TestTargets:
    def test_the_backend_named_like_the_kind_answers_and_no_other_is_loaded(self, world):
        world.add("other", tile_backend=lambda: pytest.fail("loaded"))
        plugins = world.plugins()
        target = plugins.resolve_target("cpu: fast , b=2,a=1")
        assert (target.text, target.backend, target.arch) == ("cpu:fast,a=1,b=2", "cpu", "fast")
        assert plugins.resolve_target("cpu:fast,a=1,b=2") is target
        assert plugins.resolve_target(target) is target

    def test_a_kind_that_is_no_backend_is_looked_for_in_all(self, world):
        world.add("one", tile_backend=owning("one", "one", "shared"))
        world.add_entry("bad", "no_such_module_at_all")
        assert world.plugins().resolve_target("shared:x").backend == "one"

    def test_two_answers(self, world):
        world.add("one", tile_backend=owning("one", "one", "shared"))
        world.add("two", tile_backend=owning("two", "two", "shared"))
        with pytest.raises(AmbiguousTarget) as caught:
            world.plugins().resolve_target("shared")
        assert str(caught.value) == (
            "[S105] several backends support target 'shared': one, two\n"
            "   = help: uninstall all but one of them, or exclude one with TILE_DISABLE_BACKENDS"
        )
        assert world.plugins(disabled=["two"]).resolve_target("shared").backend == "one"

    def test_none_is_no_answer(self, world):
        world.add("one", tile_target=lambda text: None)
        world.add("two", tile_backend=owning("two", "two", "shared"), tile_target=lambda text: None)
        with pytest.raises(UnknownTarget, match="no installed backend supports target 'one'; installed: one, two"):
            world.plugins().resolve_target("one")

    def test_no_answer_of_the_kinds_own_backend_loads_no_other(self, world):
        listed = BackendManifest("one", ">=1", ("one",), "1", architectures=("one:a", "one:b"))
        world.add("one", tile_backend=lambda: listed, tile_target=lambda text: None)
        world.add("two", tile_backend=lambda: pytest.fail("loaded"))
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("one:c")
        assert caught.value.help == "it lists: one:a, one:b"
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("one:a")
        assert caught.value.help.startswith("backend 'one' does not support its own target")

    def test_a_target_of_a_disabled_backend(self, world):
        world.add("one")
        with pytest.raises(UnknownTarget) as caught:
            world.plugins(disabled=["one"]).resolve_target("one:c")
        assert caught.value.help.startswith("TILE_DISABLE_BACKENDS excludes its backend")

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("cpuu", "did you mean 'cpu'?"),
            (
                "cuda:sm_90a",
                "it is provided by tile-cuda: pip install packages/tile-cuda-runtime packages/tile-cuda in a checkout "
                "of tile",
            ),
            ("xyz", "install the package that provides it, or choose one of the installed targets"),
        ],
    )
    def test_unknown(self, world, text, hint):
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target(text)
        assert str(caught.value) == (
            f"[S104] no installed backend supports target {text!r}; installed: cpu\n   = help: {hint}"
        )

    def test_an_architecture_without_its_kind(self, world):
        known = ("one:fast8", "one:fast9")
        manifest = BackendManifest("one", ">=1", ("one",), "1", architectures=known)
        world.add("one", tile_backend=lambda: manifest)
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("fast9")
        assert caught.value.help == "did you mean 'one:fast9'?"
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("fas")
        assert caught.value.help.startswith("install the package")

    def test_the_beginning_of_a_kind(self, world):
        world.add("wide", tile_backend=owning("wide", "wide"))
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("wid")
        assert caught.value.help == "did you mean 'wide'?"

    def test_unknown_while_a_backend_is_broken(self, world):
        world.add_entry("bad", "no_such_module_at_all")
        with pytest.raises(UnknownTarget) as caught:
            world.plugins().resolve_target("xyz")
        assert caught.value.help.startswith("bad is broken: backend 'bad' (an unknown distribution source) is")

    @pytest.mark.parametrize("text", ["", "CPU", "cpu:", "cpu:a,b", "cpu:a=", "cpu:a=1,a=2", "cpu:=1", "1cpu", ":a"])
    def test_malformed(self, world, text):
        with pytest.raises(MalformedTarget) as caught:
            world.plugins().resolve_target(text)
        assert str(caught.value).startswith(
            f"[S103] {text!r} is not a target; expected kind, kind:arch or kind:arch,key=value\n   = help: write "
        )

    def test_the_backend_says_what_is_wrong_with_its_architecture(self, world):
        def tile_target(text):
            raise UnsupportedError(message="no such architecture")

        world.add("one", tile_target=tile_target)
        with pytest.raises(UnsupportedError, match="no such architecture"):
            world.plugins().resolve_target("one:x")

    def test_an_option_that_the_backend_passes_over(self, world):
        world.add("one", tile_target=lambda text: world.target(text.replace(",b=2", ""), "one"))
        with pytest.raises(UnknownTargetOption) as caught:
            world.plugins().resolve_target("one:x,a=1,b=2")
        assert str(caught.value) == (
            "[S120] target 'one:x,a=1,b=2': 'b' is not an option of backend 'one'\n"
            "   = help: remove it; options of this backend: one:x,a=1"
        )

    def test_a_target_of_another_backend(self, world):
        world.add("one", tile_target=lambda text: world.target(text, "cpu"))
        with pytest.raises(HookReturned, match="tile_target of backend 'one' returned a target of backend 'cpu'"):
            world.plugins().resolve_target("one")

    def test_a_target_of_another_kind(self, world):
        world.add("one", tile_target=lambda text: world.target("two", "one"))
        with pytest.raises(HookReturned, match="returned a target of kind 'two'; expected one of the kinds"):
            world.plugins().resolve_target("one")

    def test_a_target_whose_text_means_another(self, world):
        world.add("one", tile_target=lambda text: world.target("one:big" if text == "one" else "one", "one"))
        with pytest.raises(HookReturned, match="an equal target again for its own text 'one:big'"):
            world.plugins().resolve_target("one")


class TestAuto:
    def test_the_first_device_in_the_order_of_names(self, world):
        world.add("zeta", tile_detect=lambda: world.target("zeta:device", "zeta"))
        world.add("beta", tile_detect=lambda: None)
        world.add("alpha")
        plugins = world.plugins()
        assert plugins.resolve_target().text == "zeta:device"
        assert plugins.resolve_target("zeta:device") is plugins.resolve_target("auto")

    def test_the_built_in_backend_is_the_last(self, world):
        world.add("cpu", tile_detect=lambda: world.target("cpu:here", "cpu"))
        world.add("zeta", tile_detect=lambda: world.target("zeta", "zeta"))
        assert world.plugins().resolve_target().text == "zeta"
        assert world.plugins(disabled=["zeta"]).resolve_target().text == "cpu:here"

    def test_without_devices_it_is_the_built_in_backend(self, world):
        assert world.plugins().resolve_target("auto").text == "cpu"

    @pytest.mark.parametrize("answer", [lambda: 1 / 0, lambda: True])
    def test_a_failure_is_a_warning(self, world, answer):
        world.add("bad", tile_detect=answer)
        with pytest.warns(BackendWarning, match="'auto' passes over backend 'bad': hook tile_detect of backend 'bad'"):
            assert world.plugins().resolve_target("auto").text == "cpu"

    def test_a_broken_backend_is_a_warning(self, world):
        world.add_entry("bad", "no_such_module_at_all")
        with pytest.warns(BackendWarning, match="'auto' passes over backend 'bad': .*No module named"):
            assert world.plugins().resolve_target("auto").text == "cpu"

    def test_the_setting_decides(self, world):
        world.add("zeta", tile_detect=lambda: pytest.fail("asked"))
        with knobs.override(target="cpu:mine"):
            assert world.plugins().resolve_target("auto").text == "cpu:mine"

    def test_nothing_at_all(self, world):
        with raises_error(UnknownTarget, found="auto"):
            world.plugins(disabled=["cpu"]).resolve_target("auto")


class TestLanguage:
    @pytest.fixture(autouse=True)
    def module(self, monkeypatch):
        module = types.ModuleType("in_memory_language")
        module.twice = lambda x: x + x
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def test_a_name_is_imported_from_its_reference(self, world):
        world.add("one", tile_language=lambda: {"twice": "in_memory_language:twice"})
        assert world.plugins().language_name("twice")(4) == 8

    def test_loaded_backends_are_asked_first(self, world):
        world.add("one", tile_language=lambda: {"twice": "in_memory_language:twice"})
        world.add("two", tile_backend=lambda: pytest.fail("loaded"))
        plugins = world.plugins()
        plugins.resolve_target("one")
        assert plugins.language_name("twice")(4) == 8

    def test_nobody_knows_it(self, world):
        assert world.plugins().language_name("nonsense") is None

    @pytest.mark.parametrize(
        ("name", "package", "folders"),
        [
            ("wgmma_gemm_sp", "tile-cuda", "packages/tile-cuda-runtime packages/tile-cuda"),
            ("simdgroup_load", "tile-metal", "packages/tile-metal"),
        ],
    )
    def test_it_is_provided_elsewhere(self, world, name, package, folders):
        with pytest.raises(ProvidedElsewhere) as caught:
            world.plugins().language_name(name)
        assert isinstance(caught.value, AttributeError)  # so that hasattr(T, name) is an answer
        assert str(caught.value) == (
            f"[S113] T.{name} is provided by {package}, which is not installed\n"
            f"   = help: pip install {folders} in a checkout of tile"
        )

    def test_its_home_does_not_have_it(self, world):
        world.add("cuda")
        with raises_error(NotOffered, found="wgmma_gemm_sp"):
            world.plugins().language_name("wgmma_gemm_sp")

    def test_its_home_is_broken(self, world):
        world.add_entry("cuda", "no_such_module_at_all")
        with pytest.raises(BackendBroken):
            world.plugins().language_name("wgmma_gemm_sp")

    def test_another_package_may_provide_a_known_name(self, world):
        world.add("one", tile_language=lambda: {"tma_copy": "in_memory_language:twice"})
        assert world.plugins().language_name("tma_copy")(1) == 2

    def test_two_owners(self, world):
        world.add("one", tile_language=lambda: {"twice": "in_memory_language:twice"})
        world.add("two", tile_language=lambda: {"twice": "in_memory_language:twice"})
        with pytest.raises(DuplicateName) as caught:
            world.plugins().language_name("twice")
        assert str(caught.value) == (
            "[S114] T.twice is added by backend 'one' and by backend 'two'\n"
            "   = help: uninstall one of them, or exclude one with TILE_DISABLE_BACKENDS"
        )

    @pytest.mark.parametrize("answer", [["rubbish"], {"twice": "no colon"}, {"not a name": "a:b"}, None])
    def test_rubbish_of_one_backend_leaves_the_names_of_others(self, world, answer):
        world.add("bad", tile_language=lambda: answer)
        world.add("one", tile_language=lambda: {"twice": "in_memory_language:twice"})
        plugins = world.plugins()
        with pytest.warns(BackendWarning, match="'bad' adds no names: hook tile_language of backend 'bad' returned"):
            assert plugins.language_name("twice")(4) == 8
        assert plugins.language_names() == {"twice": "one"}

    def test_a_reference_to_nothing(self, world):
        world.add("one", tile_language=lambda: {"thrice": "in_memory_language:thrice"})
        with pytest.raises(HookFailed, match="AttributeError for 'in_memory_language:thrice'"):
            world.plugins().language_name("thrice")


class TestLowerings:
    def test_by_op_and_priority_of_the_owner_and_its_addons(self, world):
        world.add("one", tile_lowerings=lambda target: [variant("one.fill"), variant("one.copy", "copy")])
        world.add("one.extra", tile_target=None, tile_lowerings=lambda: [variant("extra.fill", priority=5)])
        world.add("cpu.extra", tile_backend=lambda: pytest.fail("loaded"))
        plugins = world.plugins()
        target = plugins.resolve_target("one")
        assert [v.name for v in plugins.lowerings(target)] == ["one.copy", "extra.fill", "one.fill"]
        assert plugins.lowerings(target) is plugins.lowerings(target)
        assert plugins.fingerprint(target) == "print of one; print of one.extra"
        assert plugins.names() == ("one", "cpu")
        assert plugins.addons("one") == ("one.extra",)

    def test_duplicate_name(self, world):
        world.add("one", tile_lowerings=lambda: [variant("one.fill"), variant("one.fill", priority=1)])
        plugins = world.plugins()
        with pytest.raises(DuplicateVariant) as caught:
            plugins.lowerings(plugins.resolve_target("one"))
        assert str(caught.value) == (
            "[S115] target 'one' has two variants named 'one.fill': from backend 'one' and from backend 'one'\n"
            "   = help: this is a defect of the later one, please report it to its authors"
        )

    def test_same_priority(self, world):
        world.add("one", tile_lowerings=lambda: [variant("one.a"), variant("one.b")])
        plugins = world.plugins()
        with pytest.raises(AmbiguousPriority) as caught:
            plugins.lowerings(plugins.resolve_target("one"))
        assert str(caught.value) == (
            "[S116] variants one.a and one.b of fill have the same priority 0\n"
            "   = help: this is a defect of the later one, please report it to its authors"
        )

    @pytest.mark.parametrize("answer", [[variant("one.fill", priority=7)], [variant("one.x")], None])
    def test_an_addon_that_clashes_or_fails_is_left_out(self, world, answer):
        world.add("one", tile_lowerings=lambda: [variant("one.fill")])
        world.add("one.extra", tile_target=None, tile_lowerings=lambda: answer)
        plugins = world.plugins()
        target = plugins.resolve_target("one")
        with pytest.warns(BackendWarning, match=r"add-on 'one\.extra' is left out: "):
            assert [v.name for v in plugins.lowerings(target)] == ["one.fill"]
        assert plugins.fingerprint(target) == "print of one"

    def test_targets_that_differ_in_a_capability_are_asked_about_apart(self, world):
        world.add("one", tile_lowerings=lambda target: [variant(f"one.{target.capabilities.max_threads}")])
        plugins = world.plugins()
        names = [plugins.lowerings(world.target("one", "one", max_threads=n))[0].name for n in (32, 64)]
        assert names == ["one.32", "one.64"]


def test_the_public_list_of_targets_says_what_works():
    infos = {info.name: info for info in targets()}
    assert (infos["cpu"].status, infos["cpu"].target_kinds) == ("ok", ("cpu",))
    assert infos["cpu"].distribution == "tile-core"


def test_the_installed_backends_are_found_once():
    assert installed() is installed()
    assert "cpu" in installed().names()
    with knobs.override(disable_backends=("cpu",)):
        assert "cpu" not in installed().names()
    before = installed()
    assert installed_again() is not before
