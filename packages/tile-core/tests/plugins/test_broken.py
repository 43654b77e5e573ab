"""Test that broken plugins affect no other target, and are reported by ``tile doctor``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from broken_plugins import ALL, AT_LOADING, AT_USE, ENDING, HANGING, Broken
from plugin_site import Site
from repository import ROOT

from tile_core import __version__

#: Compiles and runs for targets that nothing is wrong with, and then for the one that is named.
HEALTHY = """
import json, sys, warnings
import numpy as np
import tile_core as tile
from tile_core.cli.demo_kernel import matmul
from tile_core.compiler import lower, source_text
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

rng = np.random.default_rng()
a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((37, 51), (51, 29)))
for target in ("cpu", "auto"):
    c = np.full((37, 29), np.nan, "float32")
    tile.compile(matmul(37, 29, 51, 32, 32, 16), target)(a, b, c)
    print(target, np.array_equal(c, a @ b))
plan = lower(matmul(37, 29, 51, 32, 32, 16), make_context("toyc"), installed())
print("toyc", "kernel void" in source_text(plan))
for name in sys.argv[1:]:
    try:
        tile.compile(matmul(37, 29, 51, 32, 32, 16), name)
    except TileError as error:
        print(json.dumps([error.code, error.message, error.help]))
    else:
        print("null")
