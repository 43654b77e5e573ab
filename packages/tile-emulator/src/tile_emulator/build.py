"""Build shared libraries: the engine once per machine, a kernel once per source."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.emit.dialect import Dialect
from tile_core.errors.artefacts import NoScratchFolder
from tile_core.runtime import cache
from tile_core.runtime.libraries import stored
from tile_emulator.calls import called
from tile_emulator.compilers import Compiler
from tile_emulator.errors import CompilerSlow, EngineFailed, NotModelled
from tile_emulator.flags import CHECK_FLAGS, CLANG_CHECK_FLAGS, ENGINE_FLAGS, FLAGS, KERNEL_FLAGS
from tile_emulator.registers import with_undefined
from tile_runtime import knobs

ENGINE = Path(__file__).parent / "engine"
KIND = "emulator"  # the folder in the cache
FULL = os.strerror(errno.ENOSPC)
TEXT = "tile-kernel"  # what compilers take for the file of the text
CALL = "tile-call"
PRIVATE = "simt_kernel_"  # begins the name that a kernel has in its library

#: What GCC has kept of models, by the folder of the cache and the key.
_read: dict[tuple[Path, str], Path] = {}
# Strings, comments, and attributes, which name no function.
_OPAQUE = re.compile(
    r'("(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\[\[[^\]]*\]\]|__attribute__\s*\(\([^;{]*?\)\))', re.DOTALL
)


def engine(compiler: Compiler) -> AbstractContextManager[tuple[Path, bool]]:
    """Give the engine's library.

    Raises
    ------
    EngineFailed
        The compiler does not compile it.
    """

    def make(path: Path) -> None:
        reason = _compile(compiler, ENGINE / "engine.cpp", path, (*FLAGS, *ENGINE_FLAGS))
        if reason is not None:
            raise EngineFailed(compiler=compiler, reason=_first_error(reason)[1])

    return stored(KIND, _key_of("engine", compiler.identity, _engine_source(), *FLAGS, *ENGINE_FLAGS), make)


def kernel(
    compiler: Compiler, text: str, facts: LaunchFacts, dialect: Dialect, checked: bool
) -> AbstractContextManager[tuple[Path, bool]]:
    """Give the library of a kernel.

    Parameters
    ----------
    checked
        Whether every access is checked, or only page faults are noticed.

    Raises
    ------
    NotModelled, TextRefused
        The source uses something that the dialect has no model for, or that the device's compiler refuses.
    NoScratchFolder
        There is no folder to compile in.
    """
    given = text
    text, private = renamed(text, facts)
    source, libraries = _source(text, private, dialect), compiler.kernel_libraries
    flags = (*FLAGS, *KERNEL_FLAGS, *compiler.repairs, *dialect.flags)
    if checked:
        flags += CHECK_FLAGS + (CLANG_CHECK_FLAGS if compiler.family == "clang" else ())
    models = Models(compiler, dialect.headers, flags)
    key = _key_of("kernel", *models.facts, source, *libraries)

    def make(path: Path) -> None:
        dialect.check(given, facts)
        written = path.with_suffix(".cpp")
        written.write_text(source, encoding="utf-8")
        reason = _compile(compiler, written, path, models.included(path.parent), libraries)
        if reason is not None:
            line, message = _first_error(reason)
            message = message.replace(private.entry, facts.entry)
            where = facts.line_map.where(line) or facts.where
            raise NotModelled(kernel=facts.kernel, dialect=dialect.name, line=line, reason=message, where=where)

    return stored(KIND, key, make)


class Models:
    """Precompiled headers of the engine and of a dialect, included by each kernel.

    They take a quarter of the time of a small one, so GCC keeps what it has read. Where that is gone or does not fit,
    it reads the headers themselves. Clang would refuse a kernel then.

    Parameters
    ----------
    compiler, flags
        How kernels are compiled.
    headers
        Those of the dialect.
    """

    def __init__(self, compiler: Compiler, headers: Sequence[Path], flags: Sequence[str]) -> None:
        self.compiler = compiler
        folders = sorted({header.parent for header in headers})
        self.flags = (*flags, *(f"-I{folder}" for folder in (ENGINE, *folders)))
        self.text = "".join(f'#include "{name}"\n' for name in ("simt.h", *(header.name for header in headers)))
        contents = (content for folder in folders for content in _contents(folder))
        self.facts: tuple[str | bytes, ...] = (compiler.identity, _engine_source(), self.text, *flags, *contents)

    def included(self, folder: Path) -> tuple[str, ...]:
        """Return the compiler options that include them, with a file in a folder."""
        header = folder / "models.h"
        header.write_text(self.text, encoding="utf-8")
        if self.compiler.family == "gcc" and cache.enabled():
            key = (cache.root(), _key_of("models", *self.facts))
            if key not in _read:
                with contextlib.suppress(NoScratchFolder), stored(KIND, key[1], self.make) as (path, _):
                    _read[key] = path
            # Not every file system has links, or space left for what GCC keeps.
            with contextlib.suppress(OSError):
                if key in _read:
                    header.with_name(header.name + ".gch").symlink_to(_read[key])
        return (*self.flags, "-include", str(header))

    def make(self, path: Path) -> None:
        """Write GCC's precompiled header, or an empty file on errors, which each kernel repeats."""
        header = path.with_suffix(".h")
        header.write_text(self.text, encoding="utf-8")
        command = [*self.compiler.command, *self.flags, "-x", "c++-header", str(header), "-o", str(path)]
        done = _called(self.compiler, command, path.parent)
        if done.returncode:
            path.write_bytes(b"")


