"""Instructions on memory: asynchronous copies, ordered accesses, atomics, fences and barriers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tile_cuda.ptx.instruction import Instruction, PtxOperand, function_name
from tile_cuda.ptx.scalar import KINDS

#: Groups of copies that a wait may leave pending: one more than the largest useful number of pipeline stages.
_GROUPS = 16
MOST_OPEN = _GROUPS - 1
"""Maximum number of groups of asynchronous copies that a wait can leave pending."""

#: State spaces of accesses, and scopes of their memory orders.
SCOPES = {"global": "gpu", "shared": "cta"}

_UPDATES = {
    "add": ("u32", "s32", "u64", "f32", "f64"), "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"), "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
}  # fmt: skip
_HALF_ACCUMULATORS = {"f16": "sm_80", "f16x2": "sm_80", "bf16": "sm_90", "bf16x2": "sm_90"}


def memory_instructions() -> Iterator[Instruction]:
    """Yield the instructions."""
    yield from _copies()
    yield from _ordered()
    yield from _updates()
    yield from _fences()


def _copies() -> Iterator[Instruction]:
    to, source = PtxOperand("smem", role="shared", ctype="void"), PtxOperand("gmem", role="global")
    valid = PtxOperand("valid_bytes", ctype="int")
    for cache, size, hint in (("ca", 4, ""), ("ca", 8, ""), ("ca", 16, ""), ("cg", 16, ""), ("cg", 16, ".L2::128B")):
        opcode = f"cp.async.{cache}.shared.global{hint}"
        name = f"{function_name(opcode)}_{size}"
        form = f"{{smem}}, {{gmem}}, {size}"
        yield Instruction(name, opcode, (to, source), form, volatile=True, memory=True)
        # Only the first valid_bytes are read; the rest of the destination becomes zero.
        form += ", {valid_bytes}"
        yield Instruction(f"{name}_zfill", opcode, (to, source, valid), form, volatile=True, memory=True)
    for name in ("commit_group", "wait_all"):
        yield Instruction(f"cp_async_{name}", f"cp.async.{name}", volatile=True, memory=True)
    for open_groups in range(_GROUPS):
        name = f"cp_async_wait_group_{open_groups}"
        yield Instruction(name, "cp.async.wait_group", form=str(open_groups), volatile=True, memory=True)


def _ordered() -> Iterator[Instruction]:
    for space, kind in product(SCOPES, ("u8", "b16", "b32", "b64")):
        register, ctype = KINDS[kind]
        for order in ("relaxed", "acquire"):
            opcode = f"ld.{order}.{SCOPES[space]}.{space}.{kind}"
            result = PtxOperand("d", register, 0, "result", "unsigned short" if kind == "u8" else ctype)
            address = PtxOperand("p", role=space, ctype=f"const {ctype}")
            yield Instruction(function_name(opcode), opcode, (result, address), "{d}, {p}", volatile=True, memory=True)
        for order in ("relaxed", "release"):
            opcode = f"st.{order}.{SCOPES[space]}.{space}.{kind}"
            operands = (PtxOperand("p", role=space, ctype=ctype), PtxOperand("x", register, ctype=_passed(ctype)))
            yield Instruction(function_name(opcode), opcode, operands, "{p}, {x}", volatile=True, memory=True)


def _passed(ctype: str) -> str:
    """Return the type of a parameter that a 16-bit register can hold."""
    return "unsigned short" if ctype == "unsigned char" else ctype


def _updates() -> Iterator[Instruction]:
    for space, order in product(SCOPES, ("", "acquire", "release", "acq_rel")):
        for op, kinds in _UPDATES.items():
            for kind in kinds:
                yield _atom(space, order, op, kind)
        for kind, arch in _HALF_ACCUMULATORS.items():
            yield _atom(space, order, "add.noftz", kind, arch)
        for kind in ("b16", "b32", "b64"):
            yield _cas(space, order, kind)
    for space, order in product(SCOPES, ("", "release")):
        for op, kinds in _UPDATES.items():
            if op != "exch":
                for kind in kinds:
                    yield _red(space, order, op, kind)
        for kind, arch in _HALF_ACCUMULATORS.items():
            # Only for shared memory with 16 bits is there no such instruction.
            if space == "global":
                yield _red(space, order, "add.noftz", kind, arch)


def _qualified(head: str, order: str, space: str, rest: str) -> str:
    return ".".join([head, *([order, SCOPES[space]] if order else []), space, rest])


def _atom(space: str, order: str, op: str, kind: str, arch: str = "sm_80") -> Instruction:
    opcode = _qualified("atom", order, space, f"{op}.{kind}")
    register, ctype = KINDS[kind]
    operands = (
        PtxOperand("old", register, 0, "result", ctype),
        PtxOperand("p", role=space, ctype=ctype),
        PtxOperand("x", register, ctype=ctype),
    )
    return Instruction(function_name(opcode), opcode, operands, "{old}, {p}, {x}", arch, volatile=True, memory=True)


def _cas(space: str, order: str, kind: str) -> Instruction:
    opcode = _qualified("atom", order, space, f"cas.{kind}")
    register, ctype = KINDS[kind]
    operands = (
        PtxOperand("old", register, 0, "result", ctype),
        PtxOperand("p", role=space, ctype=ctype),
        PtxOperand("expected", register, ctype=ctype),
        PtxOperand("x", register, ctype=ctype),
    )
    form = "{old}, {p}, {expected}, {x}"
    return Instruction(function_name(opcode), opcode, operands, form, volatile=True, memory=True)


def _red(space: str, order: str, op: str, kind: str, arch: str = "sm_80") -> Instruction:
    opcode = _qualified("red", order, space, f"{op}.{kind}")
    register, ctype = KINDS[kind]
    operands = (PtxOperand("p", role=space, ctype=ctype), PtxOperand("x", register, ctype=ctype))
    return Instruction(function_name(opcode), opcode, operands, "{p}, {x}", arch, volatile=True, memory=True)


def _fences() -> Iterator[Instruction]:
    for order, scope in product(("acq_rel", "sc"), ("cta", "gpu", "sys")):
        opcode = f"fence.{order}.{scope}"
        yield Instruction(function_name(opcode), opcode, volatile=True, memory=True)
    for scope in ("cta", "gl", "sys"):
        yield Instruction(f"membar_{scope}", f"membar.{scope}", volatile=True, memory=True)
    pair = (PtxOperand("id", ctype="int"), PtxOperand("threads", ctype="int"))
    for name in ("bar.sync", "bar.arrive", "barrier.sync"):
        yield Instruction(function_name(name), name, pair, "{id}, {threads}", volatile=True, memory=True)
    mask = (PtxOperand("mask"),)
    yield Instruction("bar_warp_sync", "bar.warp.sync", mask, "{mask}", volatile=True, memory=True)
