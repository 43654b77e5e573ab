"""Rewrites that no header can do, where a keyword has two meanings.

Line numbers stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_metal.emulation.tokens import SPACES, FunctionTokens, Token, matching, matching_angle, outline, tokenize

INCLUDES = frozenset({
    "metal_stdlib", "metal_simdgroup", "metal_simdgroup_matrix", "metal_atomic", "metal_math", "metal_integer",
    "metal_types", "metal_compute", "metal_common", "metal_relational",
})  # fmt: skip
"""Headers of Metal that are modelled, and always there."""

TENSOR_INCLUDES = frozenset({
    "metal_tensor", "metal_cooperative_tensor", "MetalPerformancePrimitives/MetalPerformancePrimitives.h",
})  # fmt: skip
"""Those of the tensor operations."""

BUILTINS = frozenset({
    "thread_position_in_grid", "threadgroup_position_in_grid", "thread_position_in_threadgroup",
    "threads_per_threadgroup", "threadgroups_per_grid", "threads_per_grid", "thread_index_in_threadgroup",
    "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup", "simdgroups_per_threadgroup",
    "threads_per_simdgroup",
})  # fmt: skip
"""Attributes of parameters that hold a built-in value."""

PRAGMAS = {
    "METALfpmath_mode(safe)": "#pragma float_control(precise, on)",
    "METALfpcontract(off)": "#pragma clang fp contract(off)",
}
"""Pragmas of Metal without blanks, and what clang has instead; they matter where a text is compiled with fast math."""

_FUNCTION_ATTRIBUTES = frozenset({"kernel", "max_total_threads_per_threadgroup", "host_name"})
_DECLARATION_ENDS = frozenset({";", "=", "[", "{", "(", ")", ",", "}"})


def refusal(message: str) -> str:
    """Return code that does not compile, with a message."""
    quoted = message.replace("\\", "/").replace('"', "'")
    return f'_Pragma("GCC error \\"{quoted}\\"") '


class _Edits:
    """Replacements in a text. What is replaced keeps its line ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, new: str) -> None:
        self.edits.append((start, end, new + "\n" * self.text.count("\n", start, end)))

    def insert(self, at: int, new: str) -> None:
        self.edits.append((at, at, new))

    def refuse(self, token: Token, message: str) -> None:
        self.insert(token.start, refusal(message))

    def done(self) -> str:
        parts, at = [], 0
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < at:
                continue  # within something that was replaced
            parts += [self.text[at:start], new]
            at = end
        return "".join(parts) + self.text[at:]


def prepare_with(text: str, tensor_ops: bool) -> str:
    """Rewrite a text; what has no model becomes code that does not compile.

    Parameters
    ----------
    text
        As it is given to Metal's compiler.
    tensor_ops
        Whether the target has the tensor operations.
    """
    edits = _Edits(text)
    tokens = tokenize(text)
    for token in tokens:
        if token.kind == "directive":
            _directive(edits, token, INCLUDES | TENSOR_INCLUDES if tensor_ops else INCLUDES)
    code = [token for token in tokens if token.kind != "directive"]
    _words(edits, code)
    _literals(edits, code)
    functions = outline(code).functions
    for function in functions:
        _function(edits, code, function)
    _threadgroup_memory(edits, code, [f for f in functions if f.is_kernel and not f.is_template])
    return edits.done()


def _directive(edits: _Edits, token: Token, known: frozenset[str]) -> None:
    words = token.text[1:].split(None, 1)
    word, rest = (words + ["", ""])[:2]
    if word == "include":
        name = rest.strip().strip('<>"')
        edits.replace(token.start, token.end, "" if name in known else f"#error there is no model of <{name}>")
    elif word == "pragma" and rest.startswith("METAL"):
        edits.replace(token.start, token.end, PRAGMAS.get("".join(rest.split()), ""))
    elif word == "define":
        inside = tokenize(rest)
        hidden = sorted(({"kernel", "threadgroup"} | BUILTINS) & {t.text for t in inside})
        if hidden:
            edits.replace(token.start, token.end, f"#error a macro with '{hidden[0]}' has no model")
        else:
            _literals(edits, inside, token.end - len(rest))


def _words(edits: _Edits, code: Sequence[Token]) -> None:
    """Words that are refused, and the second const of ``const constant``."""
    for i, token in enumerate(code):
        after = code[i + 1].text if i + 1 < len(code) else ""
        before = code[i - 1].text if i else ""
        if token.kind != "name":
            continue
        if token.text == "constant" and ("const" in (before, after) or _const_follows(code, i)):
            edits.replace(token.start, token.end, "")
        elif token.text == "double":
            edits.refuse(token, "there are no floats of 64 bits: double")
        elif token.text == "function_constant":
            edits.refuse(token, "function constants have no model")
        elif token.text == "template":
            _template(edits, code, i)
        elif token.text == "threadgroup" and after in ("atomic_float", "atomic", "_atomic"):
            inside = code[i + 3].text if i + 3 < len(code) else ""
            if after == "atomic_float" or inside == "float":
                edits.refuse(token, "floats in threadgroup memory have no atomic functions")