"""
RIGHT = ["cpu True", "auto True", "toyc True"]


def made(folder, *plugins: Broken) -> Site:
    """Install plugins beside two that are right; a name that one of those has is broken, too."""
    site = Site(folder / "site").install("sample", "toyc")
    return site.install(*(plugin.write(folder / "sources") for plugin in plugins))


def lines_of(site: Site, *options: str) -> tuple[int, list[dict[str, str]]]:
    """Return the exit status and the lines of ``tile doctor``."""
    done = subprocess.run(
        [sys.executable, "-m", "tile_core.cli", "doctor", "--json", *options],
        env=site.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory) -> Site:
    """All of them together."""
    return made(tmp_path_factory.mktemp("crowded"), *ALL)


@pytest.fixture(scope="module")
def doctor(crowded) -> tuple[int, list[dict[str, str]]]:
    return lines_of(crowded)


def test_there_are_more_than_ten_ways():
    assert len({plugin.name for plugin in (*ALL, HANGING)}) == len(ALL) + 1 > 10


@pytest.mark.sweep(6)
@pytest.mark.parametrize("plugin", ALL, ids=lambda plugin: plugin.name)
def test_doctor_has_a_line_for_each(doctor, plugin):
    _, lines = doctor
    mine = [line for line in lines if line["name"] == plugin.about and line["status"] != "OK"]
    said = [" ".join(line["detail"].split()) for line in mine]
    assert [text for text in said if plugin.says.replace("{version}", __version__) in text], said
    assert all(line["remedy"] for line in mine)
    assert not [text for text in said if "Traceback" in text or len(text) > 900]


@pytest.mark.sweep(1)
def test_doctor_finds_nothing_wrong_with_the_others(doctor):
    status, lines = doctor
    assert status == 1
    others = [line for line in lines if line["name"] not in {plugin.about for plugin in ALL}]
    assert [line for line in others if line["status"] == "missing"] == []
    ok = {line["name"]: line["detail"] for line in others if line["status"] == "OK"}
    assert ok["backend toyc"] == "tile-toyc 1.0.0: toyc; compiles for toyc"
    assert "; compiles for cpu" in ok["backend cpu"]


@pytest.mark.sweep(1)
def test_the_other_targets_compile_and_run_among_all_of_them(crowded):
    assert crowded.python("-c", HEALTHY.replace('"auto"', '"cpu"')).splitlines()[::2] == RIGHT[::2]


def test_the_list_of_targets_imports_none_of_them(crowded):
    listed = json.loads(crowded.python("-m", "tile_core.cli", "targets", "--json"))
    named = {plugin.name for plugin in ALL if plugin.group == "tile.backends"}
    assert named <= {line["name"] for line in listed}
    broken = {line["name"] for line in listed if line["status"] != "not loaded"}
    assert broken == {"sample"}  # two offers of one name: seen without an import


@pytest.mark.sweep(1)
def test_a_list_of_loaded_targets_is_json_whatever_they_print(tmp_path):
    site = made(tmp_path, *AT_LOADING, *AT_USE)
    listed = json.loads(site.python("-m", "tile_core.cli", "targets", "--load", "--json"))
    broken = {line["name"] for line in listed if line["status"] == "broken"}
    assert broken == {plugin.name for plugin in AT_LOADING}
    assert "hello from b" in site.stderr
    rows = site.python(str(ROOT / "tools" / "ci_matrix.py"), "--backend", "b-prints", "--python", "3.12")
    assert [row["target"] for row in json.loads(rows)["include"]] == ["b-prints"]


#: Those that compile: what is wrong with them is not asked for then.
COMPILE = frozenset(
    {"b-detect", "b-language", "b-name", "b-unanswered", "b-emulation", "b-cases", "b-tilings", "b-prints"}
)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("plugin", [*AT_LOADING, *AT_USE], ids=lambda plugin: plugin.name)
def test_alone_it_breaks_no_other_target_and_who_asks_for_it_is_told_the_same(tmp_path, plugin):
    site = made(tmp_path, plugin)
    is_target = plugin.group == "tile.backends" and "." not in plugin.name
    lines = site.python("-c", HEALTHY, *([plugin.name] if is_target else [])).splitlines()
    right, expected = (lines[:-1], json.loads(lines[-1])) if is_target else (lines, None)
    assert [line for line in right if line != "hello from b"] == RIGHT
    assert (expected is None) == (not is_target or plugin.name in COMPILE)
    if expected is not None:
        code, message, remedy = expected
        said = f"[{code}] {' '.join(message.split())}"
        assert plugin.says.replace("{version}", __version__) in said
        assert remedy


@pytest.mark.sweep(4)
@pytest.mark.parametrize("plugin", [*ENDING, HANGING], ids=lambda plugin: plugin.name)
def test_alone_what_ends_a_process_breaks_no_other_target(tmp_path, plugin):
    site = made(tmp_path, plugin)
    assert site.python("-c", HEALTHY.replace('"auto"', '"cpu"')).splitlines()[::2] == RIGHT[::2]


@pytest.mark.sweep(2)
def test_what_hangs_is_given_up(tmp_path):
    site = made(tmp_path, HANGING)
    code = "import json\nfrom tile_core.cli.trials import trials\n"
    code += "print(json.dumps([vars(c) for c in trials(5, only=['backend b-hangs'])]))"
    (line,) = json.loads(site.python("-c", code))
    assert (line["name"], line["status"]) == ("backend b-hangs", "missing")
    assert line["detail"] == "it hangs: it did not come back within 5 s"


@pytest.mark.sweep(1)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot leave the current folder out of its path")
def test_files_of_the_current_folder_are_no_modules_of_its_processes(tmp_path):
    for name in ("json", "numpy", "pluggy", "tvm"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('a file of the user')")
    site = Site(tmp_path / "site").install("sample")
    code = "from tile_core.cli import checks, trials\nprint(checks.tvm_loads().status)\n"
    code += "print(*[c.status for c in trials.trials(only=['backend cpu', 'backend sample'])])"
    assert site.python("-c", code, cwd=tmp_path, PYTHONSAFEPATH="1") == "OK\nOK OK\n"


@pytest.mark.sweep(2)
def test_the_name_of_an_installed_published_backend_cannot_be_taken(tmp_path):
    """A stranger offers a name of a package that is installed: that one stays, and the doctor says who was left out."""
    taken = Broken("metal", "", distribution="tile-stranger")
    site = made(tmp_path, taken)
    out = site.run('print([(i.distribution, i.status) for i in p.targets(load=True) if i.name == "metal"])')
    assert out == "[('tile-metal', 'ok')]\n"
    _, lines = lines_of(site)
    said = [line["detail"] for line in lines if line["name"] == "backends"]
    assert said == [
        "tile-stranger 1.0.0 offers a backend 'metal', which is the name of the backend of tile-metal: it is left out"
    ]
