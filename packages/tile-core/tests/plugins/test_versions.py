"""Test that packages for another tile-core are refused before they are imported."""

from __future__ import annotations

import json
import textwrap

import pytest

from tile_core import __version__
from tile_core.errors.plugins import OutOfStep
from tile_core.plugins.versions import bounds_on, check_in_step, satisfies

NEEDS = ">=99.1,<99.2"


class Metadata(dict):
    version = "99.1.4"

    def __init__(self, *requires):
        super().__init__(Name="tile-sample")
        self.metadata, self.requires = self, list(requires)


class Entry:
    name = "sample"

    def __init__(self, *requires):
        self.dist = Metadata(*requires)


@pytest.fixture
def package(tmp_path):
    """A backend that requires a future tile-core, and that fails at import."""

    def make(needs=f"tile-core{NEEDS}", entries="", code=None):
        folder = tmp_path / "tile-late"
        (folder / "src" / "tile_late").mkdir(parents=True)
        (folder / "src" / "tile_late" / "__init__.py").write_text("")
        (folder / "src" / "tile_late" / "plugin.py").write_text(textwrap.dedent(code or 'raise ImportError("moved")'))
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "tile-late"\nversion = "99.1.4"\ndependencies = ["{needs}"]\n'
            f'[project.entry-points."tile.backends"]\nlate = "tile_late.plugin"\n{entries}'
        )
        return folder

    return make


def test_the_message_names_both_versions_and_the_remedy():
    with pytest.raises(OutOfStep) as caught:
        check_in_step(Entry(f"tile-core{NEEDS}"), "backend 'sample'", "0.1.0")
    assert str(caught.value) == (
        "[S122] backend 'sample' comes from tile-sample 99.1.4, which requires tile-core >=99.1,<99.2; "
        "this is tile-core 0.1.0\n"
        "   = help: update both: tile-core and tile-sample must be of one release"
    )


@pytest.mark.parametrize(
    "requires",
    [
        (),
        ("tile-core",),
        ("tile-core-extra>=99",),
        ("tile-core>=0.1.0,<0.2", "numpy>=99"),
        ('tile-core>=99; python_version < "3"',),
        ('tile-core[testing]>=99; extra == "test"',),
    ],
)
def test_what_passes(requires):
    check_in_step(Entry(*requires), "backend 'sample'", "0.1.5")


def test_an_entry_point_of_no_distribution_passes():
    check_in_step(type("Entry", (), {"dist": None})(), "backend 'sample'", "0.1.5")


@pytest.mark.sweep(1)
def test_a_backend_that_is_out_of_step_is_refused_before_its_import_and_no_other_is_touched(site, package):
    out = site.install("sample", package()).run("""
from tile_core.errors.plugins import OutOfStep
for text in ("late", "late:x"):
    try:
        p.resolve_target(text)
    except OutOfStep as error:
        print(error.message)
print("tile_late.plugin" in sys.modules, p.resolve_target("sample").kind, p.resolve_target("cpu").kind)
""")
    line = (
        f"backend 'late' comes from tile-late 99.1.4, which requires tile-core {NEEDS}; this is tile-core {__version__}"
    )
    assert out.splitlines() == [line, line, "False sample cpu"]


def test_doctor_names_both_versions_and_the_remedy(site, package):
    checks = '[project.entry-points."tile.checks"]\nlate = "tile_late.plugin:checks"\n'
    out = site.install(package(entries=checks)).python(
        "-c",
        "import json\nfrom tile_core.cli.trials import trials\n"
        "print(json.dumps([vars(c) for c in trials(only=['backend late', 'package late'])]))",
    )
    found = json.loads(out)
    assert [c["name"] for c in found] == ["backend late", "package late"]
    for check in found:
        assert check["status"] == "missing"
        assert f"tile-late 99.1.4, which requires tile-core {NEEDS}; this is tile-core {__version__}" in check["detail"]
        assert check["remedy"].startswith("update both: tile-core and tile-late")


@pytest.mark.sweep(1)
def test_a_runtime_that_is_out_of_step_is_refused(site, package):
    runtime = '[project.entry-points."tile.runtimes"]\nlate = "tile_late.plugin:make"\n'
    out = site.install(package(entries=runtime)).run("""
from tile_core.errors.plugins import OutOfStep
from tile_core.plugins.runtimes import find_runtime
try:
    find_runtime(p, p.resolve_target("cpu"), "late")
except OutOfStep as error:
    print(error.message)
""")
    assert out.startswith("runtime 'late' comes from tile-late 99.1.4, which requires tile-core")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tile-core>=1,<2"], ">=1,<2"),
        (["tile-core<2,>=1"], ">=1,<2"),  # as builders write it
        (["tile_core >= 1"], ">= 1"),
        (["Tile.Core[testing]>=1"], ">=1"),
        (["tile-core (>=1,<2)"], ">=1,<2"),
        (["tile-core", "tile-core<3", "numpy<2"], "<3"),
        (["numpy<2"], ""),
    ],
)
def test_bounds_on_a_distribution(lines, expected):
    assert bounds_on("tile-core", lines) == expected


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("2.4.6", ">=2.1,<3", True),
        ("2.0", ">=2.1,<3", False),
        ("3.0.1", ">=2.1,<3", False),
        ("2.1", ">=2.1.0", True),
        ("10", ">=9", True),
        ("0.27.0.post1", "==0.27.0.post1", True),
        ("0.27.0", "==0.27.0.post1", False),
        ("0.27.0.post2", "==0.27.0.post1", False),
        ("0.1.15", "==0.1.14.post1", False),
        ("1.0", "!=1.0", False),
        ("0.1.9", "~=0.1.2", True),
        ("0.1.1", "~=0.1.2", False),
        ("0.2.0", "~=0.1.2", False),
        ("0.9", "~=0.1", True),
        ("1.0", "~=0.1", False),
        ("0.1.7", "==0.1.*", True),
        ("0.10", "==0.1.*", False),
        ("0.2", "!=0.1.*", True),
        ("0.2.0.dev3", ">=0.2", True),
        ("1.0", "===1.0", True),
        ("1.0", "", True),
    ],
)
def test_versions_within_bounds(version, bounds, expected):
    assert satisfies(version, bounds) is expected
