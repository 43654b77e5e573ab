"""Real packages, installed and found by fresh interpreters."""

import pytest
from broken_plugins import ALL

BROKEN = {plugin.name: plugin for plugin in ALL}
SEVERAL = ("b-import", "b-api", "b-misspelt", "b-target", "b-crash")


@pytest.fixture
def broken(tmp_path):
    """Write the sources of broken plugins, by name."""
    return lambda *names: [BROKEN[name].write(tmp_path / "sources") for name in names]


def test_listing_shows_what_is_installed_and_imports_none_of_it(site, broken):
    out = site.install("sample", *broken("b-import")).run("""
for info in p.targets():
    print(info.name, info.distribution, info.version, info.status)
print([m for m in sys.modules if m.startswith(("tile_sample", "tile_b_", "tile_core.cpu", "tvm", "torch"))])
""")
    lines = out.splitlines()
    here = [line for line in lines if "tile-sample" in line or "tile-b-" in line]
    assert here == ["b-import tile-b-import 1.0.0 not loaded", "sample tile-sample 1.2.3 not loaded"]
    assert [line for line in lines if line.startswith("cpu tile-core ")]
    assert lines[-1] == "[]"


def test_a_package_that_reads_distributions_with_its_own_classes_hides_none(site):
    pytest.importorskip("importlib_metadata")
    out = site.install("sample").run("""
import importlib_metadata
from tile_core.plugins.manager import installed_again
print("sample" in installed_again().names(), installed_again().resolve_target("sample").kind)
""")
    assert out.splitlines() == ["True sample"]


def test_asking_for_one_target_imports_its_backend_only(site, broken):
    out = site.install("sample", *broken(*SEVERAL)).run("""
t = p.resolve_target("sample")
print(t.text == "sample:" + t.arch, t.kind, t.backend, t.capabilities.max_threads)
print([m for m in sys.modules if m.startswith("tile_b_")])
print(p.manifest("sample").options.__name__, p.manifest("sample").fingerprint[:18])
""")
    assert out.splitlines() == ["True sample sample 256", "[]", "SampleOptions tile_sample 1.2.3 "]


def test_a_name_of_T_is_imported_when_it_is_used(site):
    out = site.install("sample").run("""
print({name: owner for name, owner in p.language_names().items() if owner == "sample"})
print("tile_sample.language" in sys.modules, p.language_name("sample_twice")(21), p.language_name("nonsense"))
""")
    assert out.splitlines() == ["{'sample_twice': 'sample'}", "False 42 None"]


ASK = """
from tile_core.errors import TileError
for i in range(2):
    try:
        p.resolve_target({text!r})
    except TileError as error:
        print(str(error).splitlines()[0])
        cause = error.__cause__
        print(type(cause).__name__)
        tb = cause and cause.__traceback__
        while tb and tb.tb_next:
            tb = tb.tb_next
        print(tb and tb.tb_frame.f_code.co_name)
print(p.manifest("sample").name)
"""


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("name", "cause", "function"),
    [
        ("b-import", "OSError", "<module>"),
        ("b-manifest-raises", "KeyError", "tile_backend"),
        ("b-api", "NoneType", "None"),
        ("b-misspelt", "NoneType", "None"),
        ("b-target", "KeyError", "tile_target"),
        ("b-target-text", "NoneType", "None"),
    ],
)
def test_a_broken_backend_fails_each_time_it_is_asked_for_and_no_other(site, broken, name, cause, function):
    out = site.install("sample", *broken(name)).run(ASK.format(text=name)).splitlines()
    assert out == [*out[:3] * 2, "sample"]
    assert BROKEN[name].says.partition("{")[0] in out[0]
    assert out[1:3] == [cause, function]


