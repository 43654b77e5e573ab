"""K2xx: errors of tile ops."""

from __future__ import annotations

from types import MappingProxyType

from tile_core.errors.base import KernelError


class NotATile(KernelError):
    """An operand that is not a buffer, region or element."""

    code = "K201"
    template = "T.{op}: {role} is {found}, not a buffer, a slice or an element of one"
    remedy = "pass a buffer (A_shared), a slice (A[0:64, k]) or a corner (A[by * 64, k * 32])"


class RuntimeExtent(KernelError):
    """A tile operand whose extent is only known at run time."""

    code = "K202"
    template = "T.{op}: dimension {dim} of {role} has the runtime extent {found}"
    remedy = (
        "tile extents must be static: pass a corner, so that the other operand determines them, or slice with constants"
    )


class ShapesDiffer(KernelError):
    """Two operands that must have the same shape do not."""

    code = "K203"
    template = "T.{op}: {a} has shape {shape_a}, but {b} has shape {shape_b} (extents of 1 are left out)"
    remedy = "{fix}"
    usual = MappingProxyType({"fix": "make them equal: slice the larger one, or index one dimension more or less"})


class ScopeNotAllowed(KernelError):
    """An operand is in a scope that the op cannot use."""

    code = "K204"
    template = "T.{op}: {role} is in scope {found}"
    remedy = "it must be in: {legal}"


class WritesReadOnly(KernelError):
    """An op that writes a read-only operand."""

    code = "K205"
    template = "T.{op} cannot write the scalar variable {name}"
    remedy = "assign to it with = instead, or use T.alloc_local for an array"


class OutsideLaunch(KernelError):
    """A tile op outside ``with T.Kernel(...)``."""

    code = "K206"
    template = "T.{op} is used outside `with T.Kernel(...)`"
    remedy = "move it into the kernel's body"


class GemmShape(KernelError):
    """The operands of a matrix product do not fit together."""

    code = "K207"
    template = "T.{op}: {what} ({found} against {expected}) for A {a}, B {b}, C {c}"
    remedy = (
        "with transpose_A={trans_a} and transpose_B={trans_b} the shapes must be A {want_a}, B {want_b}, C {want_c}"
    )


class GemmTypes(KernelError):
    """Element types that no matrix product combines."""

    code = "K208"
    template = "T.{op}: cannot multiply {a} by {b} into {c}"
    remedy = "{legal}"


class BadDim(KernelError):
    """A dimension number that the operand does not have."""

    code = "K209"
    template = "T.{op}: dim={found!r} for an operand of {rank} dimensions"
    remedy = "use an integer from {low} to {high}"


class BadDestination(KernelError):
    """The destination of a reduction or scan has the wrong shape."""

    code = "K210"
    template = "T.{op}: the destination has shape {found}; reducing {src} along dim {dim} gives {expected}"
    remedy = "use a destination of shape {expected} or {keep}"


class BadElementType(KernelError):
    """An op does not take operands of this element type."""

    code = "K211"
    template = "T.{op}: {role} has element type {found}"
    remedy = "legal types: {legal}"


class BadAttribute(KernelError):
    """A compile-time argument with a value that the op does not support."""

    code = "K212"
    template = "T.{op}: {name}={found!r}"
    remedy = "legal: {legal}"


class NotAnElement(KernelError):
    """A scalar atomic needs one element of a buffer."""

    code = "K213"
    template = "T.{op}: the destination is {found}"
    remedy = "pass an element such as C[i, j], a buffer or a slice"


class ParallelRace(KernelError):
    """A race between iterations of T.Parallel or between blocks."""

    code = "K214"
    template = "{found}"
    remedy = "{fix}"


class ViewSize(KernelError):
    """A view does not have as many bytes as its buffer."""

    code = "K215"
    template = "T.{op}: {shape} of {dtype} is {found} bits, but {buffer} has {expected} bits"
    remedy = "a view has exactly the storage of its buffer"


class ViewOfPart(KernelError):
    """A view of something that is not a whole scratch buffer."""

    code = "K216"
    template = "T.{op}: {found} cannot be viewed"
    remedy = "{fix}"


