"""Wheels of kernels that were built beforehand: ``tile build-package``.

A wheel holds artefacts and an index of their shapes (`tile_runtime.package`). It requires tile-runtime and, for targets
other than the CPU, the package that launches their kernels.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core import __version__
from tile_core.compiler import compiled_launches, lower, signature_of
from tile_core.errors.cli import BadPackage
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.records import dataclass
from tile_core.runtime.export import artefact_bytes
from tile_core.runtime.files import write_named
from tile_runtime.files.artefact import FORMAT, Artefact, from_bytes
from tile_runtime.loaders import requirement
from tile_runtime.package import FOLDER, INDEX

if TYPE_CHECKING:
    from tile_core.ir.program import Program

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")
_GLIBC = re.compile(rb"GLIBC_2\.([0-9]+)")
_OLDEST_GLIBC = 17
_DATE = (1980, 1, 1, 0, 0, 0)
_MODULE = """\
\"\"\"Kernels of tile, built beforehand: {kernels}.\"\"\"

from tile_runtime import open_package

globals().update(open_package(__name__, __file__))
"""


@dataclass(frozen=True)
class PackagedBuild:
    """A program to be built for one target.

    Attributes
    ----------
    kernel
        The kernel's name in the package.
    program, out_idx, options, target
        As of ``tile.compile``.
    """

    kernel: str
    program: Program
    target: str
    out_idx: Any = None
    options: Any = None


@dataclass(frozen=True)
class KernelWheel:
    """The content of a wheel of kernels.

    Attributes
    ----------
    name, version
        Of the distribution.
    builds
        What it holds; of one shape, the first target that a machine can run counts.
    fallbacks
        Functions that take the calls for which nothing was built, as ``module:function``, by kernel.
    """

    name: str
    version: str
    builds: Sequence[PackagedBuild]
    fallbacks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, pattern, found, example in (
            ("name", _NAME, self.name, "my-kernels"),
            ("version", _VERSION, self.version, "0.1.0"),
        ):
            if pattern.fullmatch(found) is None:
                raise BadPackage(what=what, found=found, example=example)

    def write(self, folder: Path) -> Path:
        """Build the kernels, without a device, and write the wheel; return its path.

        Raises
        ------
        TileError
            What the compiler refuses; the wheel is not written then.
        """
        made = [_built(build) for build in self.builds]
        artefacts = [from_bytes(content, self.name) for content in made]
        module = re.sub(r"[-_.]+", "_", self.name).lower()
        paths = [f"{module}/{FOLDER}/{_file(build, number)}" for number, build in enumerate(self.builds)]
        files = dict(zip(paths, made, strict=True))
        files[f"{module}/{FOLDER}/{INDEX}"] = json.dumps(self._index(artefacts), indent=1).encode()
        files[f"{module}/__init__.py"] = _MODULE.format(kernels=", ".join(sorted(self._kernels()))).encode()
        tag = f"py3-none-{_platform(artefacts)}"
        info = f"{module}-{self.version}.dist-info"
        files[f"{info}/METADATA"] = self._metadata(artefacts).encode()
        files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tile\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
        files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD").encode()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{module}-{self.version}-{tag}.whl"
        write_named(path, _archive(files))
        return path

    def _kernels(self) -> list[str]:
        return list(dict.fromkeys(build.kernel for build in self.builds))

    def _index(self, artefacts: Sequence[Artefact]) -> dict[str, object]:
        kernels: dict[str, Any] = {
            kernel: {"fallback": self.fallbacks.get(kernel, ""), "builds": []} for kernel in self._kernels()
        }
        for number, (build, artefact) in enumerate(zip(self.builds, artefacts, strict=True)):
            kernels[build.kernel]["builds"].append({
                "file": _file(build, number), "target": artefact.target, "backend": artefact.backend,
                "package": _launcher(artefact), "signature": artefact.signature.to_json(),
            })  # fmt: skip
        return {"format": FORMAT, "version": __version__, "kernels": kernels}

    def _metadata(self, artefacts: Sequence[Artefact]) -> str:
        major, minor, *_ = __version__.split(".")
        bounds = f">={__version__},<{major}.{int(minor) + 1}"
        launchers = {_launcher(a) for a in artefacts if a.backend != "cpu"}
        lines = [
            "Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}",
            f"Summary: Kernels of tile: {', '.join(self._kernels())}", "Requires-Python: >=3.10",
            *(f"Requires-Dist: {package}{bounds}" for package in ("tile-runtime", *sorted(launchers))),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _built(build: PackagedBuild) -> bytes:
    plugins = installed()
    ctx = make_context(build.target, build.options, plugins=plugins)
    programs = build.program.stages
    signature = dataclasses.replace(signature_of(build.program, build.out_idx), name=build.kernel)
    launches = compiled_launches(programs, [lower(one, ctx, plugins) for one in programs], signature)
    return artefact_bytes(signature, launches, ctx.target, plugins)


def _launcher(artefact: Artefact) -> str:
    """Return the requirement for launches of an artefact: its loader's, or the backend's package."""
    return requirement(artefact.backend) or artefact.package


def _file(build: PackagedBuild, number: int) -> str:
    return f"{build.kernel}-{number}.tile"


def _platform(artefacts: Iterable[Artefact]) -> str:
    """Return a wheel's platform, from its libraries and the C library that they need."""
    texts = [one.text for a in artefacts for one in a.launches or (a,)]
    binaries = [t.built for t in texts if t.built is not None and t.built.runtime == "library"]
    if not binaries:
        return "any"
    platform = re.sub(r"[-.]", "_", binaries[0].arch)
    if not platform.startswith("linux_"):
        return platform
    versions = [int(found) for built in binaries for found in _GLIBC.findall(built.data)]
    return platform.replace("linux", f"manylinux_2_{max([_OLDEST_GLIBC, *versions])}", 1)


def _record(files: Mapping[str, bytes], own: str) -> str:
    def row(name: str, content: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    return "".join(row(name, content) for name, content in files.items()) + f"{own},,\n"


def _archive(files: Mapping[str, bytes]) -> bytes:
    """Return a ZIP archive of files, the same bytes on every system."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content)
    return out.getvalue()