def test_two_distributions_with_one_backend_name_are_refused_naming_both(site, broken):
    out = site.install("sample", *broken("sample")).run("""
from tile_core.errors.plugins import DuplicateBackend
print([(i.status, i.reason) for i in p.targets() if i.name == "sample"])
try:
    p.resolve_target("sample")
except DuplicateBackend as error:
    print(error)
print([m for m in sys.modules if m.startswith(("tile_sample", "tile_b_"))])
""")
    listed, refused, help_line, imported = out.splitlines()
    assert "broken" in listed
    assert refused.startswith("[S109] the backend 'sample' is provided by tile-")
    assert "tile-sample 1.2.3" in refused
    assert "tile-b-duplicate 1.0.0" in refused
    assert help_line == "   = help: uninstall one of them"
    assert imported == "[]"


def test_a_disabled_backend_counts_as_not_installed(site, broken):
    out = site.install("sample", *broken("sample")).run('print("sample" in p.names())', TILE_DISABLE_BACKENDS="sample")
    assert out == "False\n"


def test_a_misspelt_variable_is_reported_and_one_of_a_backend_is_left_alone(site):
    site.install("sample").run("", TILE_CACHE_DRI="/tmp", TILE_SAMPLE_VOLUME="11", TILE_VERIFY_IR="1")
    assert "environment variable TILE_CACHE_DRI has no effect; did you mean TILE_CACHE_DIR?" in site.stderr
    assert site.stderr.count("has no effect") == 1


def test_hook_calls_can_be_watched(site):
    site.install("sample").run('p.resolve_target("sample")', TILE_TRACE_PLUGINS="1")
    assert "tile: tile_target(text=sample) asked of sample\n" in site.stderr
    assert "tile: tile_target answered Target(text='sample:" in site.stderr


def test_importing_the_core_looks_at_no_backend(site, broken):
    out = site.install("sample", *broken(*SEVERAL)).run(
        "print([m for m in sys.modules if m.startswith(('tile_sample', 'tile_b_', 'numpy', 'tvm', 'torch'))])"
    )
    assert out == "[]\n"


def test_the_sample_backend_lowers_an_op_its_own_way_and_others_as_the_host_does(site):
    out = site.install("sample").run("""
from tile_core.plugins.contexts import make_context
from tile_core.ir import nodes
from tile_core.lowering.dispatch import select
from tile_core.ops.base import OpCall, View

ctx = make_context("sample", {"loud": True}, plugins=p)
buffer, _ = nodes.alloc([8], "float32", "x", "local.fragment")
call = OpCall("fill", (View.of(nodes.region(buffer, [0], [8])), nodes.const(3.0, "float32")))
variants = p.lowerings(ctx.target)
chosen, forced = select(call, variants, ctx), select(call, variants, ctx, forced="cpu.fill.loops")
print(ctx.options.loud, ctx.options.parallel, chosen.variant.name, "|", chosen.accepted.note, "|", forced.variant.name)
print(str(chosen.lower(call, ctx)) == str(forced.lower(call, ctx)), "cpu.gemm.loops" in [v.name for v in variants])
print(p.runtimes(ctx.target) != (), p.emulation(ctx.target), p.fingerprint(ctx.target)[:17])
""")
    assert out.splitlines() == [
        "True True sample.fill | as cpu.fill.loops | cpu.fill.loops",
        "True True",
        "True None tile_sample 1.2.3",
    ]


@pytest.mark.sweep(0.25)
def test_a_strangers_cases_are_part_of_the_kit(site):
    """Those of the target's own backend only, behind the core's."""
    kit = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "tile_core.testing")
    site.install("sample")
    out = site.python(*kit, "--tile-backend", "sample", "-k", "sample or dp4a/int8-int8", cwd=site.folder)
    row = next(line.split() for line in out.splitlines() if line.startswith("sample "))
    assert row == ["sample", "1", "1", "-", "-"]
    assert "dp4a " in out
    out = site.python(*kit, "--tile-backend", "cpu", "-k", "sample or dp4a/int8-int8", cwd=site.folder)
    assert "sample " not in out
    assert "dp4a " in out
