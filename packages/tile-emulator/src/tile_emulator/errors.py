"""S4xx, U48x, K48x: errors that prevent emulation, and faults that emulation finds."""

from __future__ import annotations

from types import MappingProxyType

from tile_core.errors import KernelError, SetupError, UnsupportedError

INSTALL = "install one, for example `pip install ziglang`, `apt install g++` or `apt install clang`, or name it in CXX"


class NoCompiler(SetupError):
    """No C++ compiler was found."""

    code = "S401"
    template = "the emulator needs a C++ compiler (g++ 12 or clang 15, or newer): {found}"
    remedy = INSTALL


class CompilerRefused(SetupError):
    """The compiler that CXX names cannot be used."""

    code = "S402"
    template = "the compiler that CXX names, {found!r}, cannot be used: {reason}"
    remedy = "unset CXX, or set it to g++ 12 or clang 15, or newer"


class HostUnsupported(SetupError):
    """The emulator's engine does not run on this system."""

    code = "S403"
    template = "the emulator runs on Linux on x86-64 and arm64, found {found}"
    remedy = "run it in a container or a virtual machine with Linux"


class EngineFailed(SetupError):
    """The engine does not compile or does not start on this machine."""

    code = "S404"
    template = "the emulator's engine cannot be used with {compiler}: {reason}"
    remedy = "try another compiler by setting CXX; if none works, please report it with this message"


class CompilerSlow(SetupError):
    """The compiler did not finish within the time that it has."""

    code = "S405"
    template = "the emulator's compiler, {compiler}, took more than {seconds} s"
    remedy = "make the kernel's text shorter (fewer unrolled iterations), or set TILE_BUILD_SECONDS to more"


class NotModelled(UnsupportedError):
    """The source does not compile with the dialect: it uses something that has no model."""

    code = "U480"
    template = "{kernel}: the dialect {dialect!r} has no model for line {line} of the text: {reason}"
    remedy = "the text can still be run on the device; models belong to the package that emits the text"


class LaunchRefused(UnsupportedError):
    """The device would refuse the launch."""

    code = "U481"
    template = "{kernel}: {what} of a launch must be {expected}, found {found}"
    remedy = "choose {expected}"


class NotEmulated(UnsupportedError):
    """The target has no dialect model."""

    code = "U482"
    template = "kernels for {target} cannot be emulated: {reason}"
    remedy = "run it with one of the target's own runtimes"


class FaultFound(KernelError):
    """Emulation found the kernel at fault."""

    code = "K480"
    template = "{kernel}: emulation found {count} fault(s):\n{reports}"
    remedy = "{advice}if {cause} not explain it, it is a defect of the backend: please report it"
    usual = MappingProxyType({"advice": "", "cause": "your kernel's own accesses do"})


class BadArguments(KernelError):
    """The arguments of an emulated launch do not match the kernel."""

    code = "K481"
    template = "{kernel}: {detail}"
    remedy = "pass one value for each of: {expected}"
