"""Test foreign artefacts: every unexpected value is a typed error at loading."""

import copy
import dataclasses
import io
import json
import os
import time
import zipfile

import numpy as np
import pytest

import tile_core as tile
from tile_core.errors import TileError
from tile_core.errors.artefacts import ArtefactError, CannotReadArtefact, DamagedArtefact, MissingBackend
from tile_core.errors.base import printable
from tile_runtime.files import artefact as artefacts


@pytest.fixture
def file(toy, scaled, tmp_path):
    return tile.compile(scaled(), "toy:old", out_idx=-1).export(tmp_path / "scale.tile")


def rewritten(file, facts=lambda f: f, more=(), members=lambda m: m):
    """Change an artefact and give it the checksum of what it holds now."""
    with zipfile.ZipFile(file) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    found["tile.json"] = json.dumps(facts(json.loads(found["tile.json"]))).encode()
    found = members({**found, **dict(more)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in found.items():
            archive.writestr(name, content)
        archive.comment = artefacts._digest(found)
    file.write_bytes(out.getvalue())
    return file


def paths(value, path=()):
    """All paths in a value of lists and dicts."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def code_of(call):
    """The code of what a call refuses; none if it does not."""
    try:
        call()
    except TileError as error:
        return error.code
    return None


HOSTILE = (None, True, -1, 1 << 70, 1.5, "", "../x", "a b", "\x1b[31m", "--index-url=x", [], [[]], {}, {"a": []})


@pytest.mark.sweep(1)
def test_replaced_facts_are_errors_at_load_or_do_no_harm(file):
    good = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        facts = json.loads(archive.read("tile.json"))
    chance = np.random.default_rng(3)
    x = np.arange(8, dtype="float32")
    # Attributes are what only the backend understands; a toy believes them.
    every = [(path, value) for path in paths(facts) if "attributes" not in path for value in HOSTILE]
    refused = 0
    for at in chance.permutation(len(every))[:700]:
        path, value = every[at]

        def replace(facts, path=path, value=value):
            facts = copy.deepcopy(facts)
            inner = facts
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            return facts

        file.write_bytes(good)
        found = code_of(lambda: tile.load(rewritten(file, replace))(x))
        assert found != "I000", (path, value)
        refused += found is not None
    assert refused > 400


def test_a_package_that_is_no_name_is_never_printed(file):
    with pytest.raises(DamagedArtefact) as info:
        tile.load(rewritten(file, lambda f: {**f, "backend": "none", "package": "x --flag other\x1b[2J"}))
    assert "\x1b" not in str(info.value)
    with pytest.raises(MissingBackend, match="install tile-none"):
        tile.load(rewritten(file, lambda f: {**f, "backend": "none", "package": "tile-none"}))


@pytest.mark.parametrize("name", ["more.txt", "../x", "kernel.sh", "general0.txt", "general100.txt", "kernel.txt/"])
def test_other_members_are_refused(file, name):
    with pytest.raises(DamagedArtefact, match="which no exported kernel does"):
        tile.load(rewritten(file, more={name: b"x"}))


@pytest.mark.sweep(1)
def test_what_inflates_is_not_inflated(file):
    rewritten(file, more={"kernel.bin": bytes(artefacts.LIMIT + 1)})
    assert file.stat().st_size < 1 << 20
    begin = time.process_time()
    with pytest.raises(DamagedArtefact, match="more than 256 MiB"):
        tile.load(file)
    assert time.process_time() - begin < 60


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CannotReadArtefact, match="it is not a file"):
        tile.load(tmp_path / "pipe")
    with pytest.raises(CannotReadArtefact):
        tile.load(tmp_path)


def test_hidden_symbols_of_nothing(file):
    with pytest.raises(ArtefactError, match="which is not a symbol"):
        tile.load(rewritten(file, lambda f: {**f, "hidden": ["other"]}))


def test_messages_show_control_characters():
    @dataclasses.dataclass
    class Text:
        text: str

    class Shown(TileError):
        template = "{what}: {object.text}"
        remedy = "{what}"

    error = Shown(what="a\x1b[2Jb\x07\x9b", object=Text("line\nnext\ttab é 漢"))
    assert str(error) == "[T000] a\\x1b[2Jb\\x07\\x9b: line\nnext\ttab é 漢\n   = help: a\\x1b[2Jb\\x07\\x9b"
    assert error.args[0] == error.message
    assert printable("plain") == "plain"
