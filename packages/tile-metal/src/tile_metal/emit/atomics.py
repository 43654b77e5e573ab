"""Functions that update, read or write one element of memory atomically.

MSL has them for 32-bit integers in device and threadgroup memory, and the sum of floats in device memory, all relaxed
(MSL specification, "Atomic Functions"). The others compare and exchange the word that holds the element; the rest of
the word is put back as it was, whoever owns it. Elements of less than a word are given by an array, which begins at a
word, and an index.
"""

from __future__ import annotations

from tile_metal.emit.helper import Helper
from tile_metal.emit.names import TYPES

KINDS = ("add", "max", "min")
#: Updates of single bits -> their operators.
BITS = {"and": "&", "or": "|", "xor": "^"}
#: Stores of a value below 16 to one half of a byte, whose other half another thread may store.
HALVES = {"low": "(uchar)((before & 0xf0) | by)", "high": "(uchar)((before & 0x0f) | (by << 4))"}
SPACES = ("device", "threadgroup")
WORDS = ("int32", "uint32", "float32")
SMALL = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16")
_BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "float16": 16, "bfloat16": 16}
_RELAXED = "memory_order_relaxed"


def update_name(kind: str, dtype: str, space: str) -> str:
    """Return the function that updates an element and returns what it was."""
    return f"atomic_{kind}_{dtype}_{space}"


def load_name(dtype: str, space: str) -> str:
    """Return the function that reads an element."""
    return f"atomic_load_{dtype}_{space}"


def store_name(dtype: str, space: str) -> str:
    """Return the function that writes an element."""
    return f"atomic_store_{dtype}_{space}"


def is_small(name: str) -> bool:
    """Whether a function takes an array and an index instead of an address."""
    return name.startswith("atomic_") and name.split("_")[2] in SMALL


def _combined(kind: str, dtype: str) -> tuple[str, tuple[str, ...]]:
    """Return the new value of ``before`` and ``by``, and the functions that it needs."""
    if kind in HALVES:
        return HALVES[kind], ()
    if kind in BITS:
        return f"({TYPES[dtype]})(before {BITS[kind]} by)", ()
    if dtype in ("float16", "bfloat16"):
        a, b, own = "(float)before", "(float)by", TYPES[dtype]
        inner = f"{a} + {b}" if kind == "add" else f"{kind}_f32({a}, {b})"
        return f"({own})({inner})", (() if kind == "add" else (f"{kind}_f32",))
    if dtype == "float32":
        return ("before + by", ()) if kind == "add" else (f"{kind}_f32(before, by)", (f"{kind}_f32",))
    if kind == "add":
        return f"({TYPES[dtype]})(before + by)", ()
    return f"before {'<' if kind == 'max' else '>'} by ? by : before", ()


def _native(kind: str, dtype: str, space: str) -> Helper:
    own = TYPES[dtype]
    text = f"""static inline {own} {update_name(kind, dtype, space)}({space} {own}* x, {own} by) {{
  return atomic_fetch_{kind}_explicit(({space} atomic_{own}*)x, by, {_RELAXED});
}}"""
    return Helper(update_name(kind, dtype, space), text)


def _exchanged(kind: str, space: str) -> Helper:
    value, needs = _combined(kind, "float32")
    text = f"""static inline float {update_name(kind, "float32", space)}({space} float* x, float by) {{
  {space} atomic_uint* const word = ({space} atomic_uint*)x;
  uint found = atomic_load_explicit(word, {_RELAXED});
  float before;
  uint fresh;
  do {{
    before = as_type<float>(found);
    fresh = as_type<uint>({value});
  }} while (!atomic_compare_exchange_weak_explicit(word, &found, fresh, {_RELAXED}, {_RELAXED}));
  return before;
}}"""
    return Helper(update_name(kind, "float32", space), text, needs)


