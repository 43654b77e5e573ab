"""S3xx: what the command line refuses."""

from __future__ import annotations

from tile_core.errors.base import SetupError


class CommandError(SetupError):
    """Base of everything that the command line itself refuses."""

    code = "S300"


class NoSuchFile(CommandError):
    """A file that cannot be read."""

    code = "S301"
    template = "cannot read {file}: {reason}"
    remedy = "{hint}"


class FileSyntax(CommandError):
    """A file that is not Python."""

    code = "S302"
    template = "{file} is not valid Python: {reason}"
    remedy = "correct the line; a kernel file is an ordinary Python file"


class FileRaised(CommandError):
    """Code of the file, outside a kernel, raised an error."""

    code = "S303"
    template = "{file} raised {kind} while it was {action}: {detail}"
    remedy = "correct the file; --verbose shows the whole traceback"


class NoKernel(CommandError):
    """A file that defines nothing that can be compiled."""

    code = "S304"
    template = "{file} defines no kernel"
    remedy = "decorate a function with @T.prim_func or @tile.jit, or return one from a function of the file"


class SeveralKernels(CommandError):
    """A file that defines more than one kernel, and none was named."""

    code = "S305"
    template = "{file} defines several kernels: {found}"
    remedy = "name one: {file}:{first}"


class NoSuchKernel(CommandError):
    """A name that the file does not define."""

    code = "S306"
    template = "{file} has no kernel {name!r}; it has: {found}"
    remedy = "{hint}"


class NotAKernel(CommandError):
    """A name whose value cannot be compiled."""

    code = "S307"
    template = "{name} of {file} {found}; expected {expected}"
    remedy = "name a function decorated with @T.prim_func or @tile.jit, or a function that returns one"


class BadPair(CommandError):
    """An argument that is not of the form ``name=value``."""

    code = "S308"
    template = "{option} {found!r}: expected name=value"
    remedy = "write for example {option} {example}"


class UnknownArgument(CommandError):
    """An ``--arg`` or ``--vary`` that the kernel has no use for."""

    code = "S309"
    template = "{option} {name}: {kernel} has no such argument; it has: {known}"
    remedy = "{hint}"


class MissingValue(CommandError):
    """An argument without a default that got no value."""

    code = "S310"
    template = "{kernel} needs a value for {name}{what}"
    remedy = "add {usage}"


class BadValue(CommandError):
    """A value that a size or scalar parameter cannot have."""

    code = "S311"
    template = "--arg {name}={found}: expected {expected}"
    remedy = "write for example --arg {name}={example}"


class CannotWrite(CommandError):
    """A result that cannot be written."""

    code = "S312"
    template = "cannot write {file}: {reason}"
    remedy = "choose a file in an existing, writable folder"


class NoInputs(CommandError):
    """A kernel whose inputs the command line cannot generate."""

    code = "S313"
    template = "{kernel}: cannot generate random values for {name}: {reason}"
    remedy = "call the kernel from Python with your own arguments"


class TargetWithoutDevice(CommandError):
    """A kernel that no device of this machine runs."""

    code = "S314"
    template = "{kernel} cannot run here: this machine has no device for {target} ({reason})"
    remedy = "run it on a machine that has one, or emulate it: --runtime emulator; `tile compile` needs no device"


class MissingPackage(CommandError):
    """An option that needs an optional package."""

    code = "S318"
    template = "{option} needs {package}, which is not installed"
    remedy = "pip install packages/tile-runtime 'packages/tile-core[{extra}]' in a checkout of tile"


class NothingToVary(CommandError):
    """A search among no configurations."""

    code = "S319"
    template = "{kernel} has no configurations to try; expected @tile.autotune or --vary"
    remedy = "add --vary NAME=VALUE,VALUE for one or more of its arguments: {known}"


class NoScheduler(CommandError):
    """A cluster that cannot be reached."""

    code = "S320"
    template = "no dask scheduler responds at {address}: {reason}"
    remedy = "start one with `dask scheduler` and pass the address that it prints, such as tcp://10.0.0.1:8786"


class BadLevel(CommandError):
    """A level of numerics that does not exist, or that a target does not have."""

    code = "S321"
    template = "--level {found}: expected {legal}"
    remedy = "leave --level out to check all levels that the target has"


class UnknownCode(CommandError):
    """An error code that is not in the catalogue."""

    code = "S322"
    template = "there is no error code {found}"
    remedy = "{hint}"


class FileExists(CommandError):
    """A file that ``tile new`` would overwrite."""

    code = "S323"
    template = "{file} exists already"
    remedy = "choose another name, another --folder, or remove the file"


class BadPackage(CommandError):
    """A name or version that a package of kernels cannot have."""

    code = "S330"
    template = "tile build-package: {found!r} is not the {what} of a package"
    remedy = "write it as {example}"
