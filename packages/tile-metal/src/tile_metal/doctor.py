"""The Metal section of ``tile doctor``: system, device, and libraries that launch kernels."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator
from typing import Any

from tile_core.cli.checks import Check
from tile_metal import versions
from tile_metal.runtime.libraries import FIND, LibraryUnusable
from tile_metal.runtime.machine import device_info
from tile_metal.runtime.mps import FAST_MATH
from tile_metal.target import RECORDS
from tile_metal.versions import Machine, Version


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


def elsewhere() -> Check:
    """Describe what works without a Mac."""
    name = "metal: device"
    detail = f"there is no Metal on {platform.system()}; text for metal is produced"
    if importlib.util.find_spec("tile_emulator") is not None:
        return Check(name, "note", f"{detail} and run by the emulator", 'compile with runtime="emulator" to run it')
    return Check(name, "note", detail, "pip install tile-emulator to run it here")


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
    import os

    value = os.environ.get(FAST_MATH, "")
    if value not in ("", "0"):
        detail = f"{FAST_MATH}={value}: torch compiles with fast math, so precise kernels are refused there"
        yield Check("metal: arithmetic", "note", detail, f"unset {FAST_MATH}")
