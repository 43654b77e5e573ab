"""Matrix products of a warpgroup: asynchronous instructions on shared memory, with fences and waits.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". There are thousands of forms, so functions are made when a
name is looked up: ``wgmma_m64n128k16_f32_f16_f16_ss_tb``. ``ss`` takes A from shared memory, ``rs`` fragments of it;
``ta`` and ``tb``: elements along M or N are adjacent; ``sp0`` is a sparse product with selector 0; ``new``
starts from zero, whatever is in the registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tile_cuda.ptx.instruction import CHUNKS, TENSOR_MEMORY_ARCHS, Instruction, PtxOperand

ARCH = "sm_90a"
MOST_PENDING = 7
"""Groups that a wait may leave in flight."""
MOST_KEPT = 64
"""Registers that one function keeps."""
MOST_READ = 16
"""Registers of metadata that one function reads."""

FENCE, COMMIT = "wgmma_fence_sync_aligned", "wgmma_commit_group_sync_aligned"
"""Functions that order registers, and that end a group."""

UNIFORM = "same_in_warp"
"""Function that returns a warp-uniform value in a form that the compiler recognizes as uniform."""

FIELDS = ("leading", "stride", "swizzle", CHUNKS)
"""Of a descriptor, in bytes, and the chunks of 16 bytes between the address and the matrix."""

#: Register class and C++ type of an accumulator, and elements of D in each.
_ACCUMULATORS = {"f32": ("f", "float", 1), "f16": ("r", "unsigned", 2), "s32": ("r", "int", 1)}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_PRODUCT = re.compile(
    r"wgmma_(?:sp(?P<selector>[01])_)?m64n(?P<n>\d+)k(?P<k>\d+)_(?P<d>f32|f16|s32)_(?P<a>[a-z0-9]+)_(?P<b>[a-z0-9]+)"
    r"_(?P<form>ss|rs)(?P<ta>_ta)?(?P<tb>_tb)?(?P<new>_new)?"
)
_READ = re.compile(r"read_metadata_(?P<n>\d+)")
_HELD = re.compile(r"held_(?P<n>\d+)")
_KEPT = re.compile(r"keep_(?P<d>f32|s32|u32)_(?P<n>\d+)")


def wgmma_instructions() -> Iterator[Instruction]:
    """Yield the functions that have one form."""
    result = PtxOperand("bits", "l", role="result")
    where = (PtxOperand("p", ctype="const void*"), *(PtxOperand(n, ctype="int") for n in FIELDS))
    # The chunks are added last, so that the descriptors of a tile differ by one addition.
    body = (
        "const unsigned low = (shared_address(p) & 0x3ffff) >> 4 | (unsigned)leading >> 4 << 16;",
        "const unsigned high = (unsigned)stride >> 4 | (unsigned)swizzle << 30;",
        "return (unsigned long long)high << 32 | (low + chunks);",
    )
    yield Instruction("matrix_descriptor", operands=(result, *where), body=body, needs=("shared_address",))
    same = (PtxOperand("same", role="result", ctype="int"), PtxOperand("number", ctype="int"))
    yield Instruction(UNIFORM, operands=same, body=("return __shfl_sync(0xffffffffu, number, 0);",))
    yield _order(FENCE, "wgmma.fence.sync.aligned")
    yield _order(COMMIT, "wgmma.commit_group.sync.aligned")
    for pending in range(MOST_PENDING + 1):
        yield _order(wait_name(pending), "wgmma.wait_group.sync.aligned", str(pending))


def wait_name(pending: int) -> str:
    """Return the function that waits for all but ``pending`` commit groups."""
    return f"wgmma_wait_group_sync_aligned_{pending}"


def read_name(count: int) -> str:
    """Return the function that reads registers of metadata without any effect."""
    return f"read_metadata_{count}"


def held_name(count: int) -> str:
    """Return the function that keeps registers of a fragment alive for products in flight.

    The assembler then sees that these are read until the wait for the products.
    """
    return f"held_{count}"


def product_name(
    n: int, types: tuple[str, str, str], *, form: str, trans: tuple[bool, bool], selector: int | None,
    new: bool = False,
) -> str:  # fmt: skip
    """Return the function of a product.

    Parameters
    ----------
    n
        Columns.
    types
        Of A, B and D, as PTX names them.
    form
        ``"ss"``, or ``"rs"`` for fragments of A.
    trans
        Whether elements along M of A, and along N of B, are adjacent.
    selector
        Of a sparse A's metadata; ``None`` for a dense one.
    new
        Whether it starts from zero: it then has no accumulate parameter.
    """
    a, b, d = types
    sparse = "" if selector is None else f"sp{selector}_"
    more = ("_ta" if trans[0] else "") + ("_tb" if trans[1] else "") + ("_new" if new else "")
    return f"wgmma_{sparse}m64n{n}k{depth(a, selector is not None)}_{d}_{a}_{b}_{form}{more}"


def depth(kind: str, sparse: bool) -> int:
    """Return the extent along (dense) K of an instruction."""
    return (512 if sparse else 256) // _BITS[kind]


@cache
def wgmma_instruction(name: str) -> Instruction | None:
    """Return the function of a generated name, or ``None``."""
    kept = _KEPT.fullmatch(name)
    if kept is not None:
        register, ctype, _ = _ACCUMULATORS.get(kept["d"], ("r", "unsigned", 1))
        held = PtxOperand("d", register, int(kept["n"]), "inout", ctype)
        archs = f"{ARCH} {TENSOR_MEMORY_ARCHS}"
        return Instruction(name, operands=(held,), form="{opcode}", arch=archs, volatile=True, memory=True)
    used = _HELD.fullmatch(name)
    if used is not None:
        held = PtxOperand("a", count=int(used["n"]), ctype="unsigned")
        return Instruction(name, operands=(held,), form="{opcode}", arch=ARCH, volatile=True, memory=True)
    read = _READ.fullmatch(name)
    if read is not None:
        return _reader(name, int(read["n"]))
    found = _PRODUCT.fullmatch(name)
    return None if found is None else _product(name, found)


def _order(name: str, opcode: str, form: str = "") -> Instruction:
    return Instruction(name, opcode, (), form, ARCH, volatile=True, memory=True)


def _reader(name: str, count: int) -> Instruction:
    """Return the function that is the last reader of registers of metadata.

    Metadata is never zero: each nibble has an index that is not. An empty statement would not do: the assembler does
    not see it. An event of the performance monitor can stand under a predicate; a branch, as a trap has, makes the
    assembler serialize all products that are in flight around it.
    """
    held = PtxOperand("e", count=count, ctype="unsigned")
    least = "".join(f" min.u32 t, t, %{i};" for i in range(1, count))
    form = f"{{ .reg .pred p; .reg .u32 t; mov.u32 t, %0;{least} setp.eq.u32 p, t, 0; @p pmevent 1; }}"
    return Instruction(name, operands=(held,), form="{opcode}" + form, arch=ARCH, volatile=True, memory=True)


def _matrix(name: str) -> tuple[PtxOperand, ...]:
    """Return the parameters of a matrix in shared memory."""
    fields = (PtxOperand(f"{name}_{field}", ctype="int", role="given") for field in FIELDS)
    return (PtxOperand(name, "l", role="matrix", ctype="const void"), *fields)


def _product(name: str, found: re.Match[str]) -> Instruction:
    register, ctype, each = _ACCUMULATORS[found["d"]]
    n, selector = int(found["n"]), found["selector"]
    opcode = "wgmma.mma_async{}.sync.aligned.m64n{}k{}.{}.{}.{}".format(
        ".sp" if selector else "", n, found["k"], found["d"], found["a"], found["b"]
    )
    in_registers = found["form"] == "rs"
    operands = [PtxOperand("d", register, n // 2 // each, "out" if found["new"] else "inout", ctype)]
    operands += [PtxOperand("a", count=4, ctype="unsigned")] if in_registers else _matrix("a")
    operands += _matrix("b")
    operands += [PtxOperand("e", count=1, ctype="unsigned")] if selector else []
    operands += [] if found["new"] else [PtxOperand("adds", ctype="int")]
    last = ["p"]
    if found["d"] != "s32":
        last += ["1", "1"]
    if _BITS[found["a"]] == 16:
        last += [] if in_registers else ["1" if found["ta"] else "0"]
        last.append("1" if found["tb"] else "0")
    metadata = f"{{e[0]}}, {selector}, " if selector else ""
    adds = "0" if found["new"] else "{adds}"
    form = f"{{ .reg .pred p; setp.ne.b32 p, {adds}, 0; "
    form += "{opcode} {d}, {a}, {b}, " + metadata + ", ".join(last) + "; }"
    return Instruction(
        name, opcode, tuple(operands), form, ARCH, volatile=True, memory=True, needs=("matrix_descriptor",)
    )
