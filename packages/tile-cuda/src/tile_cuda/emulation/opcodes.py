"""PTX instructions with a model, and the architectures that have them.

An opcode is written in full, as in PTX. Its model is a function of namespace ``ptx`` that is named like it, with
underscores; where an opcode only names an order, a scope or a part of memory, those are template arguments.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import product

from tile_core.records import dataclass
from tile_cuda.emulation import async_opcodes, tensor_opcodes, wgmma_opcodes
from tile_cuda.emulation.asm import Refused


@dataclass(frozen=True)
class Arch:
    """An architecture ``sm_90a``: its number, and ``a`` or ``f`` for specific features."""

    number: int
    suffix: str = ""

    @staticmethod
    def of(text: str) -> Arch:
        """Read ``sm_90a`` or ``90a``."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d+)([af]?)", text)
        if found is None:
            raise ValueError(f"{text!r} is not an architecture, such as sm_80 or sm_90a")
        return Arch(int(found[1]), found[2])

    def has(self, need: Arch) -> bool:
        """Whether it has what ``need`` is the first to have."""
        if need.suffix:
            return (self.number, self.suffix) == (need.number, need.suffix)
        return self.number >= need.number

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"


@dataclass(frozen=True)
class Model:
    """The model of an instruction: its function, and the first architecture that has the instruction.

    Attributes
    ----------
    call
        The function.
    need
        The first architecture that has the instruction.
    others
        Architectures that have it although they do not have all that ``need`` is the first to have.
    """

    call: str
    need: Arch
    others: tuple[Arch, ...] = ()

    def is_of(self, arch: Arch) -> bool:
        """Whether an architecture has the instruction."""
        return arch.has(self.need) or arch in self.others

    def where(self) -> str:
        """Return the architectures to name when another one is refused."""
        return ", ".join(str(arch) for arch in (self.need, *self.others))


def model_of(opcode: str) -> Model | None:
    """Return the model of an opcode, if there is one."""
    if opcode.startswith("wgmma."):
        call = wgmma_opcodes.call_of(opcode)
        return None if call is None else Model(call, Arch(90, "a"))
    return _table().get(opcode) or _of_memory(opcode)


def finder(arch: Arch) -> _Finder:
    """Return the look-up of the function for an opcode on an architecture."""
    return _Finder(arch)


def opcodes() -> tuple[str, ...]:
    """Opcodes with a model, without those with orders, scopes and state spaces."""
    return tuple(_table())


@dataclass(frozen=True)
class _Finder:
    arch: Arch

    def __call__(self, opcode: str) -> str:
        model = model_of(opcode)
        if model is None:
            raise Refused(f"there is no model of the PTX instruction {opcode}")
        if not model.is_of(self.arch):
            raise Refused(f"{self.arch} does not have the PTX instruction {opcode}: it needs {model.where()}")
        return model.call


# ------------------------------------------------------------------------------------------------------------ the table

SM80, SM89, SM90, SM100, SM120A = Arch(80), Arch(89), Arch(90), Arch(100), Arch(120, "a")
TENSOR_MEMORY = (Arch(100, "a"), Arch(100, "f"), Arch(103, "a"), Arch(110, "a"))
GROUPS_OF_REGISTERS = (Arch(90, "a"), (Arch(100, "a"), Arch(103, "a"), Arch(110, "a"), Arch(120, "a")))
INT8 = ("s8", "u8")
FP8 = ("e4m3", "e5m2")
HALVES = ("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32")


@functools.cache
def _table() -> dict[str, Model]:
    rows = (
        *_matrices(),
        *_products(),
        *_sparse_products(),
        *_copies(),
        *_conversions(),
        *_packed(),
        *_threads(),
        *_integers(),
    )
    table = {opcode: Model(_function(opcode), need) for opcode, need in rows}
    table |= {opcode: Model(call, SM120A) for opcode, call in _scaled_products()}
    table |= {opcode: Model(call, SM90) for opcode, call in async_opcodes.rows()}
    table |= {opcode: Model(call, SM100) for opcode, call in async_opcodes.sm_100_rows()}
    for change in ("inc", "dec"):
        table[f"setmaxnreg.{change}.sync.aligned.u32"] = Model("setmaxnreg", *GROUPS_OF_REGISTERS)
    first, *others = TENSOR_MEMORY
    table |= {opcode: Model(call, first, tuple(others)) for opcode, call in async_opcodes.four_rows()}
    for opcode, call, archs in tensor_opcodes.rows(TENSOR_MEMORY):
        table[opcode] = Model(call, archs[0], tuple(archs[1:]))
    return table | {opcode: Model(call, SM80) for opcode, call in async_opcodes.sm_80_rows()}


def _function(opcode: str) -> str:
    return re.sub(r"\W+", "_", opcode)


def _matrices() -> Iterator[tuple[str, Arch]]:
    for count, trans in product((1, 2, 4), ("", ".trans")):
        yield f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", SM80
        yield f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", SM90
    yield "movmatrix.sync.aligned.m8n8.trans.b16", SM80


