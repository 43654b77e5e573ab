"""Atomic functions of the text: an instruction, or a compare-and-swap loop.

``clang`` makes of one on 8 or 16 bits one on the aligned word that holds them, whose other bytes keep what they hold.
"""

from __future__ import annotations

STORED = {"float16": "uint16", "bfloat16": "uint16"}
"""Element types whose values are codes in the text."""
_TYPES = {
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
    "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
#: How a float is made of the bits that are exchanged, and back.
_BITS = {
    "float16": ("unsigned short", "f32_of_f16({})", "f16_of_f32({})", ("f32_of_f16", "f16_of_f32")),
    "bfloat16": ("unsigned short", "f32_of_bf16({})", "bf16_of_f32({})", ("f32_of_bf16", "bf16_of_f32")),
    "float32": ("unsigned", "__builtin_bit_cast(float, {})", "__builtin_bit_cast(unsigned, {})", ()),
    "float64": ("unsigned long", "__builtin_bit_cast(double, {})", "__builtin_bit_cast(unsigned long, {})", ()),
}
_NUMBERS = {"float16": "float", "bfloat16": "float", "float32": "float", "float64": "double"}
#: The maximum and minimum of two floats, where NaN is ignored.
_STEPS = {
    "add": "was + by", "max": "by != by || before(by, was) ? was : by", "min": "by != by || before(was, by) ? was : by",
}  # fmt: skip
#: Updates of single bits; integers have instructions for them.
_BIT_KINDS = ("and", "or", "xor")
_HALVES = {"low": "(old & 0xf0) | x", "high": "(old & 0x0f) | (x << 4)"}
_START = "static __device__ inline"
_SCOPE = "__HIP_MEMORY_SCOPE_AGENT"
#: In a loop the order is that of the exchange.
_LOOP = """\
static __device__ inline {kind} {name}({kind}* p, {kind} x) {{
  {bits}* const at = ({bits}*)p;
  {bits} old = __hip_atomic_load(at, __ATOMIC_RELAXED, {scope}), next;
  do {{
{step}
  }} while (!__hip_atomic_compare_exchange_strong(at, &old, next, {order}, __ATOMIC_RELAXED, {scope}));
  return {result};
}}"""


ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
"""Memory orders, as the language and the macros of clang name them."""


def name_of(kind: str, dtype: str, order: str) -> str:
    """Return the name of a function.

    ``kind`` is an update, ``"load"``, ``"store"``, or ``"low"`` and ``"high"``.
    """
    return f"atomic_{kind}_{dtype}_{order}"


def function(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the text of a function of `name_of`, and its callees; else ``None``."""
    parts = name.split("_", 3)
    if len(parts) < 4 or parts[0] != "atomic":
        return None
    _, kind, dtype, order = parts
    c, memory = _TYPES[STORED.get(dtype, dtype)], f"__ATOMIC_{order.upper()}"
    head = f"{_START} {c} {name}({c}* p, {c} x)"
    if kind == "load":
        return f"{_START} {c} {name}(const {c}* p) {{ return __hip_atomic_load(p, {memory}, {_SCOPE}); }}", ()
    if kind == "store":
        return f"{_START} void {name}({c}* p, {c} x) {{ __hip_atomic_store(p, x, {memory}, {_SCOPE}); }}", ()
    if kind in _HALVES:
        step = f"    next = ({c})({_HALVES[kind]});"
        return _LOOP.format(kind=c, bits=c, name=name, step=step, order=memory, scope=_SCOPE, result="old"), ()
    if "int" in dtype or (kind == "add" and dtype in ("float32", "float64")):
        return f"{head} {{ return __hip_atomic_fetch_{kind}(p, x, {memory}, {_SCOPE}); }}", ()
    bits, decode, encode, needs = _BITS[dtype]
    number = _NUMBERS[dtype]
    by = decode.format("x") if dtype in STORED else "x"
    result = f"({encode.format(_STEPS[kind])})"
    step = f"    const {number} was = {decode.format('old')}, by = {by};\n    next = {result[1:-1]};"
    back = "old" if dtype in STORED else decode.format("old")
    more = needs if kind == "add" else (*needs, "before")
    return _LOOP.format(kind=c, bits=bits, name=name, step=step, order=memory, scope=_SCOPE, result=back), more


NAMES = frozenset(
    name_of(kind, dtype, order) for kind in (*_STEPS, *_BIT_KINDS, "load", "store", *_HALVES)
    for dtype in (*_TYPES, *STORED) for order in ORDERS
)  # fmt: skip
"""All of their names, which no variable may have."""
