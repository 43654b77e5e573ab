"""K1xx: errors of the frontend."""

from __future__ import annotations

from types import MappingProxyType

from tile_core.errors.base import KernelError
from tile_runtime.errors.dtypes import UnknownDType as UnknownDType


class OutsideKernel(KernelError):
    """A part of the language was used where no kernel is being traced."""

    code = "K102"
    template = "{what} is used outside a kernel"
    remedy = "call it inside a function decorated with @T.prim_func, @tile.jit or @T.macro"


class BadOperand(KernelError):
    """An operand of scalar arithmetic that is not a scalar."""

    code = "K103"
    template = "{found} cannot take part in scalar arithmetic here"
    remedy = "{fix}"
    usual = MappingProxyType({"fix": "use numbers, runtime scalars, or elements such as A[i, j]"})


class ConstantDoesNotFit(KernelError):
    """A Python number that its type cannot hold."""

    code = "K104"
    template = "the constant {value} does not fit {dtype}"
    remedy = "use a {kind} from {low} to {high}, or {otherwise}"
    usual = MappingProxyType({"kind": "value", "otherwise": "cast the other side to a wider type"})


class NotCompileTime(KernelError):
    """Python needed the result of a runtime value while tracing."""

    code = "K105"
    template = "Python needs {what} ({value}) while the kernel is being traced"
    remedy = "{fix}"


class IndexOutOfRange(KernelError):
    """A constant index or slice lies outside its buffer."""

    code = "K106"
    template = "index {found} is outside dimension {dim} of {buffer}, which has extent {extent}"
    remedy = "legal: {legal}"


class TooManyIndices(KernelError):
    """More indices than dimensions."""

    code = "K107"
    template = "{buffer} has {rank} dimensions and was indexed with {found}"
    remedy = (
        "use at most {rank} indices; one name for several axes (`as bx`, `for i in T.grid(M, N)`) holds one index "
        "per axis: unpack it"
    )


class StepSlice(KernelError):
    """A slice with a step."""

    code = "K108"
    template = "the slice of dimension {dim} of {buffer} has step {step}"
    remedy = (
        "slices of buffers are contiguous; use a T.Parallel loop for strided access, or a T.StridedTensor parameter"
    )


class StatementOutsideLaunch(KernelError):
    """A statement that only a launch can execute is outside one."""

    code = "K109"
    template = "{kernel}: this statement is outside `with T.Kernel(...)`"
    remedy = (
        "write it inside of `with T.Kernel(blocks, threads=128) as bx:`; in front of that only Python values and "
        "scalar parameters are computed"
    )


class UsedAfterScope(KernelError):
    """A name is used after the runtime block that bound it."""

    code = "K110"
    template = "{name} was bound inside of a runtime {kind} and is used after it"
    remedy = "declare `{name} = T.alloc_var(dtype, init=...)` in front of the {kind} and assign to it inside"


class ReboundInBranch(KernelError):
    """A name bound outside a runtime block is rebound inside."""

    code = "K111"
    template = "{name} is bound outside of this runtime {kind} and bound again inside of it"
    remedy = "{fix}"


class ChangedInBlock(KernelError):
    """A Python container that exists outside of a runtime block changes inside of it."""

    code = "K150"
    template = "the Python {type} {name} changes inside of this runtime {kind}, whose body is traced once"
    remedy = (
        "use T.static_range to trace a body for each iteration; or keep values in a buffer (T.alloc_local); or make "
        "the {type} inside of the block"
    )


class NoSource(KernelError):
    """The source of a kernel function cannot be found."""

    code = "K112"
    template = "the source of {name} is not usable: {reason}"
    remedy = "write the kernel as a `def` in a file or notebook cell"


class RefusedSyntax(KernelError):
    """A statement that kernels do not have."""

    code = "K113"
    template = "`{what}` is not part of the kernel language"
    remedy = "{instead}"


class NoEffect(KernelError):
    """An expression statement whose runtime value is unused."""

    code = "K114"
    template = "this statement computes a value ({value}) and drops it"
    remedy = "assign it, or write `=` instead of `==`"


class BadBreak(KernelError):
    """A `break` or `continue` that its loop cannot follow."""

    code = "K115"
    template = "`{what}` {reason}"
    remedy = "{instead}"


class RuntimeReturn(KernelError):
    """A `return` or `raise` that would depend on a runtime value."""

    code = "K116"
    template = "`{what}` inside of a runtime {kind}"
    remedy = "a kernel runs to its end: put the rest of the body into an `if`, or decide with a Python value"