def _products() -> Iterator[tuple[str, Arch]]:
    head = "mma.sync.aligned"
    for k, types in product((8, 16), HALVES):
        yield f"{head}.m16n8k{k}.row.col.{types}", SM80
    for k in (4, 8):
        yield f"{head}.m16n8k{k}.row.col.f32.tf32.tf32.f32", SM80
    for k, saturates, a, b in product((16, 32), ("", ".satfinite"), INT8, INT8):
        yield f"{head}.m16n8k{k}.row.col{saturates}.s32.{a}.{b}.s32", SM80
    for k, c, a, b in product((16, 32), ("f32", "f16"), FP8, FP8):
        yield f"{head}.m16n8k{k}.row.col.{c}.{a}.{b}.{c}", SM89
    yield f"{head}.m8n8k4.row.col.f64.f64.f64.f64", SM80


def _sparse_products() -> Iterator[tuple[str, Arch]]:
    head = "mma.sp::ordered_metadata.sync.aligned"
    for k, types in product((16, 32), HALVES):
        yield f"{head}.m16n8k{k}.row.col.{types}", SM80
    for k in (8, 16):
        yield f"{head}.m16n8k{k}.row.col.f32.tf32.tf32.f32", SM80
    for k, saturates, a, b in product((32, 64), ("", ".satfinite"), INT8, INT8):
        yield f"{head}.m16n8k{k}.row.col{saturates}.s32.{a}.{b}.s32", SM80
    for a, b in product(FP8, FP8):
        yield f"{head}.m16n8k64.row.col.f32.{a}.{b}.f32", SM89


def _scaled_products() -> Iterator[tuple[str, str]]:
    """Table 36: kind, types, scales, and how many of a row an instruction takes."""
    head = "mma.sync.aligned"
    for a, b in product(FP8, FP8):
        opcode = f"{head}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0"
        yield opcode, f"mma_scaled<ptx::{a.capitalize()}, ptx::{b.capitalize()}, 8, ptx::UE8M0, 1>"
    for kind, count, scale in (("mxf4", 2, "ue8m0"), ("mxf4nvf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")):
        opcode = f"{head}.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{count}X.f32.e2m1.e2m1.f32.{scale}"
        yield opcode, f"mma_scaled<ptx::E2m1, ptx::E2m1, 4, ptx::{scale.upper()}, {count}>"


def _copies() -> Iterator[tuple[str, Arch]]:
    for head, hint in product(("cp.async.ca.shared.global", "cp.async.cg.shared.global"), ("", ".L2::128B")):
        yield head + hint, SM80
    for name in ("commit_group", "wait_group", "wait_all"):
        yield f"cp.async.{name}", SM80


def _conversions() -> Iterator[tuple[str, Arch]]:
    for name in ("f32.f16", "rn.f16.f32", "f32.bf16", "rn.bf16.f32", "rna.tf32.f32", "f64.f16", "rn.f16.f64",
                 "f64.f32", "rn.f32.f64", "rn.f16x2.f32", "rn.bf16x2.f32"):  # fmt: skip
        yield f"cvt.{name}", SM80
    for name in FP8:
        yield f"cvt.rn.f16x2.{name}x2", SM89
        yield f"cvt.rn.satfinite.{name}x2.f32", SM89
        yield f"cvt.rn.satfinite.{name}x2.f16x2", SM89
    yield "cvt.rn.tf32.f32", SM90
    yield "cvt.rn.f16.bf16", SM90


def _packed() -> Iterator[tuple[str, Arch]]:
    for kind, need in (("f16x2", SM80), ("bf16x2", SM90)):
        yield from ((f"{op}.rn.{kind}", need) for op in ("add", "sub", "mul"))
        yield from ((f"set.{relation}.u32.{kind}", need) for relation in ("lt", "le", "gt", "ge", "eq"))
        yield f"fma.rn.{kind}", SM80
        yield from ((f"{op}.{kind}", SM80) for op in ("max", "min", "max.NaN", "min.NaN"))
    yield from (("neg.f16x2", SM80), ("abs.f16x2", SM80))


def _threads() -> Iterator[tuple[str, Arch]]:
    for name in ("idx", "up", "down", "bfly"):
        yield f"shfl.sync.{name}.b32", SM80
    for name in ("all.pred", "any.pred", "uni.pred", "ballot.b32"):
        yield f"vote.sync.{name}", SM80
    for name in ("activemask.b32", "bar.sync", "barrier.sync", "barrier.sync.aligned", "bar.arrive", "barrier.arrive",
                 "barrier.arrive.aligned", "bar.warp.sync"):  # fmt: skip
        yield name, SM80
    for scope in ("cta", "gl", "sys"):
        yield f"membar.{scope}", SM80
    for order, scope in product(("acq_rel", "sc"), ("cta", "gpu", "sys")):
        yield f"fence.{order}.{scope}", SM80


