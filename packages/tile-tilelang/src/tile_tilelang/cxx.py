"""Functions in CUDA's C++, executed while tracing, so that they run on every target.

The subset: templates over types and integers, addresses and their casts, variables and arrays, arithmetic of integers
of up to 32 bits, loops between known integers, calls, and `tile_tilelang.cxx_asm`.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.dtypes import DTYPES
from tile_core.records import dataclass
from tile_tilelang.cxx_asm import execute
from tile_tilelang.cxx_expressions import QUALIFIERS, TOKEN, CxxNames, evaluated, group, kind_of, leading_type, split
from tile_tilelang.cxx_values import TYPES, CxxPointer, CxxValue, Element, Memory, Outside, Typed, common_type, computed

_ITERATIONS = 1 << 16
_STATEMENTS = frozenset(
    "if else while do switch case return break continue goto struct class union enum typedef using auto".split()
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or template; its type and default are tokens."""

    name: str
    type: tuple[str, ...]
    default: tuple[str, ...]


@dataclass(frozen=True)
class Function:
    """A function, with the tokens of its body and the functions in front of it."""

    name: str
    template: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    body: tuple[str, ...]
    known: Mapping[str, Function]


def call(source: str, name: str, arguments: Sequence[Any]) -> None:
    """Call a function of a text with addresses of elements, and integers.

    Raises
    ------
    Outside
        Its text has a construct that is not in the subset.
    """
    known = functions(source)
    if name not in known:
        raise Outside(f"no function {name}")
    _call(known[name], [_argument(a) for a in arguments], [], CxxNames(TYPES, {}, ChainMap()))


def _argument(given: Any) -> CxxValue:
    if not hasattr(given, "buffer"):
        if isinstance(given, bool) or not -(1 << 31) <= given < 1 << 31:
            raise Outside(f"the argument {given}, which is not an integer of up to 32 bits")
        return Typed("int32", given)
    dtype = str(given.buffer.dtype)
    if dtype == "bool" or DTYPES[dtype].bits % 8:
        raise Outside(f"elements of type {dtype}")
    return CxxPointer(Memory(dtype, start=given), 0, dtype)


def names(source: str) -> list[str]:
    """Return the names of the functions of a text."""
    return re.findall(r"__device__[\w\s]*?\b(\w+)\s*\(", source)


def functions(source: str) -> dict[str, Function]:
    """Return the functions of a text by name."""
    tokens, at = TOKEN.findall(_without_comments(source)), 0
    found: dict[str, Function] = {}
    while at < len(tokens):
        template: tuple[Parameter, ...] = ()
        if tokens[at] == "template":
            at, inside = group(tokens, at + 1)
            template = tuple(_parameter(p) for p in split(inside, ",") if p)
        opened = next((k for k in range(at, len(tokens)) if not re.match(r"\w", tokens[k])), len(tokens))
        head = [t for t in tokens[at:opened] if t not in QUALIFIERS]
        if tokens[opened : opened + 1] != ["("] or len(head) < 2 or not _STATEMENTS.isdisjoint(head):
            raise Outside(f"{' '.join(tokens[at : opened + 1])}, which does not begin a function")
        behind, inside = group(tokens, opened)
        if tokens[behind : behind + 1] != ["{"]:
            raise Outside(f"the declaration of {head[-1]} without a body")
        at, body = group(tokens, behind)
        if head[-1] in found:
            raise Outside(f"a second function {head[-1]}")
        parameters = tuple(_parameter(p) for p in split(inside, ",") if p)
        found[head[-1]] = Function(head[-1], template, parameters, tuple(body), dict(found))
    return found


def _without_comments(source: str) -> str:
    """Return a text without comments, ``#include`` and ``#pragma``."""
    joined = source.replace("\\\n", "")
    code = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or " ", joined, flags=re.S)
    for line in re.findall(r"^\s*#[^\n]*", code, flags=re.M):
        if not re.match(r"\s*#\s*(include|pragma)\b", line):
            raise Outside(f"the line {line.strip()}")
    return re.sub(r"^\s*#[^\n]*", "", code, flags=re.M)


def _parameter(tokens: Sequence[str]) -> Parameter:
    declared, *default = split([t for t in tokens if t not in QUALIFIERS], "=", 2)
    if len(declared) < 2 or not re.fullmatch(r"[A-Za-z_]\w*", declared[-1]) or "&" in declared:
        raise Outside(f"the parameter {' '.join(declared)}")
    return Parameter(declared[-1], tuple(declared[:-1]), tuple(default[0]) if default else ())


