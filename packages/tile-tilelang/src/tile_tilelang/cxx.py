"""Functions in CUDA's C++, executed while tracing, so that they run on every target.

The subset: templates over types and integers, addresses and their casts, variables and arrays, arithmetic of integers
of up to 32 bits, loops from one known number to another, calls, and `tile_tilelang.cxx_asm`. A statement becomes one
of Python, whose operators are those of `tile_tilelang.cxx_values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.records import dataclass
from tile_tilelang.cxx_asm import FUNCTIONS, execute
from tile_tilelang.cxx_values import TYPES, Element, Memory, Operand, Outside, Pointer, Typed

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|0[xX][\da-fA-F]+[uU]?|\d\w*|\w+|\+\+|&&|\|\||->|::|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|\S'
)
_QUALIFIERS = frozenset(
    "const constexpr static volatile inline __forceinline__ __restrict__ __device__ typename".split()
)
#: Operators whose precedence is the same in Python; in front of an operand, ``*`` and ``&`` are functions of addresses.
_OPERATORS = {s: s for s in "+ - * % & | ^ << >> ( ) [ ] ,".split()} | {"/": "//"}
_CLOSES = {"(": ")", "{": "}", "<": ">", "[": "]"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or template; ``default`` is a text."""

    name: str
    type: str
    is_address: bool
    default: str


@dataclass(frozen=True)
class Function:
    """A function, with its body in Python."""

    template: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    body: str


def call(source: str, name: str, arguments: Sequence[Any]) -> None:
    """Call a function of a text with places of elements, and integers.

    Raises
    ------
    Outside
        Its text has a construct that is not in the subset.
    """
    given = [_argument(a) for a in arguments]
    try:
        _execute(functions(source), name, given, [])
    except (SyntaxError, NameError, TypeError, AttributeError, IndexError, ValueError, KeyError) as error:
        raise Outside(f"a construct that is not understood ({error})") from error


def _argument(given: Any) -> Operand:
    if not hasattr(given, "buffer"):
        return Typed("int32", given)
    dtype = str(given.buffer.dtype)
    return Pointer(Memory(dtype, start=given), 0, dtype)


def names(source: str) -> list[str]:
    """Return the names of the functions of a text."""
    return re.findall(r"__device__\s+(?:inline\s+|static\s+|__forceinline__\s+)*\w+\s+(\w+)\s*\(", source)


def functions(source: str) -> dict[str, Function]:
    """Return the functions of a text by name."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#pragma[^\n]*", "", source, flags=re.S | re.M)
    tokens, found, at = _TOKEN.findall(code), {}, 0
    while at < len(tokens):
        template: tuple[Parameter, ...] = ()
        if tokens[at] == "template":
            at, inside = _group(tokens, at + 1)
            template = _parameters(inside)
        opened = tokens.index("(", at)
        behind, inside = _group(tokens, opened)
        at, body = _group(tokens, behind)
        text = "\n".join(_statements(body, " ", frozenset())) or " pass"
        found[tokens[opened - 1]] = Function(template, _parameters(inside), f"if True:\n{text}")
    return found


def _execute(known: Mapping[str, Function], name: str, given: Sequence[Operand], types: Sequence[Any]) -> None:
    function, scope = known[name], _scope(known)
    for parameter, value in zip(function.template, [*types, *[None] * len(function.template)], strict=False):
        scope[parameter.name] = value if value is not None else _evaluated(parameter.default, scope)
    if len(given) > len(function.parameters):
        raise Outside(f"{len(given)} arguments of {name}")
    for position, parameter in enumerate(function.parameters):
        value = given[position] if position < len(given) else _evaluated(parameter.default, scope)
        if isinstance(value, Element):
            value = value.read()
        if value is None or parameter.is_address != isinstance(value, Pointer):
            raise Outside(f"the argument {parameter.name} of {name}, which is missing or of another type")
        if isinstance(value, Pointer) and scope.get(parameter.type) is None:
            scope[parameter.type] = value.dtype
        if isinstance(value, Pointer) and scope[parameter.type] != value.dtype:
            raise Outside(f"the argument {parameter.name} of {name}, which is of type {value.dtype}")
        scope[parameter.name] = _made(scope[parameter.type], value)
    exec(function.body, scope)


def _scope(known: Mapping[str, Function]) -> dict[str, Any]:
    """Return the names that a translated body uses."""

    def caller(name: str) -> Any:
        return lambda *types: lambda *given: _execute(known, name, given, types)

    def meaning(function: Any) -> Any:
        return lambda: lambda *given: function(*(g.read().to("uint32") for g in given))

    def cast(dtype: str, stars: str) -> _Prefix:
        return _Prefix(lambda x: Pointer(x.memory, x.at, dtype) if stars else x.read().to(dtype))

    return {
        "__builtins__": {}, **TYPES, "true": Typed("int32", 1), "false": Typed("int32", 0),
        "_array": lambda dtype, count: Pointer(Memory(dtype, count.read().known()), 0, dtype),
        "_as": cast, "_asm": execute, "_n": _number,
        "_at": _Prefix(Element), "_ref": _Prefix(lambda element: element.address),
        "_if": lambda c, a, b: a if c.read().known() else b,
        "_range": lambda a, b: (Typed("int32", k) for k in range(a.read().known(), b.read().known())),
        "_set": lambda to, value: to.write(value.read()), "_var": _made,
        **{n: meaning(f) for n, f in FUNCTIONS.items()}, **{n: caller(n) for n in known},
    }  # fmt: skip


class _Prefix:
    """An operator in front of an operand, ``p ** x``; also a function, ``p(x)``."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __pow__(self, operand: Any) -> Any:
        return self.function(operand)

    __call__ = __pow__