_APPROXIMATE = ("div.full.f32", "rcp.approx.ftz.f32", "sqrt.approx.f32", "ex2.approx.ftz.f32")


def _integers() -> Iterator[tuple[str, Arch]]:
    for a, b in product(("s32", "u32"), ("s32", "u32")):
        yield f"dp4a.{a}.{b}", SM80
    yield from ((name, SM80) for name in ("prmt.b32", "lop3.b32", "selp.b32", "selp.u32", "selp.s32"))
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64", "pred"):
        yield f"mov.{kind}", SM80
    for relation, kind in product(("eq", "ne"), ("b32", "u32", "s32", "b64", "u64", "s64")):
        yield f"setp.{relation}.{kind}", SM80
    for relation, kind in product(("lt", "le", "gt", "ge"), ("u32", "s32", "u64", "s64")):
        yield f"setp.{relation}.{kind}", SM80
    yield from ((f"{kind}.{of}", SM80) for kind in ("max", "min") for of in ("NaN.f32", "f32", "f64", "u32"))
    yield from ((opcode, SM80) for opcode in _APPROXIMATE)
    yield "pmevent", SM80
    yield "trap", SM80


# --------------------------------------------------------------------------------------------------- accesses of memory

_ORDERS = {"weak": "WEAK", "volatile": "VOLATILE", "relaxed": "RELAXED", "acquire": "ACQUIRE", "release": "RELEASE",
           "acq_rel": "ACQ_REL"}  # fmt: skip
_SPACES = {"global": "GLOBAL", "shared": "SHARED", "shared::cta": "SHARED", "shared::cluster": "CLUSTER"}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_BITS = {f"{sign}{n}": f"ptx::{sign}{n}" for sign in "bus" for n in (8, 16, 32, 64)} | {"f32": "float", "f64": "double"}
_HALF_ACCUMULATORS = {"f16": SM80, "f16x2": SM80, "bf16": SM90, "bf16x2": SM90}
_ATOMS = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip


def _of_memory(opcode: str) -> Model | None:
    """The model of ``ld``, ``st``, ``atom`` and ``red`` with qualifiers in PTX order."""
    parts = opcode.split(".")
    head = parts.pop(0)
    legal = {
        "ld": ("weak", "volatile", "relaxed", "acquire"), "st": ("weak", "volatile", "relaxed", "release"),
        "atom": ("relaxed", "acquire", "release", "acq_rel"), "red": ("relaxed", "release"),
    }.get(head)  # fmt: skip
    if legal is None:
        return None
    order = parts.pop(0) if parts and parts[0] in legal else ""
    scoped = order in ("relaxed", "acquire", "release", "acq_rel")
    scope = parts.pop(0) if scoped and parts else ""
    if scoped and scope not in _SCOPES:
        return None
    if not scoped and head in ("atom", "red") and parts and parts[0] in _SCOPES:
        parts.pop(0)
    space = _SPACES[parts.pop(0)] if parts and parts[0] in _SPACES else "GENERIC"
    default = "WEAK" if head in ("ld", "st") else "RELAXED"
    of_block = "_CTA" if scope == "cta" else ""
    qualifiers = f"ptx::{_ORDERS.get(order, default)}{of_block}, ptx::{space}"
    return _access(head, parts, qualifiers, scoped) if head in ("ld", "st") else _atom(head, parts, qualifiers)


def _access(head: str, parts: list[str], qualifiers: str, scoped: bool) -> Model | None:
    if head == "ld" and parts and parts[0] == "nc" and "GLOBAL" in qualifiers and not scoped:
        parts = parts[1:]
    count = 1
    if parts and parts[0] in ("v2", "v4"):
        count = int(parts[0][1])
        parts = parts[1:]
    if len(parts) != 1 or parts[0] not in _BITS or (scoped and count > 1):
        return None
    bits = int(parts[0].lstrip("busf"))
    need = SM90 if "CLUSTER" in qualifiers else SM80
    return Model(f"{head}<{qualifiers}, {_BITS[parts[0]]}>", need) if count * bits <= 128 else None


def _atom(head: str, parts: list[str], qualifiers: str) -> Model | None:
    if len(parts) == 3 and parts[:2] == ["add", "noftz"] and parts[2] in _HALF_ACCUMULATORS:
        return Model(f"{head}<{qualifiers}, ptx::Add, ptx::{parts[2].title()}>", _HALF_ACCUMULATORS[parts[2]])
    if len(parts) != 2 or parts[1] not in _ATOMS.get(parts[0], ()):
        return None
    if head == "red" and parts[0] in ("exch", "cas"):
        return None
    if parts[0] == "cas":
        return Model(f"atom_cas<{qualifiers}, {_BITS[parts[1]]}>", SM80)
    return Model(f"{head}<{qualifiers}, ptx::{parts[0].title()}, {_BITS[parts[1]]}>", SM80)
