"""S1xx: backends and their discovery."""

from __future__ import annotations

from types import MappingProxyType

from tile_runtime.errors.base import SetupError


class InvalidDeclaration(SetupError):
    """A field of a ``Target``, ``Capabilities`` or legality table contradicts its meaning."""

    code = "S101"
    template = "{what}.{field} is {found!r}; expected {expected}"
    remedy = "this is a defect of the backend that declares it, please report it to its authors"


class InvalidManifest(SetupError):
    """A field of a backend's manifest is wrong."""

    code = "S102"
    template = "the manifest of backend {backend!r} has {field}={found!r}; expected {expected}"
    remedy = "this is a defect of that backend, please report it to its authors"


class MalformedTarget(SetupError):
    """A target text that cannot be split into its parts."""

    code = "S103"
    template = "{found!r} is not a target; expected kind, kind:arch or kind:arch,key=value"
    remedy = 'write for example target="cpu" or target="auto"; `tile targets` lists what is installed'


class UnknownTarget(SetupError):
    """A target that no installed backend supports."""

    code = "S104"
    template = "no installed backend supports target {found!r}; installed: {known}"
    remedy = "{hint}"


class AmbiguousTarget(SetupError):
    """A target that several backends support."""

    code = "S105"
    template = "several backends support target {found!r}: {backends}"
    remedy = "uninstall all but one of them, or exclude one with TILE_DISABLE_BACKENDS"


class UnknownTargetOption(SetupError):
    """A ``key=value`` of a target text that is not an option of its backend."""

    code = "S120"
    template = "target {target!r}: {found!r} is not an option of backend {backend!r}"
    remedy = "remove it; options of this backend: {known}"


class UnknownBackend(SetupError):
    """A backend name that no installed distribution provides."""

    code = "S106"
    template = "no installed distribution provides a backend {found!r}; installed: {known}"
    remedy = "{hint}"


class BackendBroken(SetupError):
    """A backend that is installed but could not be imported; the reason is the cause."""

    code = "S107"
    template = "backend {backend!r} ({distribution}) is installed but broken: {reason}"
    remedy = "reinstall or uninstall {distribution}; the other backends are not affected"


class IncompatibleApi(SetupError):
    """A backend made for another version of the plugin contract."""

    code = "S108"
    template = (
        "backend {backend!r} ({distribution}) is made for plugin API {found}; this is tile-core {core}, which has "
        "API {expected}"
    )
    remedy = "update {older}: it is the older of the two"


class OutOfStep(SetupError):
    """A plug-in package whose metadata requires another version of tile-core."""

    code = "S122"
    template = (
        "{what} comes from {distribution} {version}, which requires tile-core {expected}; this is tile-core {found}"
    )
    remedy = "update both: tile-core and {distribution} must be of one release"


class DamagedDistribution(SetupError):
    """A plug-in package whose installation or removal was interrupted."""

    code = "S123"
    template = "{what} comes from {folder}, which is damaged: {reason}"
    remedy = "reinstall {distribution} (pip install --force-reinstall), or remove that folder"


class DuplicateBackend(SetupError):
    """A backend name or target kind that two distributions provide."""

    code = "S109"
    template = "the {what} {found!r} is provided by {first} and by {second}"
    remedy = "uninstall one of them"


class InvalidHook(SetupError):
    """An unknown hook, a hook with wrong arguments, or a missing mandatory hook."""

    code = "S110"
    template = "backend {backend!r}: {detail}"
    remedy = "{hint}"


class HookFailed(SetupError):
    """A backend's hook raised an error outside the catalogue, which is the cause."""

    code = "S111"
    template = "hook {hook} of backend {backend!r} raised {reason}"
    remedy = "this is a defect of that backend, please report it to its authors with the traceback"
    unexpected = True


class HookReturned(SetupError):
    """A backend's hook returned a value that the contract does not allow."""

    code = "S112"
    template = "hook {hook} of backend {backend!r} returned {found}; expected {expected}"
    remedy = "this is a defect of that backend, please report it to its authors"


class ProvidedElsewhere(SetupError, AttributeError):
    """A name of ``T`` from a package that is not installed."""

    code = "S113"
    template = "T.{found} is provided by {distribution}, which is not installed"
    remedy = "pip install {folders} in a checkout of tile"


class NotOffered(SetupError, AttributeError):
    """A name of ``T`` that the installed version of its package does not provide."""

    code = "S121"
    template = "the installed version of {distribution} does not provide T.{found}"
    remedy = "install a newer {distribution} if there is one, or write the kernel without it"


class DuplicateName(SetupError):
    """Two backends add the same name to ``T``."""

    code = "S114"
    template = "T.{found} is added by backend {first!r} and by backend {second!r}"
    remedy = "uninstall one of them, or exclude one with TILE_DISABLE_BACKENDS"


class DuplicateVariant(SetupError):
    """Two lowering variants of a target have the same name."""

    code = "S115"
    template = "target {target!r} has two variants named {found!r}: from backend {first!r} and from backend {second!r}"
    remedy = "this is a defect of the later one, please report it to its authors"


class AmbiguousPriority(SetupError):
    """Two lowering variants of an op with the same priority."""

    code = "S116"
    template = "variants {first} and {second} of {op} have the same priority {priority}"
    remedy = "this is a defect of the later one, please report it to its authors"


class MissingFact(SetupError):
    """A fact of a target that is absent or of the wrong type."""

    code = "S117"
    template = "the target states {name}={found!r}; expected a value of type {expected}"
    remedy = "this is a defect of the backend that owns the target, please report it to its authors"


class InvalidOptions(SetupError):
    """Options that the backend does not have."""

    code = "S118"
    template = "options of backend {backend!r}: found {found}; expected {expected}"
    remedy = "{fix}"
    usual = MappingProxyType(
        {"fix": "pass options={...} with the fields of the backend's options type, or an instance of it"}
    )


class InvalidKnob(SetupError):
    """A setting whose value cannot be read."""

    code = "S119"
    template = "{name}={found!r}; expected {expected}"
    remedy = "correct or unset it"
