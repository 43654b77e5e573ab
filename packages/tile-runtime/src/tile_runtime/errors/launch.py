"""K4xx, U4xx: errors of the arguments of a call, of launches, and of devices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tile_runtime.errors.base import KernelError, UnsupportedError


class LaunchError(KernelError):
    """A call of a kernel is refused; nothing was launched and nothing was written."""

    code = "K400"


class MissingArgument(LaunchError):
    """A parameter got no value."""

    code = "K401"
    template = "{kernel}: missing argument {name!r}; {expected} expected, {found} given"
    remedy = "call it as {usage}"


class TooManyArguments(LaunchError):
    """More positional arguments than parameters that the caller passes."""

    code = "K402"
    template = "{kernel}: {found} positional arguments given, at most {expected} expected"
    remedy = "call it as {usage}{note}"


class UnknownKeyword(LaunchError):
    """A keyword that names no parameter that the caller passes."""

    code = "K403"
    template = "{kernel}: unknown keyword argument {name!r}; expected one of {expected}"
    remedy = "call it as {usage}"


class DuplicateArgument(LaunchError):
    """A parameter got a value by position and by keyword."""

    code = "K404"
    template = "{kernel}: argument {name!r} is given both by position and by keyword"
    remedy = "call it as {usage}"


class NotAnArray(LaunchError):
    """An array parameter got something that is not an array."""

    code = "K405"
    template = "{kernel}: argument {name!r} must be an array {expected}, found {found}"
    remedy = "pass a NumPy array, a torch tensor or any object with __dlpack__ and __dlpack_device__"


class RankMismatch(LaunchError):
    """The number of dimensions differs."""

    code = "K406"
    template = "{kernel}: argument {name!r} must have {expected} dimensions {declared}, found {found}: {shape}"
    remedy = "reshape it to {declared}"


class ShapeMismatch(LaunchError):
    """A dimension differs from the declared extent."""

    code = "K407"
    template = "{kernel}: {name}.shape[{axis}] must be {expected}{because}, found {found} (shape {shape})"
    remedy = "pass an array of shape {declared}"


class SymbolConflict(LaunchError):
    """Two arguments give one symbol different values."""

    code = "K408"
    template = "{kernel}: {symbol} is {first} by {first_source} but {second_text} by {second_source}"
    remedy = "{declared}; make both agree, for example with {symbol} = {first}"


class UnsolvableSymbol(LaunchError):
    """A symbol has no value that follows from the arguments."""

    code = "K409"
    template = "{kernel}: the value of symbol {symbol!r} does not follow from the arguments; it occurs in {occurrences}"
    remedy = "declare an input with {symbol} alone as an extent, or add a scalar parameter named {symbol}"


class NegativeExtent(LaunchError):
    """A symbol or an extent has a negative value."""

    code = "K410"
    template = "{kernel}: {what} is {found} by {source}; an extent cannot be negative"
    remedy = "pass a value of 0 or more"


class DTypeMismatch(LaunchError):
    """The element type differs."""

    code = "K411"
    template = "{kernel}: argument {name!r} must be {expected}, found {found}"
    remedy = "pass {accepted}; a call never converts or copies silently"


class StrideMismatch(LaunchError):
    """The memory layout differs from the declared one."""

    code = "K412"
    template = "{kernel}: argument {name!r} must have strides {expected} (in elements), found {found} for shape {shape}"
    remedy = "{advice}"


class Misaligned(LaunchError):
    """The first element is not aligned as the kernel needs."""

    code = "K413"
    template = "{kernel}: argument {name!r} must start at a multiple of {expected} bytes, found address {found}"
    remedy = "pass an array that starts at a multiple of {expected} bytes, for example a fresh copy"


class WrongDevice(LaunchError):
    """An array is in memory that this runtime cannot access."""

    code = "K414"
    template = "{kernel}: argument {name!r} is on {found}, but the runtime {runtime!r} serves {expected}"
    remedy = (
        "move the array, or compile the kernel for the device of the array; "
        'runtime="emulator" executes the text of any target on arrays of the CPU'
    )


class DeviceConflict(LaunchError):
    """Two arrays live on different devices."""

    code = "K415"
    template = "{kernel}: argument {name!r} is on {found}, but {other!r} is on {expected}"
    remedy = "move all arrays to one device"


class ReadOnlyOutput(LaunchError):
    """The kernel writes an array that is read-only."""

    code = "K416"
    template = "{kernel}: argument {name!r} is written by the kernel, but it is {found}"
    remedy = "pass a writable array{note}"


class GradientOutput(LaunchError):
    """The kernel writes a tensor that takes part in automatic differentiation."""

    code = "K417"
    template = "{kernel}: argument {name!r} is written by the kernel, but it requires a gradient"
    remedy = "pass {name}.detach(); writes of a kernel are not part of the gradient"


class Overlap(LaunchError):
    """A written argument overlaps another argument."""

    code = "K418"
    template = "{kernel}: argument {name!r} is written and shares memory with argument {other!r}"
    remedy = "pass a copy of one of them; the kernel was compiled for arguments that do not overlap"


class SelfOverlap(LaunchError):
    """Elements of a written argument overlap each other."""

    code = "K419"
    template = "{kernel}: elements of the written argument {name!r} may share memory (shape {shape}, strides {found})"
    remedy = "pass an array whose elements are all distinct, not a broadcast or a sliding window"


class ScalarType(LaunchError):
    """A scalar parameter got a value of another kind."""

    code = "K420"
    template = "{kernel}: argument {name!r} must be {expected}, found {found}"
    remedy = "{advice}"


class ScalarRange(LaunchError):
    """A scalar does not fit its parameter."""

    code = "K421"
    template = "{kernel}: argument {name!r} must be a {dtype} from {low} to {high}, found {found}"
    remedy = "pass at most {high} and at least {low} or declare a wider parameter"


class TooManyElements(LaunchError):
    """An array is larger than the kernel's index type can address."""

    code = "K422"
    template = "{kernel}: argument {name!r} spans {found} elements, at most {expected} fit {bits}-bit indices{reason}"
    usual = MappingProxyType({"reason": ""})
    remedy = 'split the array, or declare one of the kernel\'s sizes as T.dynamic("n", "int64")'


