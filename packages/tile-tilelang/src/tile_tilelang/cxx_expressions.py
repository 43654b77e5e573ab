"""Tokens, types and expressions of functions in CUDA's C++."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tile_core.dtypes import DTYPES
from tile_core.records import dataclass
from tile_tilelang.cxx_asm import FUNCTIONS
from tile_tilelang.cxx_values import CxxPointer, CxxValue, Element, Outside, Typed, common_type, computed

TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|\d[\w.]*|\w+|\+\+|--|&&|\|\||->|::|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|\S'
)  # fmt: skip
QUALIFIERS = frozenset("const constexpr static volatile inline __forceinline__ __restrict__ __device__".split())
_LITERAL = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|[1-9]\d*|0)([uU]?)")
_CLOSES = {"(": ")", "{": "}", "<": ">", "[": "]"}
#: Operator of two operands -> its name in Python; those of a row have one precedence, the first row the lowest.
_BINARY = (
    {"|": "or_"}, {"^": "xor"}, {"&": "and_"}, {"<<": "lshift", ">>": "rshift"}, {"+": "add", "-": "sub"},
    {"*": "mul", "/": "floordiv", "%": "mod"},
)  # fmt: skip


@dataclass(frozen=True)
class CxxNames:
    """The names that a text may use: of types, functions and, innermost first, of variables."""

    types: Mapping[str, str]
    functions: Mapping[str, object]
    variables: ChainMap[str, CxxValue]

    def inner(self) -> CxxNames:
        """Return the names at the start of a block."""
        return CxxNames(self.types, self.functions, self.variables.new_child())

    def declare(self, name: str, value: CxxValue) -> None:
        """Add a variable, whose name is not known yet."""
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise Outside(f"a variable {name}")
        if name in self.variables or name in self.types or name in self.functions:
            raise Outside(f"a second variable {name}")
        self.variables[name] = value


def group(tokens: Sequence[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind a bracketed part, and the tokens inside."""
    if at >= len(tokens) or tokens[at] not in _CLOSES:
        raise Outside(f"{' '.join(tokens[max(0, at - 2) : at + 1])}, with no bracket behind it")
    opens, closes, depth = tokens[at], _CLOSES[tokens[at]], 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == opens) - (tokens[end] == closes)
        if not depth:
            return end + 1, list(tokens[at + 1 : end])
    raise Outside("a bracket that is not closed")


