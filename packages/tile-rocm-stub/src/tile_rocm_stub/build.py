"""Compile source to machine code by clang, without AMD's headers, libraries or driver.

``clang`` with the target AMDGPU compiles a text, and ``lld`` links it to a code object for ``hipModuleLoadData``.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tile_core.abi.kernel_text import KernelText
from tile_core.errors.base import InternalError
from tile_core.records import dataclass
from tile_rocm_stub.errors import NoCompiler

VARIABLE = "HIP_CLANG"
"""Names the compiler in the environment; otherwise it is one of `NAMES` on PATH."""
NAMES = ("clang", *(f"clang-{version}" for version in range(25, 17, -1)))
#: A loop that is too large for its unroll pragma stays a loop, and is not an error: clang would take minutes.
#: Comparisons that are always true or false are the kernel's own.
_FLAGS = (
    "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-O3", "-Werror",
    "-Wno-tautological-compare", "-Wno-pass-failed", "-mllvm", "-pragma-unroll-threshold=2048",
)  # fmt: skip
#: Begins the functions of AMD's library, which texts with functions of float64 call.
_LIBRARY = "__ocml_"
_REMARK = re.compile(r"remark: +([\w \[\]/]+?): (\d+) \[-Rpass-analysis")
#: The compiler's facts about a thread, and their names in reports.
_FACTS = {"VGPRs": "registers", "ScratchSize [bytes/lane]": "spill_bytes", "Occupancy [waves/SIMD]": "waves_per_simd"}


@dataclass(frozen=True)
class CodeObject:
    """Machine code of one text.

    Attributes
    ----------
    data
        The code object: an ELF file.
    facts
        Of a thread: ``registers`` (VGPRs) and ``spill_bytes``; and how many wavefronts fit a SIMD unit.
    """

    data: bytes
    facts: dict[str, int]


@functools.lru_cache(maxsize=16)
def find(arch: str, named: str, path: str) -> str:
    """Return the command of a clang that compiles for an architecture.

    Arguments are those of the environment.

    Raises
    ------
    NoCompiler
        There is none.
    """
    reasons = []
    for name in (named,) if named else NAMES:
        command = shutil.which(name, path=path)
        if command is None:
            continue
        reason = _unfit(command, arch)
        if not reason:
            return command
        reasons.append(f"{name} {reason}")
    raise NoCompiler(arch=arch, reason="; ".join(reasons) or f"there is no {named or 'clang on PATH'}")


def clang(arch: str) -> str:
    """Return the command of a clang that compiles for an architecture, see `find`."""
    return find(arch, os.environ.get(VARIABLE, ""), os.environ.get("PATH", ""))


def toolchain(arch: str) -> str:
    """Return the version of the compiler.

    Raises
    ------
    NoCompiler
        There is none.
    """
    return _version(clang(arch))


def code_object(text: KernelText, arch: str) -> CodeObject:
    """Compile and link a text.

    Raises
    ------
    NoCompiler
        There is no compiler.
    InternalError
        It refuses the text.
    """
    with tempfile.TemporaryDirectory(prefix="tile-rocm-") as folder:
        made = Path(folder, "kernel.hsaco")
        linked = () if _LIBRARY in text.text else ("-nogpulib",)
        process = _run(text.text, arch, *linked, "-c", "-Rpass-analysis=kernel-resource-usage", "-o", str(made))
        found = {name: int(value) for name, value in _REMARK.findall(process.stderr)}
        return CodeObject(made.read_bytes(), {name: found[said] for said, name in _FACTS.items() if said in found})


def assembly(text: str, arch: str) -> str:
    """Return the instructions of a text, with the same errors."""
    return _run(text, arch, "-nogpulib", "-S", "-o", "-").stdout


def _run(text: str, arch: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [clang(arch), *_FLAGS, f"--offload-arch={arch}", *options, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode and "ROCm device library" in done.stderr:
        raise NoCompiler(arch=arch, reason=f"{command[0]} has no device library of ROCm, for functions of float64")
    if done.returncode:
        raise InternalError(stage="compiling HIP text", detail=done.stderr.strip()[:2000])
    return done


def _unfit(command: str, arch: str) -> str:
    """Return why a compiler cannot be used; empty if it can."""
    syntax = [command, *_FLAGS, "-nogpulib", f"--offload-arch={arch}", "-fsyntax-only", "-"]
    try:
        done = subprocess.run(syntax, input="", capture_output=True, text=True, check=False, timeout=60)
        linker = subprocess.run(
            [command, "--print-prog-name=lld"], capture_output=True, text=True, check=False, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        return f"does not compile for {arch}: {done.stderr.strip().splitlines()[0][:200]}"
    return "" if shutil.which(linker) else "has no lld beside it"


@functools.cache
def _version(command: str) -> str:
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