class NarrowIndex(LaunchError):
    """An array is longer than the 32-bit arithmetic of an index reaches."""

    code = "K459"
    template = (
        "{kernel}: argument {name!r} has {found} elements along {extent}, and the index {index} is computed in 32 "
        "bits, which reach {expected}"
    )
    remedy = "compute it in 64 bits: T.cast(bx, 'int64') * 256 + i, or a grid and loops over sizes of type int64"


class BadPointer(LaunchError):
    """A pointer parameter got a value that is not an address."""

    code = "K423"
    template = "{kernel}: argument {name!r} must be a pointer, found {found}"
    remedy = "pass an address (an int from 0 to 2**64 - 1), a ctypes.c_void_p or an array"


class NoAddress(LaunchError):
    """``tile.pointers`` got an array whose address cannot be in a table."""

    code = "K428"
    template = "tile.pointers: argument {number} is {found}"
    remedy = "pass arrays of one device: of any library on the host, of torch elsewhere"


class ByteOrder(LaunchError):
    """The elements are stored in the other byte order."""

    code = "K424"
    template = "{kernel}: argument {name!r} has elements in non-native byte order ({found})"
    remedy = "convert it with {name}.astype({name}.dtype.newbyteorder('='))"


class UnsupportedArray(LaunchError):
    """An array whose memory cannot be described by shape, strides and an element type."""

    code = "K425"
    template = "{kernel}: argument {name!r} cannot be passed without a copy: {found}"
    remedy = "pass a dense array of numbers in its own memory"


class CannotAllocate(LaunchError):
    """The arrays' library cannot give an output that a kernel writes without a copy."""

    code = "K426"
    template = "{kernel}: output {name!r} cannot be allocated as an array of {found}: {reason}"
    remedy = "pass NumPy arrays or torch tensors, or compile without out_idx and pass {name} as a writable array"


class BadOutIdx(LaunchError):
    """``out_idx`` names no parameter that can be allocated."""

    code = "K427"
    template = "{kernel}: out_idx {found} is refused: {reason}"
    remedy = "{fix}"


class SuspectResults(LaunchError):
    """A kernel leaves outputs unwritten, or makes NaN or infinities of finite inputs.

    Attributes
    ----------
    report
        The ``VerifyReport`` with the numbers.
    """

    code = "K429"
    template = "{kernel}: {findings}"
    remedy = "{advice}"
    report: Any = None


class VerifyMismatch(LaunchError):
    """The kernel and its reference disagree."""

    code = "K430"
    template = (
        "{kernel}: output {name!r} differs from its reference at {wrong} of {elements} elements; "
        "worst at {index}: found {found}, expected {expected} (rtol {rtol}, atol {atol}){cause}"
    )
    remedy = "{advice}"
    usual: ClassVar[Mapping[str, Any]] = MappingProxyType({
        "advice": "if the difference is rounding, pass rtol= or atol=; otherwise please report the kernel", "cause": "",
        "first": None,
    })  # fmt: skip


class CannotFreeze(LaunchError):
    """A value that the cache key cannot hash by content."""

    code = "K431"
    template = "{holder} holds {found}, which cannot be part of a cache key"
    remedy = "pass numbers, strings, dtypes, tuples, lists, dicts, dataclasses or arrays, or use tile.disable_cache()"


