"""S6xx, U6xx: exported kernels, and the cache of compiled ones."""

from __future__ import annotations

from tile_runtime.errors.base import SetupError, UnsupportedError


class ArtefactError(SetupError):
    """Base of errors about the file of an exported kernel."""

    code = "S600"


class CannotReadArtefact(ArtefactError):
    """A file that does not exist, or cannot be read."""

    code = "S601"
    template = "cannot read {file}: {reason}"
    remedy = "pass the path that kernel.export wrote to"


class NotAnArtefact(ArtefactError):
    """A file that kernel.export did not write."""

    code = "S602"
    template = "{file} is not an exported kernel: {reason}"
    remedy = "pass a file that kernel.export wrote"


class NewerArtefact(ArtefactError):
    """A file of a newer version of the package."""

    code = "S603"
    template = "{file} has format {found}, written by tile-core {version}; this version reads formats up to {expected}"
    remedy = "upgrade tile-core to at least {version}, or export the kernel again with this version"


class DamagedArtefact(ArtefactError):
    """A file whose content was altered after writing."""

    code = "S604"
    template = "{file} is damaged: {reason}"
    remedy = "copy the file again, or export the kernel again"


class MissingBackend(ArtefactError):
    """An exported kernel whose target's backend is not installed."""

    code = "S605"
    template = "{file} holds a kernel for {target}, whose backend {backend!r} is not installed"
    remedy = "install {package}; if it is one of tile's: pip install {folders} in a checkout of tile"


class CannotWriteArtefact(ArtefactError):
    """A path that cannot be written."""

    code = "S606"
    template = "cannot write {file}: {reason}"
    remedy = "choose a path in an existing, writable folder"


class UntrustedArtefact(ArtefactError):
    """A file that another user can change: exported kernels run with your permissions."""

    code = "S607"
    template = "{file} contains code that other users can change: {reason}"
    remedy = "remove their write permission, or set TILE_TRUST_FILES=1 if you trust these users"


class ArtefactNotRunnable(UnsupportedError):
    """An exported kernel that no device of this machine can run."""

    code = "U601"
    template = "{file} holds a kernel for {target}, which this machine cannot run: {reason}"
    remedy = "compile the program on this machine or for its target, and export that"


class CannotClearCache(SetupError):
    """A file of the cache that cannot be removed."""

    code = "S610"
    template = "cannot remove {file}: {reason}"
    remedy = "remove it by hand, or set TILE_CACHE_DIR to another folder"


class NoScratchFolder(SetupError):
    """No folder in which a runtime could build."""

    code = "S611"
    template = "cannot build a kernel: no writable folder for its files: {reason}"
    remedy = "free disk space, or set TILE_CACHE_DIR and, for temporary files, TMPDIR to writable folders"


class ShapeNotBuilt(UnsupportedError):
    """A call of a packaged kernel with shapes for which it was not built."""

    code = "U602"
    template = "{kernel}: the package {package} was not built for arrays of {found}"
    remedy = "pass arrays of a shape that it was built for, the nearest are: {nearest}; or build the package for yours"
