"""Test interrupted installations and removals: their folders are reported, and harmless."""

from __future__ import annotations

import json
import shutil

import pytest

LISTED = """
import json, warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    found = {i.name: [i.distribution, i.version, i.status, i.reason, i.remedy] for i in p.targets(load=True)}
print(json.dumps(found), p.resolve_target("toyc").kind, p.resolve_target("cpu").kind)
"""
TRIED = """
from tile_core.cli.trials import trials
import json
print(json.dumps([[c.name, c.status, c.detail, c.remedy] for c in trials(only=["packages", "backend toyc"])]))
"""


def damage(folder, how):
    """Leave what an interrupted installer leaves of tile-sample."""
    info = folder / "tile_sample-1.2.3.dist-info"
    if how == "no code":
        shutil.rmtree(folder / "tile_sample")
    elif how == "no metadata":
        (info / "METADATA").unlink()
    elif how == "empty metadata":
        (info / "METADATA").write_text("")
    elif how == "bytes":
        (info / "METADATA").write_bytes(b"\xff\xfe\x00\x9d")
    elif how == "no entry points":
        (info / "entry_points.txt").unlink()
    elif how == "half of the entry points":
        (info / "entry_points.txt").write_text("[tile.backends]\nsample")
    elif how == "entry points of bytes":
        (info / "entry_points.txt").write_bytes(b"[tile.backends]\n\xff\xfe = \x9d")
    elif how == "empty folder":
        shutil.rmtree(info)
        info.mkdir()
    elif how == "leftover of pip":
        info.rename(folder / "~ile_sample-1.2.3.dist-info")
    elif how == "a file":
        shutil.rmtree(info)
        info.write_text("")


DAMAGED = "it has no readable file METADATA with a name and a version"
REFUSED = f"comes from tile_sample-1.2.3.dist-info, which is damaged: {DAMAGED}"

#: What the list of backends says of it, and what the doctor says of packages; empty if it is as if not installed.
STATES = {
    "no code": ("S107", "No module named 'tile_sample'", ""),
    "no metadata": ("S123", REFUSED, DAMAGED),
    "empty metadata": ("S123", REFUSED, DAMAGED),
    "bytes": ("S123", REFUSED, DAMAGED),
    "no entry points": ("", "", ""),
    "half of the entry points": ("", "", "its entry_points.txt cannot be read (TypeError"),
    "entry points of bytes": ("", "", "its entry_points.txt cannot be read (UnicodeDecodeError"),
    "empty folder": ("", "", ""),
    "leftover of pip": ("", "", ""),
    "a file": ("", "", ""),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("how", STATES)
def test_no_other_backend_notices(site, how):
    code, reason, package = STATES[how]
    site.install("sample", "toyc")
    damage(site.folder, how)
    listed, toyc, cpu = site.run(LISTED).rsplit(maxsplit=2)
    found = json.loads(listed)
    assert (toyc, cpu, found["toyc"][2], found["cpu"][2]) == ("toyc", "cpu", "ok", "ok")
    assert ("sample" in found) == bool(code)
    if code:
        name, version, status, said, remedy = found["sample"]
        assert (name, version) == ("tile-sample", "1.2.3")
        assert (status, reason in " ".join(said.split())) == ("broken", True), said
        assert "reinstall" in remedy
        assert "tile-sample" in remedy
    *packages, healthy = json.loads(site.python("-c", TRIED))
    assert healthy[:2] == ["backend toyc", "OK"]
    assert [status for _, status, _, _ in packages] == ["note"] * bool(package)
    assert all(package in detail and "sample-1.2.3.dist-info: " in detail for _, _, detail, _ in packages), packages


def test_a_version_that_was_replaced_leaves_no_second_offer(site):
    """pip renames a folder before it removes it; the version that counts is that of the other one."""
    site.install("sample")
    old = site.folder / "~ile_sample-0.0.1.dist-info"
    shutil.copytree(site.folder / "tile_sample-1.2.3.dist-info", old)
    (old / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tile-sample\nVersion: 0.0.1\nRequires-Dist: tile-core<0\n"
    )
    out = site.run('print([(i.version, i.status) for i in p.targets(load=True) if i.name == "sample"])')
    assert out == "[('1.2.3', 'ok')]\n"


def test_the_first_folder_of_the_path_hides_the_second(site, tmp_path):
    from plugin_site import Site

    second = Site(tmp_path / "later").install("sample")
    info = second.folder / "tile_sample-1.2.3.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tile-sample\nVersion: 9\n")
    path = site.install("sample").environment()["PYTHONPATH"]
    out = site.run(
        'print([i.version for i in p.targets() if i.name == "sample"])', PYTHONPATH=f"{path}:{second.folder}"
    )
    assert out == "['1.2.3']\n"