class RuntimeElse(KernelError):
    """A loop with `else` that a runtime `break` may leave."""

    code = "K117"
    template = "the `else` of this loop depends on a runtime `break`"
    remedy = "set a T.alloc_var flag in front of `break` and test it after the loop"


class StatementInExpression(KernelError):
    """A statement would be executed by one side of a conditional expression."""

    code = "K118"
    template = "one side of `{what}` emits statements, which would run whatever the condition is"
    remedy = "use an `if` statement"


class BadLoop(KernelError):
    """Arguments that are not loop bounds."""

    code = "K119"
    template = "T.{loop}: {what} is {found}, expected {expected}"
    remedy = "{instead}"


class BadLaunch(KernelError):
    """Arguments that do not describe a launch."""

    code = "K120"
    template = "T.Kernel: {what} is {found}, expected {expected}"
    remedy = "{instead}"


class SecondLaunch(KernelError):
    """A launch inside of another one."""

    code = "K121"
    template = "{kernel} launches inside of a launch"
    remedy = "write the launches one after the other: the second `with T.Kernel(...)` runs when the first has finished"


class BadShape(KernelError):
    """A scratch buffer whose shape is not static."""

    code = "K122"
    template = "T.{what}: dimension {dim} is {found}, expected a positive Python int"
    remedy = "tile extents must be static: pass them as Python arguments"


class BadInitial(KernelError):
    """An initial value or combination that does not fit."""

    code = "K123"
    template = "T.{what}: {name} is {found}, expected {expected}"
    remedy = "{instead}"


class BadParameter(KernelError):
    """A parameter of a kernel function without a usable declaration."""

    code = "K124"
    template = "parameter {name} of {kernel}: {found}, expected {expected}"
    remedy = "{fix}"


def annotate(name: str) -> str:
    """Return the remedy for a parameter without a declaration."""
    return f'annotate it, for example `{name}: T.Tensor((M, N), "float16")` or `{name}: T.int32`'


class UnboundSymbol(KernelError):
    """A symbolic dimension that no argument determines."""

    code = "K125"
    template = "the symbol {name} is used by {kernel}, but occurs in no parameter's shape"
    remedy = "use it in the shape of a tensor parameter, or pass a scalar parameter instead"


class PythonError(KernelError):
    """Python code inside the kernel raised an error."""

    code = "K126"
    template = "{kind}: {detail}"
    remedy = "{fix}"
    usual = MappingProxyType(
        {"fix": "correct the Python code of the kernel; the original error is the cause of this one"}
    )


class BadStore(KernelError):
    """An assignment to something that is not an element."""

    code = "K127"
    template = "cannot assign {value} to {target}"
    remedy = "{instead}"


class BadArgument(KernelError):
    """A function of the language got an argument that it cannot use."""

    code = "K128"
    template = "T.{function}: {name} is {found}, expected {expected}"
    remedy = "{instead}"


class UnknownName(KernelError, AttributeError):
    """A name that the language does not have."""

    code = "K129"
    template = "tile_core.language has no name {name!r}"
    remedy = "{hint}"


class ShapeDisagrees(KernelError):
    """An argument does not have the shape or type that the kernel declares."""

    code = "K130"
    template = "{name}: {what} is {found}, declared {expected}"
    remedy = "pass an array that agrees with the declaration, or change the declaration"


class UndeterminedConst(KernelError):
    """A `T.const` name that no declaration determines."""

    code = "K131"
    template = "T.const name {name} occurs alone in no declared shape"
    remedy = (
        "declare a tensor parameter with {name} as one of its dimensions, for example `A: T.Tensor[({name},), dtype]`"
    )


class BadReturn(KernelError):
    """A kernel function returns something that is not an output."""

    code = "K132"
    template = "{kernel} returns {found}, expected {expected}"
    remedy = "{fix}"
    usual = MappingProxyType({"fix": "return tensors made by T.empty, and all of them"})


class EscapedVariable(KernelError):
    """A runtime value is used outside the block that defines it."""

    code = "K133"
    template = "{name} is used in {kernel} outside of the loop or branch that defines it"
    remedy = "keep values that depend on a loop inside of it, or store them in a buffer"


class BadAnnotation(KernelError):
    """An annotation of a buffer or of the launch that cannot be followed."""

    code = "K134"
    template = "T.{what}: {found}"
    remedy = "{instead}"


