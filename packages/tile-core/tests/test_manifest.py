"""The manifest checks itself; the fingerprint sees every edit."""

import dataclasses
import sys

import pytest

from tile_core.errors.plugins import InvalidManifest
from tile_core.manifest import API_VERSION, BackendManifest, fingerprint_of


@dataclasses.dataclass(frozen=True)
class Options:
    level: int = 2
    names: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Unfrozen:
    level: int = 2


@dataclasses.dataclass(frozen=True)
class WithoutDefault:
    level: int


GOOD = {"name": "sample", "api": ">=1,<2", "target_kinds": ("sample",), "fingerprint": "1", "options": Options}


def test_a_good_one():
    manifest = BackendManifest(**GOOD)
    assert not manifest.is_addon
    assert manifest.accepts_api()
    addon = BackendManifest(**{**GOOD, "name": "cpu.sample", "target_kinds": ()})
    assert addon.is_addon


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", "Sample", 'lower case letters, digits, "_" and "-"; an add-on is "kind.name"'),
        ("name", "a.b.c", 'lower case letters, digits, "_" and "-"; an add-on is "kind.name"'),
        ("api", "1", 'a range like ">=1,<2"'),
        ("api", ">=1.5.2", 'a range like ">=1,<2"'),
        ("api", None, 'a range like ">=1,<2"'),
        ("target_kinds", "sample", "a tuple of different target kinds"),
        ("target_kinds", ("a", "a"), "a tuple of different target kinds"),
        ("target_kinds", ("A",), "a tuple of different target kinds"),
        ("target_kinds", (), "at least one kind, or none for an add-on"),
        ("fingerprint", "", "a text, for example fingerprint_of(__package__)"),
        ("options", Options(), "None or a frozen dataclass with defaults only"),
        ("options", Unfrozen, "None or a frozen dataclass with defaults only"),
        ("options", WithoutDefault, "None or a frozen dataclass with defaults only"),
        ("options", dict, "None or a frozen dataclass with defaults only"),
    ],
)
def test_a_bad_field_is_named(field, value, expected):
    with pytest.raises(InvalidManifest) as caught:
        BackendManifest(**{**GOOD, field: value})
    name = value if field == "name" else "sample"
    assert str(caught.value) == (
        f"[S102] the manifest of backend {name!r} has {field}={value!r}; expected {expected}\n"
        "   = help: this is a defect of that backend, please report it to its authors"
    )


@pytest.mark.parametrize(
    ("api", "version", "accepted", "needs_newer"),
    [
        (">=1,<2", (1, 0), True, False),
        (">=1,<2", (1, 7), True, False),  # additions break no user
        (">=1,<2", (2, 0), False, False),
        (">=1.3,<2", (1, 3), True, False),
        (">=1.3,<2", (1, 2), False, True),
        (">=1.3,<2", (2, 0), False, False),
        (">=1.3,<1.5", (1, 4), True, False),
        (">=1.3,<1.5", (1, 5), False, False),
        ("==1", (1, 7), True, False),
        ("==1.2", (1, 7), False, False),
        ("<=1", (1, 7), True, False),
        (" >= 1 , != 2 ", (1, 0), True, False),
        (">1", (1, 7), False, True),
        (">=2,<3", (1, 0), False, True),
        ("!=1", (1, 0), False, False),
    ],
)
def test_api_ranges(api, version, accepted, needs_newer):
    manifest = BackendManifest(**{**GOOD, "api": api})
    assert manifest.accepts_api(version) is accepted
    assert manifest.needs_newer_api(version) is needs_newer


def test_the_api_of_this_core():
    assert API_VERSION == (1, 0)
    assert BackendManifest(**GOOD).accepts_api()


def test_fingerprint_sees_every_file_but_byte_code(tmp_path, monkeypatch):
    package = tmp_path / "fingerprinted"
    (package / "ops").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "ops" / "fill.py").write_text("x = 1")
    (package / "prelude.h").write_text("int x;")
    monkeypatch.syspath_prepend(tmp_path)

    def now():
        fingerprint_of.cache_clear()
        sys.modules.pop("fingerprinted", None)
        return fingerprint_of("fingerprinted.ops")

    first = now()
    assert first.startswith("fingerprinted source ")
    assert now() == first
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "fill.index").write_bytes(b"123")
    (package / "fill.pyc").write_bytes(b"123")
    assert now() == first
    seen = {first}
    for path, text in [("prelude.h", "int y;"), ("ops/fill.py", "x = 2"), ("ops/copy.py", ""), ("ops/kopy.py", "")]:
        (package / path).write_text(text)
        seen.add(now())
    assert len(seen) == 5
    fingerprint_of.cache_clear()
