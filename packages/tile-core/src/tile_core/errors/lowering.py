"""U1xx: what a target cannot do."""

from __future__ import annotations

from tile_core.errors.base import InternalError, UnsupportedError


class NoVariant(UnsupportedError):
    """Every variant of an op refuses a call; the table says why."""

    code = "U101"
    template = "no variant of {op} fits on {target}:\n{table}"
    remedy = "change the call so that one row is satisfied, or choose another target"


class OpUnavailable(UnsupportedError):
    """A target has no variant of an op at all."""

    code = "U102"
    template = "{target} has no variant of {op}"
    remedy = "{hint}"


class VariantMissing(UnsupportedError):
    """A forced variant does not exist on the target."""

    code = "U103"
    template = "{target} has no {wanted}{known}"
    remedy = "{hint}"


class VariantRefused(UnsupportedError):
    """A forced variant does not fit the call; nothing else is tried."""

    code = "U104"
    template = "{wanted} does not fit on {target}: {reason}"
    remedy = "change the call, or {instead}"


class VariantCrashed(InternalError):
    """A variant raised, or answered with anything but ``Accept`` or ``Reject``."""

    code = "I101"
    template = "variant {variant} {detail}"
    remedy = "this is a defect of the backend that owns the variant, please report it to its authors with the kernel"


class UnknownProcessor(UnsupportedError):
    """A name that the compiler behind a target does not have among its 64-bit processors."""

    code = "U105"
    template = "{found!r} is not the name of a 64-bit processor that LLVM knows"
    remedy = "the nearest are: {near}; without a name the target is this machine"


class LayoutUnsupported(UnsupportedError):
    """An annotated layout that a tensor's memory cannot hold."""

    code = "U106"
    template = "the layout of {buffer} spans {span} elements, but the tensor has {room}"
    remedy = "give parameters layouts without gaps; pad the tensor's shape instead"


class NotExpressible(UnsupportedError):
    """A text emitter cannot print a construct that the passes left in the program."""

    code = "U107"
    template = "{dialect} has no text for {what}"
    remedy = "choose another target, or avoid it in the kernel"


class ShuffleTooWide(UnsupportedError):
    """Lanes of different groups of threads would have to exchange values."""

    code = "U108"
    template = "T.{op}: width {found} is wider than the target's groups of {width} threads"
    remedy = "use a width of at most {width}, or exchange through shared memory with T.sync_threads()"


class PointerUnsupported(UnsupportedError):
    """A kernel with a pointer parameter, on a target whose launches bind arrays."""

    code = "U109"
    template = "{kernel} takes the address {name} (T.ptr); kernels for {target} take arrays only"
    remedy = (
        'declare a tensor instead, `{name}: T.Tensor((T.dynamic("n"),), "float16")` say; T.ptr works on "cpu", and a '
        "table of addresses, T.Tensor((n,), T.ptr), everywhere"
    )


class UnrolledTooFar(UnsupportedError):
    """A loop's unroll factor gives more code than a target's compiler handles in reasonable time."""

    code = "U110"
    template = "{factor} turns of a loop of {each:,} operations are {total:,}; one loop may repeat up to {most:,}"
    remedy = "give a smaller unroll_factor, or leave it out: a loop that is too long then stays a loop"


class TooMuchCode(UnsupportedError):
    """One thread's code is more than a target's compiler handles in reasonable time."""

    code = "U111"
    template = "the code of one thread is about {found:,} operations, without loops; {most:,} are the most"
    remedy = "write T.serial or T.unroll where Python or T.static_range repeats statements, or split the kernel"


class TooManyThreads(UnsupportedError):
    """A block with more threads than blocks of the target have."""

    code = "U112"
    template = "{kernel} launches blocks of {found} threads; {target} has at most {limit} in a block"
    remedy = "nearest legal value: threads={limit}; a tile needs no thread of its own for each element"


class FragmentLayoutUnsupported(UnsupportedError):
    """A requested layout of a fragment over threads and registers that cannot be obeyed."""

    code = "U113"
    template = "the layout of {buffer} cannot be kept on {target}: {reason}"
    remedy = "leave the annotation out, or copy to and from a fragment of its own where an op needs another one"


class RoundingUnsupported(UnsupportedError):
    """Arithmetic with a rounding for which the target has no instructions."""

    code = "U114"
    template = "T.{op}: {target} has no instruction that rounds {found!r}; it has {known}"
    remedy = "use rounding_mode='rn', or choose another target"


class GridNotComputable(UnsupportedError):
    """An extent of the grid that the host, which launches it, cannot compute."""

    code = "U115"
    template = "the host cannot compute the extent `{extent}` of grid axis {axis} before a launch"
    remedy = "compute it with + - * // %, T.max and T.min from scalar parameters and sizes, or pass it as a parameter"


class TypeUnsupported(UnsupportedError):
    """A parameter or tile of an element type that the target does not have."""

    code = "U116"
    template = "{kernel}: {name} holds {found}; {target} has no such type"
    remedy = "{hint}"


class RoleUnsupported(UnsupportedError):
    """Work of a part of a block's threads that cannot wait for each other on a target, or are no whole groups."""

    code = "U117"
    template = "T.ws of {role}: {found} on {target}"
    remedy = "{fix}"


class ClusterUnsupported(UnsupportedError):
    """Blocks that are to run together on a target whose blocks do not, or more of them than do."""

    code = "U119"
    template = "{kernel} launches clusters of {found} blocks; {target} has {limit}"
    remedy = "{fix}"


class BarrierUnsupported(UnsupportedError):
    """A barrier of a program's own on a target whose threads cannot wait for one."""

    code = "U118"
    template = "the barrier {name}: {target} has {found}"
    remedy = "leave barriers out, the compiler places them where threads depend on each other; or choose another target"


class CodeGenerationEnded(UnsupportedError):
    """Machine code of a processor for which the compiler behind a target ended its process."""

    code = "U120"
    template = "LLVM generates no code of this kernel for {target}: {reason}"
    remedy = "compile for a similar processor: `cpu:x86-64-v3`, `cpu:x86-64-v4` or `cpu:generic`"