class NotProvided(UnsupportedError):
    """A method that this kernel does not provide."""

    code = "U401"
    template = "{kernel}: {action} is not available for target {target!r}: {reason}"
    remedy = "{advice}"


class DeviceAssertFailed(LaunchError):
    """A condition that ``T.device_assert`` checks was false while the kernel ran."""

    code = "K432"
    template = "device assertion failed: {message}"
    remedy = "outputs of this launch are incomplete; print the values with T.print to find the cause"


def asserted(message: str, at: str) -> str:
    """Return the message of a failed assertion with its location."""
    return f"{message or 'the condition is false'}{f' ({at})' if at else ''}"


class NoWorkingConfig(LaunchError):
    """A search by ``tile.autotune`` in which every configuration failed."""

    code = "K433"
    template = "none of the {count} configurations of {function} works:\n{reasons}"
    remedy = "correct the configurations according to the reasons above"


class NoProducts(LaunchError):
    """A factory whose program has no product, so that ``tile.tilings`` has nothing to estimate."""

    code = "K446"
    template = "{function}: its program has no product (T.gemm, T.gemm_sp, T.gemm_scaled) whose tiles could be ranked"
    remedy = "measure configurations of your own: tile.autotune([dict(block=64), dict(block=128)])(factory)"


class NoTileParameters(LaunchError):
    """A factory whose parameters change no tile, thread count or stage count."""

    code = "K447"
    template = "{function}: no parameter changes the tiles, threads or stages of its products; ints to vary: {found}"
    remedy = "take them from parameters with defaults: {hint}; arguments in shapes are never changed"


class UnboundParameter(LaunchError):
    """A factory's parameter without a value or a usual tile name."""

    code = "K448"
    template = "{function}: parameter {name!r} has no value; it is neither in shapes nor a usual tile name ({known})"
    remedy = "add it to shapes, or give it a default{hint}"


class BadSetting(LaunchError):
    """An argument of the package with a type or value that it cannot use."""

    code = "K434"
    template = "{function}: {name} is {found}, expected {expected}"
    remedy = "{instead}"


class TextDoesNotServe(LaunchError):
    """Every text of a kernel makes an assumption that a call violates."""

    code = "K435"
    template = "{kernel}: {name!r} is {found}; the kernel was compiled for {expected} only"
    remedy = "pass a fresh copy of the array: it starts at a multiple of at least 16 bytes"


class GradientLost(LaunchError):
    """A tensor that requires gradients; a kernel's results would have none."""

    code = "K436"
    template = "{kernel}: {name!r} requires gradients, which would be lost: a kernel has no backward pass"
    remedy = "pass {name}.detach(), call under torch.no_grad(), or write a torch.autograd.Function around both passes"


class MemoryDamaged(KernelError):
    """A kernel wrote out of bounds, next to an array or between its elements."""

    code = "K437"
    template = "memory outside the elements of an array {array} was written: {count} bytes, first {position}"
    remedy = 'run the kernel with runtime="emulator", which names the line and the index'


class LaunchNotOffered(UnsupportedError):
    """A text needs a launch feature that the runtime lacks."""

    code = "U403"
    template = "{kernel}: the runtime {runtime} does not support {what}"
    remedy = "use another runtime of the target"


class GridTooLarge(UnsupportedError):
    """A launch has more blocks, or threads, along an axis than the runtime can count."""

    code = "U404"
    template = "{kernel}: a launch through {runtime} has at most {limit} {unit} along {axis}, this launch has {found}"
    remedy = "do more work per block, or spread the blocks over the axes of T.Kernel; the first has the largest limit"


class TooMuchShared(UnsupportedError):
    """A block needs more shared memory than the device that would run it has."""

    code = "U405"
    template = "{kernel}: a block uses {found} bytes of shared memory, {device} has {limit}"
    remedy = "use smaller tiles or fewer stages{or_else}"
    usual = MappingProxyType({"or_else": ""})


class TextRefused(UnsupportedError):
    """The compiler of a device's language refused a kernel's text."""

    code = "U406"
    template = "{kernel}: {compiler} rejected {part}: {reason}"
    remedy = "if that is code of your own, correct it; otherwise please report it with kernel.source"


class DeviceFault(KernelError):
    """A fault that the device reports, of this kernel or of an earlier launch."""

    code = "K438"
    template = "{kernel}: {reporter} reports a fault of this launch or of one before it: {reason}"
    remedy = 'run the kernel with runtime="emulator", which names the line and the index'


class GridNotInClusters(LaunchError):
    """The blocks of a launch do not make whole clusters."""

    code = "K439"
    template = "{kernel}: {found} blocks along {axis} are not a multiple of the cluster size {cluster}"
    remedy = "launch a multiple of {cluster}, such as {near}: surplus blocks may do nothing"