def _call(function: Function, given: Sequence[CxxValue], template: Sequence[Sequence[str]], outer: CxxNames) -> None:
    """Call a function; arguments of its template are expressions with the names of the caller."""
    types, free, name = dict(TYPES), set(), function.name
    inside = CxxNames(types, function.known, ChainMap())
    if len(given) > len(function.parameters) or len(template) > len(function.template):
        raise Outside(f"{len(given)} arguments of {name}, and {len(template)} of its template")
    for k, parameter in enumerate(function.template):
        tokens, where = (template[k], outer) if k < len(template) else (parameter.default, inside)
        is_type = parameter.type in (("typename",), ("class",))
        if tokens and is_type:
            types[parameter.name], is_address = kind_of(tokens, where.types)
            if is_address:
                raise Outside(f"the type {' '.join(tokens)} as an argument of a template")
        elif is_type:
            free.add(parameter.name)
            types.pop(parameter.name, None)
        elif not tokens:
            raise Outside(f"the argument {parameter.name} of the template of {name}, which is missing")
        else:
            value, is_bool = evaluated(tokens, where).read(), parameter.type == ("bool",)
            truth = Typed("int32", int(value.known() != 0))
            inside.declare(parameter.name, truth if is_bool else value.to(kind_of(parameter.type, types)[0]))
    for k, parameter in enumerate(function.parameters):
        if k >= len(given) and not parameter.default:
            raise Outside(f"the argument {parameter.name} of {name}, which is missing")
        argument = given[k] if k < len(given) else evaluated(parameter.default, inside)
        if parameter.type[0] in free and parameter.type[1:] == ("*",) and isinstance(argument, CxxPointer):
            types.setdefault(parameter.type[0], argument.dtype)
        inside.declare(parameter.name, _variable(parameter.type, argument, inside, f"the argument {parameter.name}"))
    _statements(list(function.body), inside)


def _variable(kind: Sequence[str], value: CxxValue | None, known: CxxNames, what: str) -> CxxValue:
    """Return a new variable of a type; an address is its own."""
    dtype, is_address = kind_of(kind, known.types)
    if is_address:
        if not isinstance(value, CxxPointer) or value.dtype != dtype:
            found = f"is of type {value.dtype}" if isinstance(value, CxxPointer) else "is not an address"
            raise Outside(f"{what}, which {found}, for {' '.join(kind)}")
        return value
    if isinstance(value, CxxPointer):
        raise Outside(f"{what}, which is an address, for {' '.join(kind)}")
    element = Element(CxxPointer(Memory(dtype), 0, dtype))
    if value is not None:
        element.write(value.read())
    return element


def _statements(tokens: Sequence[str], known: CxxNames) -> None:
    """Execute the statements of a body."""
    at = 0
    while at < len(tokens):
        end = _end(tokens, at)
        _statement(tokens[at:end], known)
        at = end


def _end(tokens: Sequence[str], at: int) -> int:
    """Return the index behind a statement."""
    if tokens[at : at + 1] == ["{"]:
        return group(tokens, at)[0]
    if tokens[at : at + 1] == ["for"]:
        return _end(tokens, group(tokens, at + 1)[0])
    if tokens[at : at + 1] and tokens[at] in _STATEMENTS:
        raise Outside(f"the statement {tokens[at]}")
    ends = [k for k in range(at, len(tokens)) if tokens[k] == ";"]
    if not ends:
        raise Outside(f"the statement {' '.join(tokens[at:])} without a semicolon")
    return ends[0] + 1


def _statement(tokens: Sequence[str], known: CxxNames) -> None:
    if tokens[0] == "{":
        _statements(group(tokens, 0)[1], known.inner())
        return
    if tokens[0] == "for":
        behind, head = group(tokens, 1)
        _loop(head, tokens[behind:], known.inner())
        return
    tokens = tokens[:-1]
    if tokens[:1] and tokens[0] in ("asm", "__asm__"):
        _assembler(tokens, known)
        return
    plain = [t for t in tokens if t not in QUALIFIERS]
    if "static" in tokens and "constexpr" not in tokens:
        raise Outside("a static variable")
    if count := leading_type(plain, known.types):
        for declared in split(plain[count:], ","):
            _declare(plain[:count], declared, known)
    elif len(plain) > 1 and all(re.match(r"[A-Za-z_]", t) for t in plain[:2]):
        raise Outside(f"the type {plain[0]}")
    elif plain[:1] and plain[0] in known.functions:
        _call_statement(plain, known)
    elif plain:
        _assign(plain, known)


