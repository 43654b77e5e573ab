"""Checks of MSL source for errors that only Apple's compiler would find.

Address spaces, names, missing functions.

The checks work on tokens, so a finding may be wrong about code that no printer generates; source without findings may
still be refused by Metal. Sources: Metal Shading Language Specification, "Language Restrictions", "Address Spaces" and
"Attributes"; for names in a kernel's body, ``mlx/backend/metal/custom_kernel.cpp`` of MLX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from tile_core.records import dataclass
from tile_metal.emit.names import LIBRARY_NAMES, MACROS
from tile_metal.emulation.tokens import (
    SPACES,
    FunctionTokens,
    Outline,
    Token,
    matching,
    matching_angle,
    outline,
    split,
    tokenize,
)
from tile_metal.lint.findings import Finding
from tile_metal.lint.words import (
    ATTRIBUTES,
    C_LIBRARY,
    LIBRARY,
    MATRICES,
    NO_WORDS,
    OTHERS,
    POSITIONS,
    SCALARS,
    SIZES,
    TEMPLATES,
    VECTORS,
    WORDS,
)

MOST_BUFFERS = 31
MOST_THREADGROUP_BYTES = 32768

_QUALIFIERS = SPACES | {"const", "volatile", "static", "inline", "constexpr", "struct", "typename", "metal", "::"}
_RESTRICT = frozenset({"__restrict__", "__restrict", "restrict", "const", "volatile"})
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_AFTER_TYPE = {
    **dict.fromkeys(("struct", "union", "enum"), ("{", ";", ":")),
    "using": ("=",), "typename": (",", ">", "="), "class": ("{", ";", ":", ",", ">", "="),
}  # fmt: skip
"""By the word before a type's name, what comes behind it."""
_ENDS_NAME = frozenset({"=", ";", ",", "[", "(", "{", ")", ":"})


@dataclass(frozen=True)
class _DeclaredName:
    """A declared name, with its address space.

    For a pointer or reference it is the space of the target.
    """

    name: Token
    pointer: bool
    array: bool
    space: str
    reference: bool = False


@dataclass
class _LintedText:
    """A text as the rules see it."""

    tokens: list[Token]
    code: list[Token]
    outline: Outline
    types: set[str]
    declared: list[_DeclaredName] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)  # index in `code` of each of them
    findings: list[Finding] = field(default_factory=list)

    def find(self, token: Token, rule: str, message: str) -> None:
        self.findings.append(Finding(token.line, rule, message))

    def word(self, i: int) -> str:
        return self.code[i].text if 0 <= i < len(self.code) else ""


def lint(text: str) -> tuple[Finding, ...]:
    """Return the findings in a source text, in the order of its lines.

    Parameters
    ----------
    text
        As it would be given to Metal's compiler.
    """
    tokens = tokenize(text)
    code = [t for t in tokens if t.kind != "directive"]
    read = _LintedText(tokens, code, outline(code), set(SCALARS | VECTORS | MATRICES | OTHERS))
    _collect_types(read)
    _declarations(read)
    for rule in (
        _language, _names, _attribute_names, _functions, _program_scope, _threadgroup_memory, _buffers,
        _spaces_of_values,
    ):  # fmt: skip
        rule(read)
    return tuple(sorted({*read.findings, *_characters(text)}))


def _collect_types(read: _LintedText) -> None:
    code = read.code
    for i, token in enumerate(code):
        after = read.word(i + 1)
        if read.word(i + 2) in _AFTER_TYPE.get(token.text, ()):
            read.types.add(after)
        elif token.text == "typedef":
            end = next((k for k in range(i, len(code)) if code[k].text == ";"), i)
            read.types.add(code[end - 1].text)


# ------------------------------------------------------------------------------------------------------ declarations


def _declarations(read: _LintedText) -> None:
    """Find all declared names, and pointers and references without an address space."""
    i = 0
    while i < len(read.code):
        i = _declaration(read, i) if _begins_type(read, i) else i + 1