def split(tokens: Sequence[str], sign: str, limit: int = -1) -> list[list[str]]:
    """Return the parts between signs that are not in brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == sign and not depth and len(parts) != limit:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def kind_of(tokens: Sequence[str], types: Mapping[str, str]) -> tuple[str, bool]:
    """Return a type of tile, and whether addresses of its elements are meant."""
    words = [t for t in tokens if t not in QUALIFIERS]
    text, is_address = " ".join(words), words[-1:] == ["*"]
    name = text.removesuffix(" *")
    if name not in types:
        raise Outside(f"the type {text}")
    return types[name], is_address


def leading_type(tokens: Sequence[str], types: Mapping[str, str]) -> int:
    """Return how many tokens at the start name a type."""
    return max((n for n in range(1, 4) if n <= len(tokens) and " ".join(tokens[:n]) in types), default=0)


def literal(text: str) -> Typed:
    """Return an integer of up to 32 bits with its type in C++."""
    found = _LITERAL.fullmatch(text)
    value = int(found[1], 0) if found else 1 << 32
    if found is None or value >> 32 or (value >> 31 and found[1].isdigit() and not found[2]):
        raise Outside(f"the literal {text}, which is not a decimal, hexadecimal or binary integer of up to 32 bits")
    return Typed("uint32" if found[2] or value >> 31 else "int32", value)


def evaluated(tokens: Sequence[str], names: CxxNames) -> CxxValue:
    """Return the value of an expression."""
    parser = _Parser(tokens, names)
    value = parser.conditional()
    if parser.at < len(parser.tokens):
        parser.refuse(parser.tokens[parser.at])
    return value


def converted(value: CxxValue, dtype: str) -> Typed:
    """Return a value as another type."""
    return value.read().to(dtype)


class _Parser:
    """An expression that is evaluated while it is read."""

    def __init__(self, tokens: Sequence[str], names: CxxNames) -> None:
        self.tokens, self.names, self.at = tokens, names, 0

    def next(self) -> str:
        """Return the token at the present position; empty at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def refuse(self, token: str) -> NoReturn:
        """Refuse the token."""
        if token == "=":
            raise Outside("an assignment inside of another one")
        raise Outside(f"the sign {token}" if token else f"an operand that is missing in ({' '.join(self.tokens)})")

    def inside(self) -> list[str]:
        """Return the tokens in the brackets that begin here."""
        self.at, found = group(self.tokens, self.at)
        return found

    def conditional(self) -> CxxValue:
        """Return the value of ``c ? a : b`` or of its first part."""
        value = self.binary(0)
        if self.next() != "?":
            return value
        chosen = value.read().known()
        self.at += 1
        first = self.conditional().read()
        if self.next() != ":":
            self.refuse(self.next())
        self.at += 1
        second = self.conditional().read()
        if first.dtype == second.dtype:
            return first if chosen else second
        if any(DTYPES[x.dtype].is_float for x in (first, second)):
            raise Outside("a condition between a float and another type")
        return (first if chosen else second).to(common_type(first, second))

    def binary(self, level: int) -> CxxValue:
        """Return the value of operators of at least a precedence."""
        if level == len(_BINARY):
            return self.prefixed()
        value = self.binary(level + 1)
        while (sign := self.next()) in _BINARY[level]:
            self.at += 1
            other = self.binary(level + 1)
            if isinstance(value, CxxPointer) and sign == "+":
                value = value + other
            else:
                value = computed(_BINARY[level][sign], value.read(), other.read())
        return value

    def prefixed(self) -> CxxValue:
        """Return the value of an operand behind casts, ``*`` and ``&``."""
        sign = self.next()
        if sign == "(":
            _, inside = group(self.tokens, self.at)
            if leading_type([t for t in inside if t not in QUALIFIERS], self.names.types):
                self.inside()
                return self.cast(inside, self.prefixed())
        if sign not in ("*", "&"):
            return self.indexed()
        self.at += 1
        value = self.prefixed()
        if sign == "*" and isinstance(value, CxxPointer):
            return Element(value)
        if sign == "&" and isinstance(value, Element):
            return value.address
        raise Outside(
            f"the sign {sign} in front of another operand than {'an address' if sign == '*' else 'a variable'}"
        )

    def cast(self, kind: Sequence[str], value: CxxValue) -> CxxValue:
        """Return a value as another type, or an address of elements of one."""
        dtype, is_address = kind_of(kind, self.names.types)
        if not is_address:
            return converted(value, dtype)
        if not isinstance(value, CxxPointer):
            raise Outside(f"a cast of another operand than an address to {' '.join(kind)}")
        return CxxPointer(value.memory, value.at, dtype)

    def indexed(self) -> CxxValue:
        """Return the value of an operand in front of indices."""
        value = self.operand()
        while self.next() == "[":
            if not isinstance(value, CxxPointer):
                raise Outside("an index of another operand than an address")
            value = value[evaluated(self.inside(), self.names)]
        return value

    def operand(self) -> CxxValue:
        """Return the value of a literal, a name, a call or an expression in brackets."""
        token = self.next()
        if token == "(":
            return evaluated(self.inside(), self.names)
        if not re.match(r"\w", token):
            raise Outside(f"the sign {token} in front of an operand") if token else self.refuse(token)
        self.at += 1
        if token[0].isdigit():
            return literal(token)
        if token in ("reinterpret_cast", "static_cast"):
            kind = self.inside()
            is_address = kind_of(kind, self.names.types)[1]
            if is_address != (token == "reinterpret_cast"):
                raise Outside(f"{token}<{' '.join(kind)}>")
            return self.cast(kind, evaluated(self.inside(), self.names))
        if token in ("true", "false"):
            return Typed("int32", int(token == "true"))
        if token in self.names.variables:
            return self.names.variables[token]
        if token not in FUNCTIONS:
            is_function = self.next() == "(" or token in self.names.functions
            raise Outside(f"the {'function' if is_function else 'name'} {token} in an expression")
        given = [converted(evaluated(a, self.names), "uint32") for a in split(self.inside(), ",")]
        if len(given) != 2:
            raise Outside(f"{len(given)} arguments of {token}")
        return FUNCTIONS[token](*given)