def _loop(head: Sequence[str], body: Sequence[str], known: CxxNames) -> None:
    """Execute a loop whose variable and bound are known."""
    start, condition, step = (*split(head, ";"), [], [], [])[:3]
    name = "".join(start[1:2])
    is_counted = start[:1] == ["int"] and start[2:3] == ["="] and condition[:2] == [name, "<"]
    if not is_counted or step not in (["++", name], [name, "++"]) or head.count(";") != 2:
        raise Outside(f"the loop for ({' '.join(head)})")
    counter = _variable(["int"], evaluated(start[3:], known), known, name)
    known.declare(name, counter)
    for _ in range(_ITERATIONS):
        now, bound = counter.read(), evaluated(condition[2:], known).read()
        common = common_type(now, bound)
        if not (now.to(common).known() < bound.to(common).known()):
            return
        _statement(body, known.inner())
        assert isinstance(counter, Element), "it was made"
        counter.write(computed("add", counter.read(), Typed("int32", 1)))
    raise Outside(f"a loop of more than {_ITERATIONS} iterations")


def _declare(kind: Sequence[str], tokens: Sequence[str], known: CxxNames) -> None:
    """Add a variable or an array."""
    target, *value = split(tokens, "=", 2)
    stars, target = target[: target[:1] == ["*"]], target[target[:1] == ["*"] :]
    text = f"the declaration {' '.join([*kind, *tokens])}"
    if target[1:2] == ["["]:
        behind, size = group(target, 1)
        if behind < len(target) or value or stars:
            raise Outside(text)
        dtype, _ = kind_of(kind, known.types)
        known.declare(target[0], CxxPointer(Memory(dtype, evaluated(size, known).read().known()), 0, dtype))
    elif len(target) != 1:
        raise Outside(text)
    else:
        found = evaluated(value[0], known) if value else None
        known.declare(target[0], _variable([*kind, *stars], found, known, text))


def _call_statement(tokens: Sequence[str], known: CxxNames) -> None:
    at, template = group(tokens, 1) if tokens[1:2] == ["<"] else (1, [])
    behind, inside = group(tokens, at)
    if behind < len(tokens):
        raise Outside(f"the statement {' '.join(tokens)}")
    given = [evaluated(a, known) for a in split(inside, ",") if a]
    function = known.functions[tokens[0]]
    assert isinstance(function, Function), "the names of functions are of this module"
    _call(function, given, [p for p in split(template, ",") if p], known)


def _assign(tokens: Sequence[str], known: CxxNames) -> None:
    target, *value = split(tokens, "=", 2)
    to = evaluated(target, known)
    if not value:
        raise Outside(f"the statement {' '.join(tokens)}, which has no effect")
    if not isinstance(to, Element):
        raise Outside(f"an assignment to {' '.join(target)}, which is not a variable or an element")
    to.write(evaluated(value[0], known).read())


def _assembler(tokens: Sequence[str], known: CxxNames) -> None:
    """Execute a statement of the assembler."""
    opened = 1 + (tokens[1:2] in (["volatile"], ["__volatile__"]))
    behind, inside = group(tokens, opened)
    text, *parts = split([s for t in inside for s in ([":", ":"] if t == "::" else [t])], ":")
    if behind < len(tokens) or len(parts) > 3 or not all(t[0] == '"' for t in text):
        raise Outside(f"the statement {' '.join(tokens[: opened + 1])} ...")
    operands = []
    for position, part in enumerate(parts[:2]):
        for one in filter(None, split(part, ",")):
            constraint = one[0].strip('"')
            allowed = ("=r", "=&r", "+r", "+&r") if position == 0 else ("r", "n")
            if constraint not in allowed or group(one, 1)[0] != len(one):
                raise Outside(f"the operand {' '.join(one)} of an asm")
            operands.append((constraint, evaluated(group(one, 1)[1], known)))
    code = "".join(t[1:-1] for t in text).replace("\\n", ";").replace("\\t", " ")
    execute(code, operands)