def _begins_type(read: _LintedText, i: int) -> bool:
    token = read.code[i]
    if token.kind != "name" or read.word(i - 1) in (".", "->"):
        return False
    return token.text in read.types or (token.text in TEMPLATES and read.word(i + 1) == "<")


def _declaration(read: _LintedText, i: int) -> int:
    """Read what a type begins; returns where to go on."""
    first = i
    while first and read.word(first - 1) in _QUALIFIERS:
        first -= 1
    spaces = [t.text for t in read.code[first:i] if t.text in SPACES]
    j = i + 1
    if read.word(j) == "<" and (stop := matching_angle(read.code, j)) > 0:
        for k in range(j + 1, stop):  # arguments may be types with pointers
            if _begins_type(read, k):
                _declaration(read, k)
        j = stop + 1
    while read.word(j) in SCALARS:
        j += 1
    pointer, reference, space = False, False, spaces[-1] if spaces else ""
    while read.word(j) in SPACES | {"const", "volatile", "*", "&", "&&"}:
        word = read.word(j)
        if word in SPACES:
            space = word
        elif word not in ("const", "volatile"):
            if not space:
                shown = "a pointer" if word == "*" else "a reference"
                read.find(read.code[j], "address-space", f"{shown} to {read.word(i)} names no space of addresses")
            pointer, reference, behind = True, word != "*", space
            space = "thread"  # a pointer itself is a variable of the thread
            j += 1
            while read.word(j) in _RESTRICT:
                j += 1
            if read.word(j) in SPACES:
                space = read.word(j)
            elif read.word(j) in ("*", "&"):
                space = ""
            spaces = [behind]
            continue
        j += 1
    reach = spaces[-1] if spaces else ""
    _declarators(read, first, j, pointer, reference, reach)
    return max(j, i + 1)


def _declarators(read: _LintedText, first: int, j: int, pointer: bool, reference: bool, space: str) -> None:
    """Record the name after a type, and those after commas if it begins a statement."""
    token = read.code[j] if j < len(read.code) else None
    if token is None or token.kind != "name" or read.word(j + 1) not in _ENDS_NAME or token.text == "operator":
        return
    if read.word(first - 1) in (".", "->", "::"):
        return
    follows = read.word(j + 1)
    array = follows == "["
    read.declared.append(_DeclaredName(token, pointer, array, space, reference))
    read.positions.append(j)
    if read.word(first - 1) not in (";", "{", "}", "") or follows == "(":
        return
    at = j + 1
    while at < len(read.code) and read.word(at) not in (";", ")"):
        if read.word(at) in ("(", "[", "{"):
            at = matching(read.code, at)
        elif read.word(at) == "<" and (stop := matching_angle(read.code, at)) > 0:
            at = stop
        elif read.word(at) == "," and read.code[min(at + 1, len(read.code) - 1)].kind == "name":
            read.declared.append(_DeclaredName(read.code[at + 1], False, read.word(at + 2) == "[", space))
            read.positions.append(at + 1)
        at += 1


# --------------------------------------------------------------------------------------------------- words and names


