"""Choice of the C++ compiler: CXX, one on PATH, or the ziglang wheel's."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tile_core.records import dataclass
from tile_emulator.errors import CompilerRefused, HostUnsupported, NoCompiler
from tile_emulator.sound import flags_for

OLDEST = {"gcc": 12, "clang": 15}
ON_PATH = ("c++", "clang++", "g++")


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler.

    Attributes
    ----------
    command
        How it is called, without options.
    family
        ``"gcc"`` or ``"clang"``.
    version
        Its own version.
    is_zig
        Whether it is zig, as a program or as the ziglang wheel. Its first link against the C++ runtime library would
        build that library, so it links as C.
    repairs
        Flags without which it miscompiles kernels, see ``sound.py``.
    """

    command: tuple[str, ...]
    family: str
    version: str
    is_zig: bool = False
    repairs: tuple[str, ...] = ()

    @property
    def link_command(self) -> tuple[str, ...]:
        """The command that links a shared library, with zig without the C++ runtime library."""
        return (*self.command[:-1], "cc", "-shared", "-nostdlib") if self.is_zig else (*self.command, "-shared")

    @property
    def kernel_libraries(self) -> tuple[str, ...]:
        """Return the linker options of a kernel: only the libraries that it can need."""
        return ("-nostdlib", "-lm", "-lgcc") if self.family == "gcc" else ()

    @property
    def own_flags(self) -> tuple[str, ...]:
        """Return flags for this compiler only: zig enables checks that end the process."""
        return ("-fno-sanitize=undefined",) if self.is_zig else ()

    @property
    def identity(self) -> str:
        """String that changes whenever the generated code could change."""
        return f"{' '.join(self.command)} {self.family} {self.version} {platform.machine()}"

    def __str__(self) -> str:
        return f"{' '.join(self.command)} ({self.family} {self.version})"


def find_compiler() -> Compiler:
    """Find the compiler.

    Raises
    ------
    HostUnsupported
        The engine does not run on this system.
    CompilerRefused
        CXX names one that does not work, is too old or miscompiles kernels.
    NoCompiler
        There is none, or none that is new enough and right.
    """
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "aarch64"):
        raise HostUnsupported(found=f"{system} on {machine}")
    return _find(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find(named: str, path: str) -> Compiler:
    if named.strip():
        words = tuple(shlex.split(named))
        found = _ask(words, shutil.which(words[0], path=path))
        if isinstance(found, str):
            raise CompilerRefused(found=named, reason=found)
        return found
    reasons = []
    for name in ON_PATH:
        executable = shutil.which(name, path=path)
        if executable is None:
            continue
        found = _ask((executable,), executable)
        if isinstance(found, Compiler):
            return found
        reasons.append(f"{name}: {found}")
    if importlib.util.find_spec("ziglang") is not None:
        words = (sys.executable, "-m", "ziglang", "c++")
        found = _ask(words, words[0])
        if isinstance(found, Compiler):
            return found
        reasons.append(f"ziglang: {found}")
    raise NoCompiler(found="; ".join(reasons) or "none is on PATH, and ziglang is not installed")


def _ask(command: tuple[str, ...], executable: str | None) -> Compiler | str:
    """The compiler behind a command, or why it cannot be used."""
    if executable is None or not Path(executable).exists():
        return "there is no such program"
    options = ("-dM", "-E", "-x", "c++", os.devnull)
    try:
        done = subprocess.run(
            [*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    macros = dict(re.findall(r"^#define (__\w+__) (\d+)$", done.stdout, re.MULTILINE))
    family, keys = ("clang", "clang") if "__clang_major__" in macros else ("gcc", "GNUC")
    if family == "clang":
        numbers = [macros.get(f"__{keys}_{part}__", "0") for part in ("major", "minor", "patchlevel")]
    else:
        numbers = [macros.get(key, "0") for key in ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")]
    if done.returncode or numbers[0] == "0":
        return "it is not a supported C++ compiler"
    if int(numbers[0]) < OLDEST[family]:
        return f"{family} {numbers[0]} is too old, {OLDEST[family]} is the oldest that works"
    is_zig = command[-1] == "c++" and any("zig" in Path(word).name for word in command[:-1])
    found = Compiler(command, family, ".".join(numbers), is_zig)
    verdict = flags_for((*command, *found.own_flags), found.link_command, found.identity, family)
    return f"it miscompiles {verdict}" if isinstance(verdict, str) else replace(found, repairs=verdict)
