"""The file of a compiled kernel, of ``kernel.export``, ``tile.load`` and the disk cache.

The file is a ZIP archive, so that anyone can inspect it:

===============  ====================================================================================
``tile.json``    the facts: format, versions, target, signature, how to launch each text
``kernel.txt``   the text
``kernel.bin``   the text as built by a runtime, if it was
``general1.*``   the same for its general form, that form's general form (``general2.*``), and so on
===============  ====================================================================================

Its comment is a hash of all members. There is no pickle in it, and reading it imports neither the compiler nor a
backend. The same content always gives the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from tile_runtime import __version__
from tile_runtime.abi.adapter import Built
from tile_runtime.abi.kernel_text import KernelText, LaunchFacts, LineMap
from tile_runtime.abi.signature import Signature
from tile_runtime.errors.artefacts import DamagedArtefact, NewerArtefact, NotAnArtefact
from tile_runtime.errors.base import TileError, Where
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.files import schema
from tile_runtime.records import dataclass

FORMAT = 3
"""Incremented when older versions of the package could misread files of this one; one launch is of the one before."""

KIND = "tile kernel"
FACTS = "tile.json"
LIMIT = 256 << 20
"""Limit on the total size of a file's members, in bytes."""

_MEMBER = re.compile(r"tile\.json|(kernel|general[1-9][0-9]?)\.(txt|bin)|launch[1-9][0-9]{0,3}\.tile")
_MAGIC = b"PK\x03\x04"
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Artefact:
    """The contents of the file.

    Attributes
    ----------
    signature
        How the kernel is called.
    target, backend
        The target's text, and the name of the backend that owns it.
    text
        The text and its launch facts, with its built form.
    package
        The distribution that provides the backend; empty if it is not known.
    hidden
        Symbols that a launch takes after the parameters.
    has_general
        Whether the text has a general form, which need not be in the file.
    versions
        Versions of the distributions that it was made with.
    key
        Key in the cache; empty for an exported file.
    launches
        Where a call launches several texts: an artefact of each, called with the parameters of that name. ``text`` is
        that of the first.
    """

    signature: Signature
    target: str
    backend: str
    text: KernelText
    package: str = ""
    hidden: tuple[str, ...] = ()
    has_general: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    launches: tuple[Artefact, ...] = ()


def to_bytes(artefact: Artefact, general: Sequence[KernelText] = (), launches: Sequence[bytes] = ()) -> bytes:
    """Return the file's content.

    Parameters
    ----------
    artefact
        What to write, except for ``text.general``.
    general
        The general forms to store, each one that of the previous.
    launches
        The contents of the files of the launches, if there are several; then the text is in those.
    """
    members: dict[str, bytes] = {f"launch{n}.tile": content for n, content in enumerate(launches, 1)}
    texts = () if launches else (artefact.text, *general)
    parts = [_part(name, text, members) for name, text in zip(_names(), texts, strict=False)]
    facts = {
        "kind": KIND,
        "format": FORMAT if launches else FORMAT - 1,
        "tile-core": __version__,
        "versions": dict(artefact.versions),
        "target": artefact.target,
        "backend": artefact.backend,
        "package": artefact.package,
        "signature": artefact.signature.to_json(),
        "hidden": list(artefact.hidden),
        "has_general": artefact.has_general or bool(general),
        "key": artefact.key,
        "parts": parts,
        **({"launches": len(launches)} if launches else {}),
    }
    members = {FACTS: json.dumps(facts).encode(), **members}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(_entry(name), content)
        archive.comment = _digest(members)
    return out.getvalue()


def from_bytes(content: bytes, file: object) -> Artefact:
    """Read what `to_bytes` wrote.

    Parameters
    ----------
    content
        The file's content.
    file
        Its name, for messages.

    Raises
    ------
    NotAnArtefact, NewerArtefact, DamagedArtefact
        It is something else, of a later version, or was altered after writing.
    """
    with _damage(file):
        members, comment = _members(content, file)
        facts = json.loads(members[FACTS])
    if not isinstance(facts, dict) or facts.get("kind") != KIND or not isinstance(facts.get("format"), int):
        raise NotAnArtefact(file=file, reason=f"its {FACTS} does not describe one")
    if facts["format"] > FORMAT:
        version = str(facts.get("tile-core", "of a later version"))
        raise NewerArtefact(file=file, found=facts["format"], expected=FORMAT, version=version)
    if comment != _digest(members):
        raise DamagedArtefact(file=file, reason="its content does not fit its checksum")
    with _damage(file):
        schema.check(facts)
        return _read(facts, members)