def _characters(text: str) -> Iterator[Finding]:
    """Find non-ASCII characters, also in comments: MLX and torch pass text as ASCII."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.isascii():
            yield Finding(number, "ascii", f"{line.strip()[:60]!a} is not ASCII")


def _language(read: _LintedText) -> None:
    """Find keywords and functions of C++ and C that MSL lacks, 64-bit floats, strings."""
    own = {f.name.text for f in read.outline.functions}
    for i, token in enumerate(read.code):
        if token.kind == "string":
            read.find(token, "string", "MSL has no string literals")
        if token.kind != "name":
            continue
        called = read.word(i + 1) == "(" and read.word(i - 1) not in (".", "->")
        if token.text == "double" or token.text in ("double2", "double3", "double4"):
            read.find(token, "double", "MSL has no 64-bit floats")
        elif token.text in NO_WORDS or (token.text == "delete" and read.word(i - 1) != "="):
            read.find(token, "language", f"MSL has no '{token.text}'")
        elif token.text == "std" and read.word(i + 1) == "::":
            read.find(token, "c-library", "MSL has no namespace std")
        elif token.text in C_LIBRARY and called and token.text not in own:
            read.find(token, "c-library", f"MSL has no function {token.text}")
        elif token.text.endswith("_cooperative_tensor") and [read.word(i + 1), read.word(i + 2)] == ["<", "decltype"]:
            message = "from MSL 4.1 on the type of a variable has its address space: remove_addrspace_t<decltype(...)>"
            read.find(token, "address-space", message)
        elif token.text in ("atomic_ulong", "atomic_long"):
            read.find(token, "atomic", "only the newest GPUs have some atomic functions of 64 bits")
        elif token.text == "threadgroup" and (
            read.word(i + 1) == "atomic_float" or [read.word(i + k) for k in (1, 2, 3)] == ["atomic", "<", "float"]
        ):
            read.find(token, "atomic", "floats in threadgroup memory have no atomic functions")


def _names(read: _LintedText) -> None:
    """Find names that are keywords, or hide a function that is called."""
    reserved = WORDS | SCALARS | VECTORS | MATRICES | OTHERS | {"vec", "atomic", "simdgroup_matrix", "metal"}
    positions = set(read.positions)
    called = {
        t.text for i, t in enumerate(read.code)
        if t.text in LIBRARY | LIBRARY_NAMES and i not in positions and read.word(i + 1) == "("
        and read.word(i - 1) not in (".", "->", "::")
    }  # fmt: skip
    structures = [
        read.code[i + 1] for i, t in enumerate(read.code)
        if t.text in ("struct", "class", "union", "enum") and read.word(i + 2) in ("{", ":")
    ]  # fmt: skip
    for name in [*(d.name for d in read.declared), *structures, *(f.name for f in read.outline.functions)]:
        if name.text in reserved:
            read.find(name, "reserved", f"'{name.text}' is a word of the language")
        elif name.text in MACROS:
            read.find(name, "reserved", f"'{name.text}' is a macro of the library")
    for function in read.outline.functions:
        if function.name.text in LIBRARY:
            read.find(function.name, "reserved", f"'{function.name.text}' is a function of the library")
    functions = {f.name for f in read.outline.functions}
    for declared in read.declared:
        if declared.name.text in called and declared.name not in functions:
            read.find(declared.name, "reserved", f"'{declared.name.text}' hides a function that the text calls")
    for i, token in enumerate(read.code):  # of these words the declarations above do not see that they are names
        if token.text in SPACES and read.word(i + 1) in ("=", ";", "[", ")", ","):
            read.find(token, "reserved", f"'{token.text}' is a word of the language")
        after = read.word(i + 1)
        typed = token.text in (SCALARS | VECTORS) - {"unsigned", "signed"}
        if typed and after in reserved - WORDS and read.word(i + 2) in ("=", ";", "["):
            read.find(read.code[i + 1], "reserved", f"'{after}' is a word of the language")


def _attribute_names(read: _LintedText) -> None:
    """Find names that MLX itself declares when it generates a kernel's signature."""
    taken, arrays = set(), set()
    for function in read.outline.functions:
        if function.is_kernel:
            taken |= {p.name for p in function.parameters if (p.name, "") in p.attributes}
            arrays |= {p.name for p in function.parameters if any(t.text == "*" for t in p.tokens)}
    made = {f"{name}_{what}" for name in arrays for what in ("shape", "strides", "ndim")}
    for declared in read.declared:
        name = declared.name.text
        if name in made:
            read.find(declared.name, "metal-kernel-name", f"'{name}' is a name that mx.fast.metal_kernel declares")
        elif name in ATTRIBUTES and name not in taken:
            read.find(declared.name, "metal-kernel-name", f"'{name}' is a built-in attribute of mx.fast.metal_kernel")


