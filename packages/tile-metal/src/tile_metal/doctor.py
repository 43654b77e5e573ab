"""The Metal section of ``tile doctor``: system, device, and libraries that launch kernels."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tile_core as tile
from tile_core.cli.checks import Check
from tile_core.cli.demo_kernel import matmul
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_metal import versions
from tile_metal.errors import NoLibrary
from tile_metal.runtime.libraries import FIND, LibraryUnusable
from tile_metal.runtime.machine import device_info
from tile_metal.runtime.mps import FAST_MATH
from tile_metal.target import KIND, RECORDS
from tile_metal.versions import Machine, Version

if TYPE_CHECKING:
    from tile_core.ir.program import Program

_COMPILE_SECONDS = 50.0


def checks() -> Iterator[Check]:
    """Yield the checks; the entry point of the group ``tile.checks``."""
    if sys.platform != "darwin":
        yield elsewhere()
        return
    yield system()
    found = [library(name) for name in FIND]
    if not any(check.status == "OK" for check in found):
        remedy = "pip install mlx, or a torch with the device mps"
        yield Check("metal: libraries", "missing", "none launches kernels here", remedy)
    yield from found
    yield from environment()


def device_checks() -> Iterator[Check]:
    """Yield the checks by Apple's compiler and on the GPU.

    The entry point of the group ``tile.checks.device``.
    """
    for family in RECORDS:
        yield compiled(family)
    for name in FIND:
        yield launched(name)


def compiled(family: str) -> Check:
    """Compile a product for a family by Xcode's compiler, where it is installed."""
    title, remedy = f"metal: compiler, {family}", "install Xcode to check texts by its compiler; kernels do not need it"
    if shutil.which("xcrun") is None:
        return Check(title, "note", "xcrun is not installed", remedy)
    text = lower(_product(), make_context(f"metal:{family}"), installed()).source or ""
    language = f"-std=metal{versions.shown(RECORDS[family].language)}"
    command = ["xcrun", "-sdk", "macosx", "metal", language, "-c", "-x", "metal", "-", "-o", os.devnull]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
    found = done.stderr.strip()
    if done.returncode == 0:
        return Check(title, "OK", f"xcrun metal {language} accepts a product for metal:{family}")
    if "error:" not in found or "unable to find utility" in found:
        return Check(title, "note", f"xcrun has no metal: {found[:200]}", remedy)
    error = next(line for line in found.splitlines() if "error:" in line)
    return Check(title, "missing", f"xcrun metal {language} refuses a product: {error}", "please report it")


def launched(name: str) -> Check:
    """Run a product on the GPU through a library, and compare it with the reference."""
    title = f"metal: launch, {name}"
    target = installed().resolve_target("auto").text
    try:
        kernel = tile.compile(_product(), target if target.startswith(KIND) else KIND, out_idx=-1, runtime=name)
        (output,) = kernel.verify().outputs
    except NoLibrary as error:
        return Check(title, "note", str(error.facts["reason"]), f"pip install {name} on a Mac to launch kernels")
    except TileError as error:
        return Check(title, "missing", f"[{error.code}] {error.message}", error.help)
    return Check(title, "OK", f"a product for {kernel.target} on the GPU: {output.elements} elements are right")


def _product() -> Program:
    made: Program = matmul(40, 56, 72, 32, 32, 16, "float16")
    return made


def elsewhere() -> Check:
    """Describe what works without a Mac."""
    name = "metal: device"
    detail = f"there is no Metal on {platform.system()}; text for metal is produced"
    if importlib.util.find_spec("tile_emulator") is not None:
        return Check(name, "note", f"{detail} and run by the emulator", 'compile with runtime="emulator" to run it')
    return Check(name, "note", detail, "pip install packages/tile-emulator in a checkout to run it here")


def system() -> Check:
    """Report the version of macOS and the MSL version that it compiles."""
    name, version, machine = "metal: system", versions.system_version(), platform.machine()
    shown = f"macOS {versions.shown(version)}"
    if machine != "arm64":
        return Check(name, "missing", f"{shown} on {machine}", "kernels need a Mac with Apple silicon")
    language = versions.language_of(versions.SYSTEM, version)
    if not language:
        oldest = min(row.first for row in versions.ROWS if row.product == versions.SYSTEM)
        return Check(name, "missing", shown, f"update to macOS {versions.shown(oldest)} or later")
    runs = [f"metal:{family}" for family, record in RECORDS.items() if not record.lacks(here(version))]
    return Check(name, "OK", f"{here(version)}, MSL {versions.shown(language)}; runs {', '.join(runs)}")


def here(system: Version) -> Machine:
    """Return this machine by the name of its chip."""
    return versions.machine_with(versions.chip(), system)


def library(name: str) -> Check:
    """Report whether a library launches kernels here, and on which device."""
    title = f"metal: {name}"
    try:
        module = FIND[name]()
    except LibraryUnusable as error:
        return Check(title, "note", str(error), f"pip install {name} to launch kernels on its arrays")
    version = str(getattr(module, "__version__", ""))
    language = versions.compiled_language(name, versions.version_of(version), versions.system_version())
    detail = f"{name} {version}, which compiles MSL {versions.shown(language)}"
    if name == "torch":
        if not hasattr(module.mps, "compile_shader"):
            return Check(title, "note", f"{detail} has no mps.compile_shader", "pip install --upgrade torch")
        return Check(title, "OK", f"{detail}: kernels run on its stream of the device mps")
    return Check(title, "OK", f"{detail}{device_text(module)}: kernels run on the stream of its GPU")


def device_text(mx: Any) -> str:
    """Return MLX's description of the device, for messages."""
    info = device_info(mx)
    if not info:
        return ""
    gib = int(info.get("max_buffer_length", 0)) >> 30
    return f", {info.get('device_name', 'a GPU')} ({info.get('architecture', 'unknown')}), buffers of at most {gib} GiB"


def environment() -> Iterator[Check]:
    """Report environment variables that change the results of kernels."""
    value = os.environ.get(FAST_MATH, "")
    if value not in ("", "0"):
        detail = f"{FAST_MATH}={value}: torch compiles with fast math, so precise kernels are refused there"
        yield Check("metal: arithmetic", "note", detail, f"unset {FAST_MATH}")
