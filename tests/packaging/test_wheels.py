"""Published files: complete sdists that rebuild the wheels, with metadata an index accepts."""

from __future__ import annotations

import email
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from distribution import CORE, Built, folders, project_of
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from repository import ROOT, files

pytestmark = pytest.mark.registry
PACKAGES = sorted(folders())


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest, built: dict[str, Built]) -> Built:
    return built[request.param]


@pytest.fixture
def metadata(package: Built) -> Metadata:
    return Metadata.from_email(_in_wheel(package.wheel, "METADATA"), validate=True)


def _in_wheel(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if re.fullmatch(rf"[^/]+\.dist-info/{re.escape(name)}", n))
        return archive.read(path)


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_made_from_the_sdist_is_the_wheel_made_from_the_folder(package: Built) -> None:
    from_sdist, direct = _contents(package.wheel), _contents(package.direct)
    assert from_sdist.keys() == direct.keys()
    assert [name for name, data in from_sdist.items() if data != direct[name]] == []


def test_the_wheel_has_every_file_of_the_package_and_no_other(package: Built) -> None:
    folder = folders()[package.name]
    sources = {path.relative_to(folder / "src").as_posix() for path in files(ROOT) if (folder / "src") in path.parents}
    found = {name for name in _contents(package.wheel) if ".dist-info/" not in name}
    assert found == sources
    assert f"{package.name.replace('-', '_')}/py.typed" in found


def test_the_sdist_has_what_building_needs_and_no_more(package: Built) -> None:
    stem = package.sdist.name.removesuffix(".tar.gz")
    with tarfile.open(package.sdist) as archive:
        names = {name.removeprefix(f"{stem}/") for name in archive.getnames()}
    top = {name.partition("/")[0] for name in names}
    assert top == {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_license_is_there_in_full(package: Built) -> None:
    with zipfile.ZipFile(package.wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        assert archive.read(path) == (ROOT / "LICENSE").read_bytes()


def test_metadata_is_valid_and_complete(metadata: Metadata) -> None:
    assert metadata.summary
    assert len(metadata.summary) <= 120
    assert str(metadata.license_expression) == "Apache-2.0"
    assert metadata.license_files == ["LICENSE"]
    assert metadata.requires_python == SpecifierSet(">=3.10")
    assert metadata.keywords
    classifiers = set(metadata.classifiers or ())
    assert {"Typing :: Typed", "Development Status :: 3 - Alpha"} <= classifiers
    assert any(c.startswith("Topic :: Software Development :: ") for c in classifiers)
    versions = {
        c.rpartition(" ")[2] for c in classifiers if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", c)
    }
    older = set() if metadata.name == "tile-jax" else {"3.10"}  # which JAX does not support
    assert versions == {*older, "3.11", "3.12", "3.13"}
    assert not [c for c in classifiers if c.startswith("License ::")]  # the license expression replaces them


def test_the_long_description_is_the_readme_and_reads_well_on_an_index(package: Built, metadata: Metadata) -> None:
    assert metadata.description_content_type == "text/markdown"
    text = (folders()[package.name] / "README.md").read_text(encoding="utf-8")
    assert (metadata.description or "").strip() == text.strip()
    assert text.startswith(f"# {package.name}\n")
    # An index shows the page alone: what it links to relatively is not there.
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", text) == []
    assert "not on a package index yet" in text
    assert f"packages/{package.name}" in text


def test_no_address_is_given_that_is_not_public(metadata: Metadata) -> None:
    assert not metadata.project_urls
    assert not metadata.home_page


def test_the_core_and_its_plugins_accept_each_other_within_one_minor_version(metadata: Metadata, built) -> None:
    core = built[CORE].version
    assert str(metadata.version) == core, "packages of one release have one version"
    if metadata.name == "tile-runtime":  # which the core requires
        return
    needed = "tile-runtime" if metadata.name in (CORE, "tile-cuda-runtime") else CORE
    (on_core,) = (r for r in metadata.requires_dist or () if r.name == needed)
    major, minor, patch = map(int, core.split("."))
    assert on_core.specifier.contains(core)
    assert on_core.specifier.contains(f"{major}.{minor}.{patch + 1}")
    assert not on_core.specifier.contains(f"{major}.{minor + 1}.0")
    assert not on_core.specifier.contains(f"{major}.{minor - 1}.9")


def test_no_requirement_is_open_above(metadata: Metadata) -> None:
    """Except those that come with what we do not choose: a Mac's library of arrays."""
    for requirement in metadata.requires_dist or ():
        bounded = any(s.operator in ("<", "==", "~=") for s in requirement.specifier)
        assert bounded or requirement.name == "mlx", requirement


def test_extras_are_those_that_are_documented(metadata: Metadata) -> None:
    extras = set(metadata.provides_extra or ())
    documented = {
        CORE: {"dask", "plot", "testing"},
        "tile-emulator": {"zig"},
        "tile-cuda": {"nvidia"},
        "tile-cuda-runtime": {"launch"},
        "tile-runtime": {"floats"},
    }
    assert extras == documented.get(metadata.name, set())
    for requirement in metadata.requires_dist or ():
        named = re.findall(r"extra == [\"']([\w-]+)[\"']", str(requirement.marker or ""))
        assert set(named) <= extras


def test_each_library_is_a_requirement_of_its_package_only(metadata: Metadata) -> None:
    names = {Requirement(str(r)).name for r in metadata.requires_dist or ()}
    own = {"tile-jax": {"jax"}, "tile-torch": {"torch"}}.get(metadata.name, set())
    assert names & {"torch", "triton", "cupy", "jax"} == own


def test_entry_points_name_modules_of_the_package(package: Built) -> None:
    declared = project_of(folders()[package.name])
    groups = {**declared.get("entry-points", {}), "console_scripts": declared.get("scripts", {})}
    names = set(_contents(package.wheel))
    plugs_in = bool(groups.keys() & {"tile.backends", "tile.runtimes", "tile.loaders"})
    # Operators of libraries are no plugins.
    apart = ("tile-jax", "tile-torch")
    assert plugs_in == (package.name not in apart)
    for group, entries in groups.items():
        for name, value in entries.items():
            module = value.partition(":")[0].replace(".", "/")
            assert {f"{module}.py", f"{module}/__init__.py"} & names, (group, name, value)


def test_the_running_core_states_the_version_of_its_distribution(built: dict[str, Built]) -> None:
    import tile_core

    assert tile_core.__version__ == built[CORE].version


def test_every_version_is_in_the_changelog(package: Built) -> None:
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(package.version)}\]", page, re.MULTILINE)


def test_metadata_is_what_an_old_reader_of_headers_sees(package: Built) -> None:
    parsed = email.message_from_bytes(_in_wheel(package.wheel, "METADATA"))
    assert parsed["Name"] == package.name
    assert parsed["Version"] == package.version
    wheel = email.message_from_bytes(_in_wheel(package.wheel, "WHEEL"))
    assert wheel["Tag"] == "py3-none-any"
    assert wheel["Root-Is-Purelib"] == "true"
