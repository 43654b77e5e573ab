"""U1xx: what a target cannot do."""

from __future__ import annotations

from tile_core.errors.base import InternalError, UnsupportedError


class NoVariant(UnsupportedError):
    """A call that every variant of an op rejects; the table lists the reasons."""

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
    """A forced variant that rejects the call; no other variant is tried."""

    code = "U104"
    template = "{wanted} does not fit on {target}: {reason}"
    remedy = "change the call, or {instead}"


class VariantCrashed(InternalError):
    """A variant that raised, or returned neither ``Accept`` nor ``Reject``."""

    code = "I101"
    template = "variant {variant} {detail}"
    remedy = "this is a defect of the backend that owns the variant, please report it to its authors with the kernel"


class UnknownProcessor(UnsupportedError):
    """A name that is not a 64-bit processor of the target's compiler."""

    code = "U105"
    template = "{found!r} is not the name of a 64-bit processor of LLVM"
    remedy = "nearest: {near}; omit the name to compile for this machine"


class LayoutUnsupported(UnsupportedError):
    """An annotated layout that a tensor's memory cannot hold."""

    code = "U106"
    template = "the layout of {buffer} spans {span} elements, but the tensor has {size}"
    remedy = "give parameters layouts without gaps; pad the tensor's shape instead"


class NotExpressible(UnsupportedError):
    """A text emitter cannot print a construct that the passes left in the program."""

    code = "U107"
    template = "{dialect} cannot express {what}"
    remedy = "choose another target, or rewrite the kernel without it"


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
        'declare a tensor, such as `{name}: T.Tensor((T.dynamic("n"),), "float16")`; T.ptr works on "cpu", and a '
        "table of addresses, T.Tensor((n,), T.ptr), everywhere"
    )


class UnrolledTooFar(UnsupportedError):
    """An unroll factor that exceeds the code-size limit of a loop."""

    code = "U110"
    template = "unrolling {factor} iterations of {each:,} operations gives {total:,} operations; the limit is {most:,}"
    remedy = "use a smaller unroll_factor, or omit it: a loop that is too long is then not unrolled"


class TooMuchCode(UnsupportedError):
    """A kernel whose code exceeds the code-size limit of the target's compiler."""

    code = "U111"
    template = "the straight-line code of one thread has about {found:,} operations; the limit is {most:,}"
    remedy = "write T.serial or T.unroll where Python or T.static_range repeats statements, or split the kernel"


class TooManyThreads(UnsupportedError):
    """A block with more threads than blocks of the target have."""

    code = "U112"
    template = "{kernel} launches blocks of {found} threads; {target} has at most {limit} in a block"
    remedy = "nearest legal value: threads={limit}; one thread may process several elements of a tile"


class FragmentLayoutUnsupported(UnsupportedError):
    """A requested layout of a fragment that the target cannot use."""

    code = "U113"
    template = "the layout of {buffer} cannot be kept on {target}: {reason}"
    remedy = "remove the annotation, or copy to and from a separate fragment where an op requires another layout"


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
    """A role whose threads cannot synchronize on the target, or are not whole warps."""

    code = "U117"
    template = "T.ws of {role}: {found} on {target}"
    remedy = "{fix}"


class ClusterUnsupported(UnsupportedError):
    """A cluster on a target without clusters, or larger than the target's limit."""

    code = "U119"
    template = "{kernel} launches clusters of {found} blocks; {target} has {limit}"
    remedy = "{fix}"


class BarrierUnsupported(UnsupportedError):
    """An explicit barrier on a target that does not support it."""

    code = "U118"
    template = "the barrier {name}: {target} has {found}"
    remedy = (
        "remove the barrier: the compiler inserts barriers where threads depend on each other; or choose another target"
    )


class CodeGenerationEnded(UnsupportedError):
    """Code generation for a processor that crashed the target's compiler."""

    code = "U120"
    template = "LLVM cannot generate code of this kernel for {target}: {reason}"
    remedy = "compile for a similar processor: `cpu:x86-64-v3`, `cpu:x86-64-v4` or `cpu:generic`"


class UnprovenBarriers(InternalError):
    """An emitted kernel whose barriers, copies and waits are not ordered as its results require."""

    code = "I102"
    template = "the barriers of the emitted kernel {kernel} are wrong: {role}: {step}: {barrier}: {reason}"
    remedy = "this is a defect of tile, please report it to its authors with the kernel"