class WorkspaceInside(KernelError):
    """A workspace that is allocated inside a launch, whose blocks all share it."""

    code = "K135"
    template = "T.alloc_global: a workspace is allocated inside of a launch"
    remedy = "move it in front of `with T.Kernel(...)`; memory of one block is T.alloc_shared or T.alloc_fragment"


class ScratchTooLarge(KernelError):
    """A scratch buffer with more elements than an index can count."""

    code = "K136"
    template = "T.{what}: shape {shape} has {found} elements, expected at most {limit}"
    remedy = "allocate a tile of the problem, and loop over tiles"


class UnknownHint(KernelError):
    """A keyword that a function of the language does not have."""

    code = "K137"
    template = "T.{function} has no keyword {name!r}"
    remedy = "{instead}"


class SourceChanged(KernelError):
    """The source at a kernel's location is not what its function was compiled from."""

    code = "K138"
    template = "the source of {name} has changed since it was imported: line {line} of {file} is different now"
    remedy = "import the module again (or restart the process): a kernel is compiled from the text that Python runs"


class NegativeIndex(KernelError):
    """A negative constant index: kernels do not count from the end as Python does."""

    code = "K139"
    template = "{what} {found} in dimension {dim} of {buffer} (extent {extent}): indices do not count from the end"
    remedy = (
        "for the element that Python would select write {legal}; only runtime indices may be out of bounds, where "
        "reads return 0"
    )


class NotAMethod(KernelError, AttributeError):
    """A NumPy function, or an array method, applied to a value of the kernel."""

    code = "K140"
    template = "{what} is not part of the kernel language"
    remedy = "{fix}"


class NotCompiled(KernelError, TypeError):
    """A traced kernel is called as if it were compiled."""

    code = "K141"
    template = "{kernel} is not compiled for a target yet: it cannot be called"
    remedy = 'compile it first: tile.compile({kernel}, target="cpu")(...); @tile.jit compiles at the first call'


class LostTensor(KernelError):
    """The name of a tensor or tile is bound to a value, which writes nothing."""

    code = "K142"
    template = "`{name} = ...` binds the name to {found}; it writes nothing into {what}"
    remedy = "{fix}"


class EndlessTrace(KernelError):
    """A Python loop that does not end while the kernel is traced."""

    code = "K143"
    template = "this `{loop}` is a Python loop, traced once per iteration, and has not ended after {count} iterations"
    remedy = "for a loop of the kernel, give `while` a runtime condition, or write `for _ in range(n)` with `break`"


class NoGridBarrier(KernelError):
    """A barrier of all blocks where their launch cannot end and begin again."""

    code = "K145"
    template = "T.sync_grid {problem}: it ends the launch and continues in another one"
    remedy = "{fix}"


class UnknownSize(KernelError):
    """A size for an eager kernel that is not one of its ``T.const`` names."""

    code = "K146"
    template = "{kernel} has no parameter and no name of T.const called {name}"
    remedy = "its names of T.const: {known}"


class NotImportable(KernelError):
    """A decorated function that another process cannot import by its name."""

    code = "K147"
    template = "{name} cannot be sent to another process: {reason}"
    remedy = "define it at the top level of a module, or send a traced program"


class ShapesDoNotBroadcast(KernelError):
    """Tiles of an expression or assignment whose shapes do not broadcast."""

    code = "K144"
    template = "tiles of shapes {a} and {b} do not broadcast"
    remedy = (
        "extents are compared from the last one: they are equal, or one of them is 1 (x[:, None] adds such a "
        "dimension); the target of an assignment has the shape of the result"
    )


class NoGenerator(KernelError):
    """Random numbers without a sequence, or of a sequence of a block that has ended."""

    code = "K149"
    template = "T.{function}() requires a random sequence, and none is started here"
    remedy = "call T.rng_init(seed, seq) before it, in the same block of statements or an enclosing one"


class BadWeights(KernelError):
    """An array that holds no 4-bit weights in the form that is converted."""

    code = "K148"
    template = "{function} takes an array in host memory of {expected}, found {found}"
    remedy = "pass two elements of the last axis in each byte to tile.pack_weights, its result to tile.unpack_weights"


class NotPackable(KernelError):
    """A parameter whose weights cannot be in packed order."""

    code = "K151"
    template = "the weights of {name} in {kernel} cannot be packed: {reason}"
    remedy = "{fix}"