def renamed(text: str, facts: LaunchFacts) -> tuple[str, LaunchFacts]:
    """Give a kernel a unique name on the host; line numbers stay the same.

    A function ``read`` or ``pipe`` of a device is unrelated to the host's C library, but in a shared library the C
    library's would be called instead, and a compiler recognizes some names (``memset``, ``exit``) without any
    declaration.

    Parameters
    ----------
    text
        The text as emitted.
    facts
        Its facts; ``entry`` names the kernel in the text.

    Returns
    -------
    tuple of str and LaunchFacts
        The text and the facts, with a name that the text does not contain; as they are if the text calls no such
        function and defines none.
    """
    name = PRIVATE + facts.entry
    while name in text:
        name = PRIVATE + name
    # A member, or a qualified name, with the same name is another function.
    own = re.compile(rf"(?<![.\w])(?<!->)(?<!::){re.escape(facts.entry)}(?=\s*\()")
    segments = _OPAQUE.split(text)
    segments[::2] = [own.sub(name, piece) for piece in segments[::2]]
    new = "".join(segments)
    return (new, dataclasses.replace(facts, entry=name)) if new != text else (text, facts)


def _source(text: str, facts: LaunchFacts, dialect: Dialect) -> str:
    prepared, _ = with_undefined(dialect.prepare(text), facts.entry)
    return (
        f'#line 1 "{TEXT}"\n{prepared}\n#line 1 "{CALL}"\n'
        f'extern "C" SIMT_MODEL void simt_entry(void** args) {{ {dialect.call(facts)} }}\n'
        'extern "C" __attribute__((weak, visibility("hidden"))) unsigned char '
        "__start_simt_shared[], __stop_simt_shared[];\n"
        'extern "C" unsigned char* simt_static_low() { return __start_simt_shared; }\n'
        'extern "C" unsigned char* simt_static_high() { return __stop_simt_shared; }\n'
    )


def _key_of(*parts: str | bytes) -> str:
    """Hash of all that determines a library."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()[:40]


def _compile(
    compiler: Compiler, source: Path, target: Path, flags: Iterable[str], libraries: Iterable[str] = ()
) -> str | None:
    """Compile and link; return the compiler's output if it failed."""
    made = target.with_suffix(".o")
    compiling = [*compiler.command, *compiler.own_flags, *flags, "-c", str(source), "-o", str(made)]
    # Linked without the sanitizers' libraries: their functions are the engine's.
    linking = [*compiler.link_command, "-o", str(target), str(made), *libraries]
    for command in (compiling, linking):
        done = _called(compiler, command, target.parent)
        if done.returncode:
            return done.stderr or f"exit status {done.returncode}"
    return None if target.exists() else "it ends as if all were well, and has written nothing"


def _called(compiler: Compiler, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler, which writes to a folder, with the processes that it starts.

    Raises
    ------
    CompilerSlow
        It does not end in time.
    NoScratchFolder
        The folder's disk is full.
    """
    seconds = knobs.current().build_seconds
    try:
        done = called(command, seconds, {**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise CompilerSlow(compiler=compiler, seconds=seconds) from None
    if done.returncode and (FULL in done.stderr or not shutil.disk_usage(folder).free):
        raise NoScratchFolder(reason=f"{folder}: {FULL}")
    return done


def _first_error(output: str) -> tuple[int, str]:
    """Line of the text (0: not in the text) and message of the first error."""
    found = re.search(rf"^{TEXT}:(\d+):.*?error: (.*)$", output, re.MULTILINE)
    if found is not None:
        return int(found[1]), found[2]
    general = re.search(r"error: (.*)$", output, re.MULTILINE)
    # An error in a header names the text further down: "required from here".
    caller = re.search(rf"\b{TEXT}:(\d+)", output)
    return int(caller[1]) if caller else 0, general[1] if general else output.strip()[:500]


@functools.cache
def _engine_source() -> bytes:
    return b"".join(_contents(ENGINE))


def _contents(folder: Path) -> list[bytes]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path.name.encode() + b"\0" + path.read_bytes() for path in files]