class AlignmentRule(KernelError):
    """A vector atomic needs adjacent elements."""

    code = "K217"
    template = "T.{op}: the last index {found} is not a multiple of {width}"
    remedy = "start at a multiple of {width}, or use T.atomic_add element by element"


class DivergentBarrier(KernelError):
    """A barrier of a block in divergent control flow."""

    code = "K218"
    template = "{what} is in control flow that differs between the threads of a block"
    remedy = "move it out of the branch or loop, or make the condition the same for all threads"


class SparseShape(KernelError):
    """The operands of a sparse product do not fit together."""

    code = "K219"
    template = "T.gemm_sp: {rule} (found {found}, expected {expected})"
    remedy = "{fix}"


class DuplicateRows(KernelError):
    """A constant list of rows that contains a row twice."""

    code = "K220"
    template = "T.scatter: row {row} occurs twice in the constant list of rows"
    remedy = "list each row once, or pass the rows in a buffer: then the last one wins"


class RowsOperand(KernelError):
    """The row indices of a gather or scatter are not a vector of integers."""

    code = "K221"
    template = "T.{op}: rows is {found}"
    remedy = "pass a 1-D buffer or slice of integers, or a list of Python ints"


class DivergentWarp(KernelError):
    """A warp operation in control flow that diverges within the warp."""

    code = "K224"
    template = "T.{op}() is in control flow that may differ between the lanes of a warp"
    remedy = (
        "move it in front of the branch or loop and use its result there, or make the condition the same in all lanes"
    )


class Fp8Operand(KernelError, TypeError):
    """An operand of a scaled product has an element type that it does not take."""

    code = "K222"
    template = "T.fp8_scaled_matmul: {role} has element type {found}"
    remedy = "legal: {legal}"


class ScaleShape(KernelError):
    """A scale has a shape that does not match its operand."""

    code = "K223"
    template = "T.{op}: {role} has shape {found}"
    remedy = "legal: {legal}"


class NeverWritten(KernelError):
    """Uninitialized scratch memory is read."""

    code = "K225"
    template = "{what} {buffer}, which has not been written before"
    remedy = "{fix}"


class OutsideOfScratch(KernelError):
    """A loop runs past the end of a scratch buffer."""

    code = "K226"
    template = "{who} {action} {element}: dimension {dim} of {buffer} has extent {extent}"
    remedy = "shorten the loop, guard the access with an `if` (a read: T.if_then_else), or make {buffer} larger"


class EmptyOperand(KernelError):
    """An op with an empty source and a non-empty destination."""

    code = "K227"
    template = "T.{op}: {found} has no elements, but its destination has"
    remedy = "pass a tile with at least one element; an op whose destination is empty does nothing"


class NotWaitedFor(KernelError):
    """Memory is accessed while an asynchronous operation may still access it."""

    code = "K229"
    template = "{buffer} is {action} while the asynchronous {flight} of line {line} may still be in flight"
    remedy = "wait for it first: for all groups of the thread, or for the phase of the same barrier object"


class BadRole(KernelError):
    """Work of a role that its threads cannot do alone."""

    code = "K230"
    template = "{found}"
    remedy = "{fix}"


class BadFunction(KernelError):
    """A function that a reduction or scan cannot combine elements with."""

    code = "K231"
    template = "T.{op}: the function {what}"
    remedy = "it must {expected}"


class BadBarrier(KernelError):
    """An explicit barrier whose position or operands the compiler cannot analyse."""

    code = "K232"
    template = "{found}"
    remedy = "{fix}"


class UnbalancedBarrier(KernelError):
    """An explicit barrier that does not balance for every trip count."""

    code = "K233"
    template = "the barrier {what} does not balance{when}: {reason}"
    remedy = "{fix}"
    usual = MappingProxyType({"fix": "match the arrivals, bytes and waits of each phase, in program order"})


class BadCluster(KernelError):
    """A cluster operation that the compiler cannot analyse, or without a cluster."""

    code = "K234"
    template = "{found}"
    remedy = "{fix}"


class BadLaunchOrder(KernelError):
    """A wait for preceding launches that follows an access depending on them."""

    code = "K235"
    template = "{found}"
    remedy = "{fix}"