# ------------------------------------------------------------------------------------------- functions and variables


def _functions(read: _LintedText) -> None:
    """Find functions of one name whose parameters differ only in address spaces."""
    seen: dict[tuple[str, ...], FunctionTokens] = {}
    for function in read.outline.functions:
        if function.open == function.close:
            continue
        shape = [function.name.text]
        for parameter in function.parameters:
            words = [t.text for t in split(parameter.tokens, "=")[0]]
            if parameter.name in words:
                words.remove(parameter.name)
            shape += [w for w in words if w not in SPACES and w not in _RESTRICT] + [","]
        if tuple(shape) in seen:
            message = f"{shape[0]} is defined twice, on the same types but for spaces of addresses"
            read.find(function.name, "defined-twice", message)
        seen[tuple(shape)] = function


def _program_scope(read: _LintedText) -> None:
    """Variables outside of functions are ``constant``."""
    passed = {"using", "typedef", "static_assert", "template", "struct", "class", "union", "enum", "namespace"}
    for statement in read.outline.outside:
        words = [t.text for t in statement]
        if not words or words[0] in passed or len(words) < 2:
            continue
        if "constant" not in words:
            read.find(statement[0], "program-scope", "a variable outside of functions must be 'constant'")
        elif "=" not in words and "{" not in words and "extern" not in words:
            read.find(statement[0], "program-scope", "a 'constant' variable needs a value")


def _threadgroup_memory(read: _LintedText) -> None:
    """Check that threadgroup variables are declared in kernels, and fit in threadgroup memory."""
    kernels = [f for f in read.outline.functions if f.is_kernel]
    totals = [0] * len(kernels)
    for declared, at in zip(read.declared, read.positions, strict=True):
        if declared.pointer or declared.space != "threadgroup":
            continue
        inside = [k for k, f in enumerate(kernels) if f.open < at < f.close]
        if not inside:
            read.find(declared.name, "threadgroup-memory", "threadgroup memory is declared in kernels only")
            continue
        totals[inside[0]] += _bytes(read, at)
        if totals[inside[0]] > MOST_THREADGROUP_BYTES:
            message = f"{totals[inside[0]]} bytes of threadgroup memory, there are {MOST_THREADGROUP_BYTES}"
            read.find(declared.name, "threadgroup-memory", message)


def _bytes(read: _LintedText, at: int) -> int:
    """The size of the array named at an index, if it is a constant."""
    kind = read.word(at - 1)
    size = SIZES.get(kind, 0)
    if kind in VECTORS:
        size = SIZES[kind[:-1]] * (4 if kind[-1] == "3" else int(kind[-1]))
    j = at + 1
    while read.word(j) == "[":
        inside = read.code[j + 1 : matching(read.code, j)]
        digits = inside[0].text.rstrip("uU") if len(inside) == 1 else ""
        size *= int(digits) if digits.isdigit() else 0
        j = matching(read.code, j) + 1
    return size


def _buffers(read: _LintedText) -> None:
    """Numbers of buffers, and types of positions."""
    for function in read.outline.functions:
        if not function.is_kernel:
            continue
        numbers: set[int] = set()
        kinds: set[str] = set()
        for parameter in function.parameters:
            for name, argument in parameter.attributes:
                if name == "buffer" and argument.isdigit():
                    if int(argument) >= MOST_BUFFERS or int(argument) in numbers:
                        message = f"buffer {argument}: numbers are different, and 0 to {MOST_BUFFERS - 1}"
                        read.find(parameter.tokens[0], "buffers", message)
                    numbers.add(int(argument))
                if name in POSITIONS:
                    kinds.add(" ".join(t.text for t in parameter.tokens if t.text in VECTORS | SCALARS))
        if len(kinds) > 1:
            shown = " and ".join(sorted(kinds))
            read.find(function.name, "positions", f"positions and sizes of one kernel are of {shown}")


# --------------------------------------------------------------------------------------------------- spaces of values


