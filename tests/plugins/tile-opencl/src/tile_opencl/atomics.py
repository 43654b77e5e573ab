"""Atomic updates: the language's own functions, and loops that exchange the word around an element."""

from __future__ import annotations

from tile_core.ir import attributes, calls
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.atomics import Atomics
from tile_opencl.target import FLOATS, INTEGERS

#: How the functions of OpenCL C begin; those of 64 bits are an extension.
NATIVE = {"int32": "atomic_", "uint32": "atomic_", "int64": "atom_", "uint64": "atom_"}
#: The new element, of the old one and an operand; of two floats, NaN loses against a number and -0 comes before +0.
RESULTS = {
    **{kind: f"old {sign} by" for kind, sign in (("add", "+"), ("and", "&"), ("or", "|"), ("xor", "^"))},
    "max": "isnan(by) || by < old || (by == old && signbit(by)) ? old : by",
    "min": "isnan(by) || old < by || (by == old && signbit(old)) ? old : by",
    "store": "by",
    "low_half": "(old & 0xf0) | by",
    "high_half": "(old & 0x0f) | (by << 4)",
}
#: The word that holds an element is replaced until no other thread has changed it in between. The runtime's buffers are
#: made of whole words.
HELPER = """
static {type} {name}(volatile {space} {type}* p, {type} by) {{
  const size_t inside = (size_t)p % sizeof({word});
  volatile {space} {word}* const at = (volatile {space} {word}*)((size_t)p - inside);
  const {word} shift = 8 * inside, mask = ({word})({code})~({code})0 << shift;
  for ({word} found = *at;;) {{
    const {type} old = as_{type}(({code})(found >> shift));
    const {word} fresh = (found & ~mask) | ({word})as_{code}(({type})({result})) << shift;
    const {word} seen = {exchange}(at, found, fresh);
    if (seen == found) return old;
    found = seen;
  }}
}}
"""


def space_of(scope):
    """Return the address space of a buffer that several threads see."""
    return "local" if scope.startswith("shared") else "global"


def helper(name, types):
    """Return the text of a function that an instruction names ``<kind>_<dtype>_<space>``, or nothing."""
    *kind, dtype, space = name.split("_")
    result = RESULTS.get("_".join(kind))
    if result is None:
        return ""
    if dtype in INTEGERS and kind[0] in ("max", "min"):
        result = f"by {'<' if kind[0] == 'max' else '>'} old ? old : by"
    bits = int(dtype.strip("uintfloa"))
    word, exchange = ("ulong", "atom_cmpxchg") if bits == 64 else ("uint", "atomic_cmpxchg")
    return HELPER.format(**locals(), type=types[dtype], code=types[f"uint{bits}"])


def split_byte(buffer, indices, code, half):
    """Store half a byte whose other half another thread may store."""
    name = f"{half}_half_uint8_{space_of(buffer.scope())}"
    return calls.execute(name, [calls.address(buffer, indices, "a"), code])


class OpenClAtomics(Atomics):
    """Emit each operation as a call; ``"a"`` marks the address of an atomic access."""

    def accepts(self, call, ctx):
        dtype, order = call.args[0].dtype, str(call.attrs[attributes.ORDER])
        if dtype not in (*INTEGERS, *FLOATS):
            return Reject(f"there are no atomics of {dtype} in OpenCL C; nearest legal: float32")
        if order != "relaxed":
            return Reject(f"OpenCL C 1.2 has no memory_order={order!r}; nearest legal: 'relaxed'")
        return Accept()

    def update(self, call, dst, at, value, ctx):
        return calls.execute(self.name(call, dst), [calls.address(dst.buffer, at, "a"), value], call.span)

    def fetch(self, call, dst, at, value, ctx):
        return None, calls.instruction(self.name(call, dst), [calls.address(dst.buffer, at, "a"), value], dst.dtype)

    def load(self, call, src, at, ctx):
        return None, calls.instruction("volatile_load", [calls.address(src.buffer, at, "a")], src.dtype)

    def store(self, call, dst, at, value, ctx):
        name = f"store_{dst.dtype}_{space_of(dst.scope)}"
        return calls.execute(name, [calls.address(dst.buffer, at, "a"), value], call.span)

    def name(self, call, dst):
        """Return the function that updates an element."""
        kind = call.attrs[attributes.KIND]
        return f"{NATIVE[dst.dtype]}{kind}" if dst.dtype in NATIVE else f"{kind}_{dst.dtype}_{space_of(dst.scope)}"