def _update_small(kind: str, dtype: str, space: str) -> Helper:
    """An update of a part of a word: ``store`` ignores the previous value."""
    own, bits = TYPES[dtype], _BITS[dtype]
    code = f"u{'char' if bits == 8 else 'short'}"
    value, needs = ("by", ()) if kind == "store" else _combined(kind, dtype)
    result, back = ("void", "") if kind == "store" else (own, "\n  return before;")
    name = store_name(dtype, space) if kind == "store" else update_name(kind, dtype, space)
    each = 32 // bits
    mask = f"0x{(1 << bits) - 1:x}u"
    text = f"""static inline {result} {name}({space} {own}* x, int index, {own} by) {{
  {space} atomic_uint* const word = ({space} atomic_uint*)x + index / {each};
  const uint shift = (uint)(index % {each}) * {bits}u;
  uint found = atomic_load_explicit(word, {_RELAXED});
  {own} before;
  uint fresh;
  do {{
    before = as_type<{own}>(({code})(found >> shift));
    const {own} after = {value};
    fresh = (found & ~({mask} << shift)) | ((uint)as_type<{code}>(after) << shift);
  }} while (!atomic_compare_exchange_weak_explicit(word, &found, fresh, {_RELAXED}, {_RELAXED}));{back}
}}"""
    return Helper(name, text, needs)


def _load_small(dtype: str, space: str) -> Helper:
    own, bits = TYPES[dtype], _BITS[dtype]
    code, each = f"u{'char' if bits == 8 else 'short'}", 32 // bits
    text = f"""static inline {own} {load_name(dtype, space)}({space} const {own}* x, int index) {{
  const uint found = atomic_load_explicit(({space} const atomic_uint*)x + index / {each}, {_RELAXED});
  return as_type<{own}>(({code})(found >> ((uint)(index % {each}) * {bits}u)));
}}"""
    return Helper(load_name(dtype, space), text)


def _word(dtype: str) -> tuple[str, str, str]:
    """Return a word's atomic type, and conversions of an element to and from it."""
    own = TYPES[dtype]
    return ("uint", "as_type<uint>({})", "as_type<float>({})") if dtype == "float32" else (own, "{}", "{}")


def _load_word(dtype: str, space: str) -> Helper:
    word, _, back = _word(dtype)
    found = f"atomic_load_explicit(({space} const atomic_{word}*)x, {_RELAXED})"
    text = f"""static inline {TYPES[dtype]} {load_name(dtype, space)}({space} const {TYPES[dtype]}* x) {{
  return {back.format(found)};
}}"""
    return Helper(load_name(dtype, space), text)


def _store_word(dtype: str, space: str) -> Helper:
    word, to, _ = _word(dtype)
    text = f"""static inline void {store_name(dtype, space)}({space} {TYPES[dtype]}* x, {TYPES[dtype]} by) {{
  atomic_store_explicit(({space} atomic_{word}*)x, {to.format("by")}, {_RELAXED});
}}"""
    return Helper(store_name(dtype, space), text)


def _float_update(kind: str, space: str) -> Helper:
    return _native(kind, "float32", space) if (kind, space) == ("add", "device") else _exchanged(kind, space)


HELPERS: tuple[Helper, ...] = (
    *(_native(k, d, s) for k in (*KINDS, *BITS) for d in ("int32", "uint32") for s in SPACES),
    *(_float_update(k, s) for k in KINDS for s in SPACES),
    *(_update_small(k, d, s) for k in (*KINDS, "store") for d in SMALL for s in SPACES),
    *(_update_small(k, d, s) for k in BITS for d in SMALL if "int" in d for s in SPACES),
    *(_update_small(k, "uint8", s) for k in HALVES for s in SPACES),
    *(_load_small(d, s) for d in SMALL for s in SPACES),
    *(_load_word(d, s) for d in WORDS for s in SPACES),
    *(_store_word(d, s) for d in WORDS for s in SPACES),
)