def moved(text: KernelText, relocate: Callable[[Where], Where]) -> KernelText:
    """Return a text with relocated source lines, of a file that has moved or changed."""

    def move(where: Where | None) -> Where | None:
        return None if where is None else relocate(where)

    lines = tuple((line, move(where)) for line, where in text.facts.line_map.lines)
    facts = dataclasses.replace(text.facts, line_map=LineMap(lines), where=move(text.facts.where))
    return dataclasses.replace(text, facts=facts)


def _part(name: str, text: KernelText, members: dict[str, bytes]) -> dict[str, object]:
    members[f"{name}.txt"] = text.text.encode()
    built = text.built
    if built is not None:
        members[f"{name}.bin"] = built.data
    made = None if built is None else {
        "runtime": built.runtime, "kind": built.kind, "arch": built.arch, "facts": dict(built.facts),
    }  # fmt: skip
    return {"facts": text.facts.to_json(), "built": made}


def _read(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> Artefact:
    launches = tuple(from_bytes(members[f"launch{n}.tile"], n) for n in range(1, facts.get("launches", 0) + 1))
    text: KernelText | None = launches[0].text if launches else None
    for name, part in reversed(list(zip(_names(), facts["parts"], strict=False))):
        text = _text(name, part, members, text)
    if text is None:
        raise ValueError("there is no text in it")
    return Artefact(
        signature=Signature.from_json(facts["signature"]),
        target=facts["target"],
        backend=facts["backend"],
        text=text,
        package=facts["package"],
        hidden=tuple(facts["hidden"]),
        has_general=facts["has_general"],
        versions=facts["versions"],
        key=facts["key"],
        launches=launches,
    )


def _text(name: str, part: Mapping[str, Any], members: Mapping[str, bytes], general: KernelText | None) -> KernelText:
    made, built = part["built"], None
    if made is not None:
        built = Built(made["runtime"], made["kind"], members[f"{name}.bin"], made["arch"], made["facts"])
    text, facts = members[f"{name}.txt"].decode(), LaunchFacts.from_json(part["facts"])
    return KernelText(text, facts, None if general is None else lambda: general, built)


def _names() -> Iterator[str]:
    """The names of texts in a file, in their order."""
    yield "kernel"
    for number in itertools.count(1):
        yield f"general{number}"


def _members(content: bytes, file: object) -> tuple[dict[str, bytes], bytes]:
    named = FACTS.encode()
    if content[: len(_MAGIC)] != _MAGIC or content[30 : 30 + len(named)] != named:
        raise NotAnArtefact(file=file, reason=f"it does not begin as a ZIP archive with {FACTS} does")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found: dict[str, bytes] = {}
        left = LIMIT
        for name in archive.namelist():
            if _MEMBER.fullmatch(name) is None or name in found:
                raise DamagedArtefact(file=file, reason=f"it holds {name[:60]!r}, which no exported kernel does")
            with archive.open(name) as member:
                found[name] = member.read(left + 1)  # independent of the size in its header
            left -= len(found[name])
            if left < 0:
                raise DamagedArtefact(file=file, reason=f"it holds more than {LIMIT >> 20} MiB")
        return found, archive.comment


def _entry(name: str) -> zipfile.ZipInfo:
    """Return the header of a member, the same on every system."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    return entry


def _digest(members: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256()
    for name, content in sorted(members.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return b"sha256:" + digest.hexdigest().encode()


@contextlib.contextmanager
def _damage(file: object) -> Iterator[None]:
    """Any error from reading other than the specific ones means that the content was altered."""
    try:
        yield
    except (NotAnArtefact, NewerArtefact, DamagedArtefact):
        raise
    except TileError as error:
        raise DamagedArtefact(file=file, reason=error.message) from error
    except Exception as error:
        passed_on(error)
        # zipfile alone raises a dozen types on damaged input: struct.error, zlib.error, NotImplementedError, ...
        raise DamagedArtefact(file=file, reason=f"{type(error).__name__}: {error}") from error