def _number(text: str) -> Typed:
    number = int(text.rstrip("uU"), 0)
    return Typed("uint32" if text[-1] in "uU" or number >> 31 else "int32", number)


def _made(dtype: str, value: Any = None) -> Operand:
    """Return a new variable; an address is its own."""
    if isinstance(value, Pointer):
        return value
    element = Element(Pointer(Memory(dtype), 0, dtype))
    if value is not None:
        element.write(value.read())
    return element


def _evaluated(text: str, scope: dict[str, Any]) -> Any:
    return eval(text, scope) if text else None


def _group(tokens: Sequence[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind a bracketed part, and the tokens inside."""
    opens, closes, depth = tokens[at], _CLOSES[tokens[at]], 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == opens) - (tokens[end] == closes)
        if not depth:
            return end + 1, list(tokens[at + 1 : end])
    raise Outside("a bracket that is not closed")


def _split(tokens: Sequence[str], sign: str) -> list[list[str]]:
    """Return the parts between signs that are not in brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == sign and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _assigned(tokens: Sequence[str]) -> tuple[list[str], str]:
    """Return the target of an assignment, and its value in Python, which may be empty."""
    target, *values = _split(tokens, "=")
    if len(values) > 1:
        raise Outside("an assignment inside of another one")
    return target, _python(values[0]) if values else ""


def _parameters(tokens: Sequence[str]) -> tuple[Parameter, ...]:
    found = []
    for part in filter(None, _split(tokens, ",")):
        declared, default = _assigned(part)
        *kinds, name = [t for t in declared if t not in _QUALIFIERS]
        found.append(Parameter(name, kinds[0] if kinds else "", "*" in kinds, default))
    return tuple(found)


def _statements(tokens: Sequence[str], indent: str, outer: frozenset[str]) -> list[str]:
    """Return the lines of a body, which may not declare the names ``outer`` again."""
    lines: list[str] = []
    at, known = 0, outer
    while at < len(tokens):
        if tokens[at] == "{":
            at, inside = _group(tokens, at)
            lines += _statements(inside, indent, known)
        elif tokens[at] == "for":
            at, header = _group(tokens, at + 1)
            at, inside = _group(tokens, at) if tokens[at] == "{" else _until(tokens, at)
            lines += [f"{indent}{_loop(header)}", *(_statements(inside, f"{indent} ", known) or [f"{indent} pass"])]
        else:
            at, inside = _until(tokens, at)
            simple = _simple(inside[:-1])
            made = {line.partition(" = ")[0] for line in simple if re.match(r"\w+ = _(var|array)\(", line)}
            if made & outer:
                raise Outside(f"a second variable {min(made & outer)}")
            known |= made
            lines += [f"{indent}{line}" for line in simple]
    return lines


def _until(tokens: Sequence[str], at: int) -> tuple[int, list[str]]:
    end = list(tokens).index(";", at) + 1
    return end, list(tokens[at:end])


def _loop(header: Sequence[str]) -> str:
    text = " ".join(header)
    found = re.fullmatch(r"int (\w+) = ([^;]+) ; \1 < ([^;]+) ; (?:\+\+ \1|\1 \+\+)", text)
    if found is None:
        raise Outside(f"the loop for ({text})")
    return f"for {found[1]} in _range({_python(found[2].split())}, {_python(found[3].split())}):"


def _simple(tokens: list[str]) -> list[str]:
    """Return the lines of a statement without others: a declaration, an assignment, a call."""
    if tokens[:1] == ["asm"]:
        _, inside = _group(tokens, tokens.index("("))
        text, *operands = _split(inside, ":")
        code = "".join(t[1:-1] for t in text).replace("\\n", ";").replace("\\t", " ")
        given = [_python(o[1:]) for part in operands for o in _split(part, ",") if o]
        return [f"_asm({code!r}, [{', '.join(given)}])"]
    plain = [t for t in tokens if t not in _QUALIFIERS]
    if (
        len(plain) > 1
        and re.match(r"[A-Za-z]", plain[0])
        and re.match(r"[A-Za-z_]", plain[2 if plain[1] == "*" else 1])
    ):
        return [_declared(plain[0], one) for one in _split(plain[1:], ",")]
    target, value = _assigned(plain)
    return [f"_set({_python(target)}, {value})" if value else _python(target)]


def _declared(kind: str, tokens: list[str]) -> str:
    name, value = _assigned(tokens[tokens[0] == "*" :])
    if len(name) > 1:
        return f"{name[0]} = _array({kind}, {_python(_group(name, 1)[1])})"
    return f"{name[0]} = _var({kind}, {value or None})"


def _python(tokens: Sequence[str]) -> str:
    """Return an expression in Python."""
    if "?" in tokens:
        condition, rest = _split(tokens, "?")
        first, second = _split(rest, ":")
        return f"_if({_python(condition)}, {_python(first)}, {_python(second)})"
    text, at, operand = "", 0, False
    while at < len(tokens):
        token = tokens[at]
        if token in ("reinterpret_cast", "static_cast"):
            at, inside = _group(tokens, at + 1)
            text += _type(inside)
            continue
        if token == "(" and not operand:
            behind, inside = _group(tokens, at)
            operated = re.match(r"\w|\(", "".join(tokens[behind : behind + 1]))  # as it is only behind a cast
            if inside[-1:] == ["*"] or "".join(inside[-1:]) in TYPES or (len(inside) == 1 and operated):
                at, text = behind, f"{text}{_type(inside)} ** "
                continue
        if tokens[at + 1 : at + 2] == ["<"]:  # a call of a template: comparisons are in the heads of loops alone
            at, inside = _group(tokens, at + 1)
            text += f"{token}({' '.join(inside)})"
            continue
        if token in ("*", "&") and not operand:
            text += "_at ** " if token == "*" else "_ref ** "
        elif token[0].isdigit():
            text += f"_n({token!r})"
        elif re.fullmatch(r"\w+", token):
            text += f"{token}()" if token in FUNCTIONS else token
        elif token in _OPERATORS:
            text += _OPERATORS[token] if token in "()[]" else f" {_OPERATORS[token]} "
        else:
            raise Outside(f"the sign {token}")
        operand, at = token in ")]" or token not in _OPERATORS, at + 1
    return text


def _type(tokens: Sequence[str]) -> str:
    """Return a cast to a type, or to an address of elements of it."""
    name, *stars = [t for t in tokens if t not in _QUALIFIERS]
    return f"_as({name}, {''.join(stars)!r})"