def _spaces_of_values(read: _LintedText) -> None:
    """Find casts, initial values and arguments that would change the address space of a pointer."""
    helpers = [f for f in read.outline.functions if not f.is_kernel]
    pointers = {f.name.text: [_pointer_space(p.tokens) for p in f.parameters] for f in helpers}
    for function in read.outline.functions:
        if function.open == function.close:
            continue
        known = dict(_known(read, function))
        for i in range(function.open, function.close):
            word = read.word(i)
            cast = _cast_at(read, i)
            if cast is not None:
                space, begin, end = cast
                _require(read, i, space, _space_of(read, begin, end, known), "a cast")
            elif word in pointers and read.word(i + 1) == "(" and read.word(i - 1) not in (".", "->"):
                close = matching(read.code, i + 1)
                begin = i + 2
                for space, part in zip(pointers[word], split(read.code[i + 2 : close]), strict=False):
                    found = _space_of(read, begin, begin + len(part), known)
                    _require(read, begin, space, found, f"an argument of {word}")
                    begin += len(part) + 1
        for declared, at in zip(read.declared, read.positions, strict=True):
            if function.open < at < function.close and declared.pointer and read.word(at + 1) == "=":
                end = next(k for k in range(at, len(read.code)) if read.word(k) in (";", ","))
                found = _space_of(read, at + 2, end, known)
                _require(read, at, declared.space, found, f"the value of {declared.name.text}")


def _require(read: _LintedText, i: int, space: str, found: str, what: str) -> None:
    if space and found and space != found:
        read.find(read.code[i], "address-space", f"{what}: a pointer to {found} memory becomes one to {space} memory")


def _known(read: _LintedText, function: FunctionTokens) -> Iterator[tuple[str, _DeclaredName]]:
    """The variables of a function, by name."""
    for declared, at in zip(read.declared, read.positions, strict=True):
        if read.code[function.first].start <= read.code[at].start <= read.code[function.close].end:
            yield declared.name.text, declared


def _pointer_space(tokens: Sequence[Token]) -> str:
    words = [t.text for t in tokens]
    return next((w for w in words if w in SPACES), "") if "*" in words or "&" in words else ""


def _cast_at(read: _LintedText, i: int) -> tuple[str, int, int] | None:
    """Address space and operand range of the pointer cast at an index."""
    if read.word(i) == "(" and read.word(i + 1) in _QUALIFIERS | read.types:
        close = matching(read.code, i)
        begin, end = close + 1, len(read.code)
    elif read.word(i) in _CASTS and read.word(i + 1) == "<":
        close = matching_angle(read.code, i + 1)
        begin, end = close + 2, matching(read.code, close + 1)
    else:
        return None
    words = [t.text for t in read.code[i + 1 : close]]
    spaces = [w for w in words if w in SPACES]
    alone = all(w in _QUALIFIERS or w in read.types or w in ("*", "<", ">", ",") or w.isdigit() for w in words)
    return (spaces[0], begin, end) if spaces and words[-1] in ("*", "const") and "*" in words and alone else None


def _space_of(read: _LintedText, begin: int, end: int, known: dict[str, _DeclaredName]) -> str:
    """The address space that an expression points to; empty if unknown."""
    i, address = begin, False
    while i < end and read.word(i) == "(":
        cast = _cast_at(read, i)
        if cast is not None:
            return cast[0]
        i += 1
    if read.word(i) in _CASTS:
        cast = _cast_at(read, i)
        return cast[0] if cast is not None else ""
    if read.word(i) == "&":
        address, i = True, i + 1
    declared = known.get(read.word(i))
    after = read.word(i + 1)
    if declared is None or after in ("(", "->") or (after == "." and not address):
        return ""
    if declared.reference:
        return declared.space if address else ""
    if declared.pointer and after != "." and address == (after == "["):
        return declared.space
    if not declared.pointer and (address or (declared.array and after != "[")):
        return declared.space or "thread"
    return ""