def _literals(edits: _Edits, code: Sequence[Token], offset: int = 0) -> None:
    """Floats without suffix are float, not double; those of 16 bits are of classes."""
    for token in code:
        text = token.text.lower()
        if token.kind != "number" or text.startswith("0x"):
            continue
        for suffix, kind in (("bf", "bfloat"), ("h", "half")):
            if text.endswith(suffix):
                edits.replace(offset + token.start, offset + token.end, f"{kind}({token.text[: -len(suffix)]})")
                break
        else:
            if ("." in text or "e" in text) and text[-1] in ".0123456789":
                edits.insert(offset + token.end, "f")


def _const_follows(code: Sequence[Token], i: int) -> bool:
    """Whether the type after a keyword is declared const: ``constant T const&``."""
    for token in code[i + 1 : i + 6]:
        if token.text == "const":
            return True
        if token.kind != "name" and token.text != "::":
            return False
    return False


def _template(edits: _Edits, code: Sequence[Token], i: int) -> None:
    """Check that no template names address spaces, which are all one here."""
    if i + 1 >= len(code) or code[i + 1].text != "<":
        if not (i and code[i - 1].text in (".", "->", "::")):
            edits.refuse(code[i], "explicit instantiation has no model")
        return
    at = i + 1
    while at < len(code) and code[at].text not in ("{", ";"):
        if code[at].text in SPACES - {"thread"}:
            edits.refuse(code[i], f"a template with '{code[at].text}' has no model")
            return
        at += 1


def _function(edits: _Edits, code: Sequence[Token], function: FunctionTokens) -> None:
    if not function.is_kernel:
        for parameter in function.parameters:
            if parameter.attributes:
                edits.refuse(function.name, f"an attribute of {parameter.name} in a function that is not a kernel")
        return
    if function.is_template:
        edits.refuse(function.name, "a kernel that is a template has no model")
        return
    if function.open == function.close:
        return
    threads = 0
    for name, argument in function.attributes:
        if name not in _FUNCTION_ATTRIBUTES:
            edits.refuse(function.name, f"the attribute {name} has no model")
        if name == "max_total_threads_per_threadgroup":
            threads = int(argument) if argument.isdigit() else 0
            if not threads:
                edits.refuse(function.name, f"{name} of something that is not a number")
    sources = [_source(edits, function, i) for i in range(len(function.parameters))]
    values = ", ".join(sources) or "0"
    entry = function.name.text
    limit = f"enum : int {{ simt_threads_{entry} = {threads} }};"
    declaration = f" {limit} static const int simt_sources_{entry}[] = {{{values}}};"
    edits.insert(code[function.close].end, declaration)


def _source(edits: _Edits, function: FunctionTokens, i: int) -> str:
    parameter = function.parameters[i]
    if len(parameter.attributes) == 1:
        name, argument = parameter.attributes[0]
        if name == "buffer" and argument.isdigit() and int(argument) <= 30:
            return argument
        if name in BUILTINS:
            return f"metal_model::{name}"
    shown = ", ".join(name for name, _ in parameter.attributes) or "no attribute"
    edits.refuse(parameter.tokens[0], f"the parameter {parameter.name} with {shown} has no model")
    return "0"


def _threadgroup_memory(edits: _Edits, code: Sequence[Token], kernels: Sequence[FunctionTokens]) -> None:
    """Bind threadgroup arrays to storage: the slab to the launch's, others to the text's."""
    slabs = 0
    for i, token in enumerate(code):
        if token.text != "threadgroup" or token.kind != "name":
            continue
        end, pointer = _declared(code, i)
        if pointer:
            continue
        inside = any(f.open < i < f.close for f in kernels)
        names = [t for t in code[i + 1 : end] if t.kind == "name"]
        if code[end].text not in ("[", ";") or len(names) < 2:
            edits.refuse(token, "this use of 'threadgroup' has no model")
        elif not inside:
            edits.refuse(token, "threadgroup memory is declared in a kernel only")
        elif (size := _slab_bytes(code, i)) and not slabs:
            slabs += 1
            name = code[i + 2].text
            edits.replace(code[i - 4].start, code[i + 6].end, f"uchar* const {name} = metal_model::slab<{size}>();")
        else:
            stop = end
            while code[stop].text == "[":
                stop = matching(code, stop) + 1
            if code[stop].text != ";":
                edits.refuse(token, "threadgroup memory is declared one by one and without a value")
            edits.replace(token.start, token.end, "SIMT_SHARED")


def _declared(code: Sequence[Token], i: int) -> tuple[int, bool]:
    """Where the declarator behind ``threadgroup`` ends, and whether it declares a pointer or a reference."""
    at = i + 1
    while at < len(code) - 1 and code[at].text not in _DECLARATION_ENDS:
        if code[at].text in ("*", "&", "&&"):
            return at, True
        if code[at].text == "<" and (stop := matching_angle(code, at)) > 0:
            at = stop
        at += 1
    return at, False


def _slab_bytes(code: Sequence[Token], i: int) -> str:
    """The size in ``alignas(16) threadgroup uchar name[size];``, empty if it is something else."""
    before = [t.text for t in code[max(0, i - 4) : i]]
    after = code[i + 1 : i + 7]
    shape = [t.text if t.kind != "name" and t.kind != "number" else t.kind for t in after]
    alike = before == ["alignas", "(", "16", ")"] and shape == ["name", "name", "[", "number", "]", ";"]
    return after[3].text if alike and after[0].text == "uchar" and after[3].text.isdigit() else ""
