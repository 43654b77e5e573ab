"""S1xx: backends and their discovery."""

from __future__ import annotations

from types import MappingProxyType

from tile_core.errors.base import SetupError


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
    """A target that no installed backend answers for."""

    code = "S104"
    template = "no installed backend answers for target {found!r}; installed: {known}"
    remedy = "{hint}"


class AmbiguousTarget(SetupError):
    """A target that several backends answer for."""

    code = "S105"
    template = "target {found!r} is answered by several backends: {backends}"
    remedy = "uninstall all but one of them, or exclude one with TILE_DISABLE_BACKENDS"


class UnknownTargetOption(SetupError):
    """A ``key=value`` of a target text that its backend does not know."""

    code = "S120"
    template = "target {target!r}: {found!r} is not an option of backend {backend!r}"
    remedy = "leave it out; the backend takes from this text: {known}"


class UnknownBackend(SetupError):
    """A backend name that no installed distribution offers."""

    code = "S106"
    template = "no installed distribution offers a backend {found!r}; installed: {known}"
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
    remedy = "pip install --upgrade {older}: it is the older of the two"


class OutOfStep(SetupError):
    """A package that plugs in is made for another version of tile-core, by its own metadata."""

    code = "S122"
    template = "{what} is of {distribution} {version}, which needs tile-core {expected}; this is tile-core {found}"
    remedy = "pip install --upgrade tile-core {distribution}: versions of one release belong together"


class DamagedDistribution(SetupError):
    """A package that plugs in whose installation or removal was interrupted: nobody can tell what it is made for."""

    code = "S123"
    template = "{what} is of {folder}, which is damaged: {reason}"
    remedy = "reinstall {distribution} (pip install --force-reinstall), or remove that folder"


class DuplicateBackend(SetupError):
    """Two distributions offer the same backend name or target kind."""

    code = "S109"
    template = "the {what} {found!r} is offered by {first} and by {second}"
    remedy = "uninstall one of them"


class InvalidHook(SetupError):
    """A backend implements a hook that does not exist, with wrong arguments, or lacks a mandatory one."""

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
    remedy = "pip install {distribution}"


class NotOffered(SetupError, AttributeError):
    """A name of ``T`` that belongs to a package whose installed version does not have it."""

    code = "S121"
    template = "T.{found} is a name of {distribution}, which is installed in a version that does not offer it"
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
    """Two lowering variants of an op have the same priority, so that their order would be arbitrary."""

    code = "S116"
    template = "variants {first} and {second} of {op} have the same priority {priority}"
    remedy = "this is a defect of the later one, please report it to its authors"


class MissingFact(SetupError):
    """A fact of a target that its backend's code asks for is absent or of another type."""

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
