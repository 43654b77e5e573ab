"""Kernel source in parts, and their assembly for ``mx.fast.metal_kernel``: a header and a body.

MLX writes the head of the kernel itself. It finds out what to declare by looking for words in the body, anywhere in it,
also within longer words: twenty names of built-in values, and ``NAME_shape``, ``NAME_strides`` and ``NAME_ndim`` of
every input. So its parameters get names that occur nowhere in the text, the body begins by binding those of the kernel
to them, and longer words of the text that contain the name of a built-in value are replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.errors.base import InternalError
from tile_core.records import dataclass

BODY, HEAD = "metal.body", "metal.head"
"""Attributes of the facts: the 1-based lines at which the kernel's body and its head begin."""

ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}
"""What MLX declares where its name occurs in a body (``metal_kernel.cpp``)."""

CONSTANT_BELOW = 8
"""Inputs of fewer elements are declared in the constant address space."""

Role = Literal["input", "renewed", "output"]

_ARRAY = re.compile(r"(?P<type>device (?:const )?\w+\*)(?: __restrict)? (?P<name>\w+) \[\[buffer\((?P<at>\d+)\)\]\]")
_STRUCT = re.compile(r"constant (?P<type>\w+)& (?P<name>\w+) \[\[buffer\((?P<at>\d+)\)\]\]")
_BUILTIN = re.compile(r"(?P<type>\w+) (?P<name>\w+) \[\[(?P<attribute>\w+)\]\]")
_SLAB = re.compile(r"^ *alignas\(16\) threadgroup uchar smem\[(?P<bytes>\d+)\];\n", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class TextParts:
    """A text in parts.

    Attributes
    ----------
    header
        What stands before the kernel.
    arrays
        Name and type of each array in order, for example ``("A", "device const half*")``.
    restricted
        Names of the arrays that share no memory with others.
    struct
        Type of the structure of scalars; empty if there are none.
    builtins
        Names of the built-in values that the kernel declares.
    body
        What stands between its braces.
    """

    header: str
    arrays: tuple[tuple[str, str], ...]
    restricted: frozenset[str]
    struct: str
    builtins: frozenset[str]
    body: str

    @property
    def digest(self) -> str:
        """Return a short text that differs for other texts."""
        return hashlib.sha256(f"{self.header}{self.arrays}{self.body}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class ArraySlot:
    """The way one array of a kernel is passed in a form of launch.

    Attributes
    ----------
    role
        An input that is read, an input whose content the kernel changes, or an output.
    offset
        Bytes from the start of what is passed to the first element; ``None`` if it is an array of the elements.
    """

    role: Role
    offset: int | None = None


@dataclass(frozen=True)
class MlxSource:
    """The arguments of ``mx.fast.metal_kernel``.

    Attributes
    ----------
    header, source
        As it calls them.
    inputs, outputs
        Names of its parameters: arrays in order, the scalars as the last input, the token as the last output.
    token
        Whether there is an extra output that signals the completion of the kernel.
    """

    header: str
    source: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    token: bool


def split(kernel: KernelText) -> TextParts:
    """Take a text apart.

    Raises
    ------
    InternalError
        It is not laid out as the emitter of this package does.
    """
    facts, lines = kernel.facts, kernel.text.rstrip("\n").split("\n")
    try:
        head, body = int(facts.attributes[HEAD]), int(facts.attributes[BODY])
    except KeyError as missing:
        raise _wrong(facts, f"the text of {facts.entry} lacks its {missing}") from None
    if not (1 <= head < body <= len(lines) and lines[-1] == "}" and lines[body - 2].rstrip().endswith(") {")):
        raise _wrong(facts, f"the text of {facts.entry} has no body from line {body}")
    declared = " ".join(lines[head - 1 : body - 1])
    arrays, restricted, struct, builtins = [], set(), "", set()
    for found in _ARRAY.finditer(declared):
        arrays.append((found["name"], found["type"]))
        if "__restrict" in found[0]:
            restricted.add(found["name"])
    for found in _STRUCT.finditer(declared):
        struct = found["type"]
    for found in _BUILTIN.finditer(declared):
        if found["name"] != found["attribute"] or ATTRIBUTES.get(found["name"]) != found["type"]:
            raise _wrong(facts, f"{found[0]} is not declared as mx.fast.metal_kernel does it")
        builtins.add(found["name"])
    pointers = [p.name for p in facts.params if p.kind == "pointer"]
    if [name for name, _ in arrays] != pointers or bool(struct) != (len(pointers) < len(facts.params)):
        raise _wrong(facts, f"the parameters of the text of {facts.entry} are not those of its facts: {declared}")
    return TextParts(
        "\n".join(lines[: head - 1]),
        tuple(arrays),
        frozenset(restricted),
        struct,
        frozenset(builtins),
        "\n".join(lines[body - 1 : -1]),
    )


def guarded(fast: TextParts, plain: TextParts, masks: Sequence[tuple[str, int]]) -> TextParts | None:
    """Join a text with a more general one for addresses that it does not serve.

    Parameters
    ----------
    fast, plain
        The text that assumes an alignment, and the one that does not.
    masks
        Names of arrays, and bits that are zero in the addresses that the first one serves.

    Returns
    -------
    TextParts or None
        ``None`` if the texts have different parameters or language options.
    """
    header = _joined(fast.header, plain.header)
    if header is None or (fast.arrays, fast.struct) != (plain.arrays, plain.struct):
        return None
    # Only a kernel's outermost block may declare threadgroup memory.
    slabs = [found[0] for parts in (fast, plain) for found in _SLAB.finditer(parts.body)]
    slab = max(slabs, key=lambda line: int(_SLAB.match(line)["bytes"]), default="")  # type: ignore[index]
    bits = " | ".join(f"((ulong){name} & {mask}ul)" for name, mask in masks)
    branches = [_SLAB.sub("", parts.body).replace("\n", "\n  ") for parts in (fast, plain)]
    body = f"{slab}  if (({bits}) == 0ul) {{\n  {branches[0]}\n  }}\n  else {{\n  {branches[1]}\n  }}"
    return replace(
        fast,
        header=header,
        restricted=fast.restricted & plain.restricted,
        builtins=fast.builtins | plain.builtins,
        body=body,
    )


def _joined(first: str, second: str) -> str | None:
    """Return a header with the definitions of both, or ``None`` if they set other options."""
    (head, *definitions), (other, *more) = first.split("\n\n"), second.split("\n\n")
    options, others = ([x for x in h.split("\n") if not x.startswith("#include")] for h in (head, other))
    if options != others:
        return None
    missing = [x for x in other.split("\n") if x.startswith("#include") and x not in head.split("\n")]
    at = 0
    for definition in more:
        if definition not in definitions:
            definitions.insert(at, definition)
        at = definitions.index(definition) + 1
    return "\n\n".join(["\n".join([*missing, head]), *definitions])


def mlx_source(parts: TextParts, slots: Sequence[ArraySlot], words: int, threads: int) -> MlxSource:
    """Assemble the parts for one form of launch.

    Parameters
    ----------
    parts
        The text.
    slots
        How each array is passed.
    words
        64-bit words of the structure of scalars, 0 without one.
    threads
        Of a threadgroup.
    """
    header, body = _without_accidents(parts)
    prefix = _fresh("tile_arg", parts)
    inputs: list[str] = []
    outputs: list[str] = []
    bindings = []
    for i, ((name, kind), slot) in enumerate(zip(parts.arrays, slots, strict=True)):
        passed = f"{prefix}_{i}"
        (outputs if slot.role == "output" else inputs).append(passed)
        bindings.append(_binding(name, kind, passed, slot, name in parts.restricted))
    if parts.struct:
        passed = f"{prefix}_{len(parts.arrays)}"
        inputs.append(passed)
        space = f"{'constant' if words < CONSTANT_BELOW else 'device const'} {parts.struct}"
        bindings.append(f"  {space}& args = *({space}*){passed};")
    renewed = any(slot.role == "renewed" for slot in slots)
    token = renewed or not outputs
    if token:
        outputs.append(f"{prefix}_done")
    if renewed:
        # MLX declares every input const, and the compiler may assume that nothing in the kernel changes a const
        # buffer. The word is taken out of the head that MLX writes between header and source.
        header, bindings = header + "\n#define const\n", ["#undef const", *bindings]
    lines = "\n".join([*bindings, body])
    # MLX writes the kernel's head directly behind the header, so that an attribute at its end belongs to the kernel.
    header += f"\n[[max_total_threads_per_threadgroup({threads})]]"
    return MlxSource(header + "\n", f"\n{lines}\n", tuple(inputs), tuple(outputs), token)


def _binding(name: str, kind: str, passed: str, slot: ArraySlot, restricted: bool) -> str:
    source = passed
    if slot.offset is not None:
        byte = "device uchar*" if slot.role != "input" else "device const uchar*"
        source = f"(({byte}){passed} + {slot.offset})"
    return f"  {kind}{' __restrict' if restricted else ''} {name} = ({kind}){source};"


def _without_accidents(parts: TextParts) -> tuple[str, str]:
    """Return header and body without accidental occurrences of built-in names."""
    words = set(_WORD.findall(parts.body))
    hit = sorted(w for w in words - parts.builtins if any(a in w for a in ATTRIBUTES))
    if not hit:
        return parts.header, parts.body
    prefix = _fresh("tile_word", parts)
    names = {word: f"{prefix}_{i}" for i, word in enumerate(hit)}

    def renamed(text: str) -> str:
        return _WORD.sub(lambda found: names.get(found[0], found[0]), text)

    return renamed(parts.header), renamed(parts.body)


def _fresh(prefix: str, parts: TextParts) -> str:
    while prefix in parts.body or prefix in parts.header:
        prefix += "x"
    return prefix


def _wrong(facts: LaunchFacts, detail: str) -> InternalError:
    return InternalError(stage="loading", detail=detail, where=facts.where)
