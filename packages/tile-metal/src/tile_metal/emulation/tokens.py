"""Tokens and functions of MSL source, enough to rewrite and check it.

It is not a C++ parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from tile_core.records import dataclass

SPACES = frozenset({"device", "constant", "threadgroup", "thread", "threadgroup_imageblock", "ray_data", "object_data"})
"""Words that name a space of addresses."""

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\f\v\n]+|\\\n|//(?:\\\n|[^\n])*|/\*.*?\*/)
    |(?P<directive>\#(?:\\\n|[^\n])*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<char>'(?:\\.|[^'\\\n])*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<punct><<=|>>=|->|::|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|<<|.)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Token:
    """One word, sign, number or whole line of the preprocessor.

    Attributes
    ----------
    kind
        ``"name"``, ``"number"``, ``"punct"``, ``"string"``, ``"char"`` or ``"directive"``. Of shifts to the right each
        sign is one token, since two also end templates.
    text
        As it stands in the text.
    start, line
        Where: characters from the beginning, and the 1-based line.
    """

    kind: str
    text: str
    start: int
    line: int

    @property
    def end(self) -> int:
        """Where the next character is."""
        return self.start + len(self.text)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, without comments."""
    tokens: list[Token] = []
    line = 1
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind != "skip":
            tokens.append(Token(kind, found[0], found.start(), line))
        line += found[0].count("\n")
    return tokens


def matching(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the matching closing bracket, or the last token."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].kind == "punct" and tokens[i].text in "([{":
            depth += 1
        elif tokens[i].kind == "punct" and tokens[i].text in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


def matching_angle(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the sign that closes template arguments; -1 without one."""
    depth, i = 0, at
    while i < len(tokens):
        text = tokens[i].text
        if text in _CLOSING:
            i = matching(tokens, i)
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return i
        elif text in (";", ")", "}", "]"):
            return -1
        i += 1
    return -1


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function.

    Attributes
    ----------
    tokens
        Its declaration, without attributes.
    name
        Its name; empty if it has none.
    attributes
        Name and argument of each attribute, for example ``("buffer", "0")``.
    """

    tokens: tuple[Token, ...]
    name: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FunctionTokens:
    """A function that is defined or declared in a text.

    Attributes
    ----------
    name
        Its name.
    head
        Tokens before the name: attributes, return type.
    parameters
        In order.
    open, close
        Indices of the braces of its body; equal if it has none.
    first
        Index of its first token.
    attributes
        Those of the function, for example ``("kernel", "")``.
    """

    name: Token
    head: tuple[Token, ...]
    parameters: tuple[Parameter, ...]
    open: int
    close: int
    first: int
    attributes: tuple[tuple[str, str], ...]

    @property
    def is_kernel(self) -> bool:
        """Whether it can be launched."""
        return any(name == "kernel" for name, _ in self.attributes) or any(t.text == "kernel" for t in self.head)

    @property
    def is_template(self) -> bool:
        """Whether it is a template."""
        return bool(self.head) and self.head[0].text == "template"


@dataclass
class Outline:
    """The functions of a source text, and the code outside of them.

    Attributes
    ----------
    functions
        In order.
    outside
        Statements at namespace scope that are not functions, each as its tokens.
    members
        Statements of structures.
    """

    functions: list[FunctionTokens] = field(default_factory=list)
    outside: list[list[Token]] = field(default_factory=list)
    members: list[list[Token]] = field(default_factory=list)


def outline(tokens: Sequence[Token]) -> Outline:
    """Find the functions of a text."""
    found = Outline()
    _scope(tokens, 0, len(tokens), found, found.outside)
    return found


def _scope(tokens: Sequence[Token], at: int, end: int, found: Outline, rest: list[list[Token]]) -> None:
    begin = at
    while at < end:
        token = tokens[at]
        if token.kind == "directive":
            at += 1
            begin = at if at == begin + 1 else begin
        elif token.text in "([" and token.kind == "punct":
            at = matching(tokens, at) + 1
        elif token.text == "{":
            close = matching(tokens, at)
            at = begin = _block(tokens, begin, at, close, found, rest)
        elif token.text == ";":
            statement = [t for t in tokens[begin:at] if t.kind != "directive"]
            function = _function(tokens, begin, at, at)
            if function is not None and not any(t.text == "=" for t in statement):
                found.functions.append(function)
            elif statement:
                rest.append(statement)
            at = begin = at + 1
        else:
            at += 1


def _block(tokens: Sequence[Token], begin: int, at: int, close: int, found: Outline, rest: list[list[Token]]) -> int:
    """Classify the block of a brace, and return the index after it.

    A block is a namespace, a structure, a function or an initializer.
    """
    head = tokens[begin:at]
    words = [t.text for t in head]
    if "namespace" in words[:2] or words[:1] == ["extern"]:
        _scope(tokens, at + 1, close, found, rest)
        return close + 1
    if "=" not in words and "(" not in words and {"struct", "class", "union", "enum"} & set(words):
        if "enum" not in words:
            _scope(tokens, at + 1, close, found, found.members)
        return close + 2  # with the semicolon
    function = None if "=" in _outside_brackets(head) else _function(tokens, begin, at, close)
    if function is not None:
        found.functions.append(function)
        return close + 1
    end = close
    while end + 1 < len(tokens) and tokens[end].text != ";":
        end += 1
    rest.append([t for t in tokens[begin:end] if t.kind != "directive"])
    return end + 1


def _outside_brackets(tokens: Sequence[Token]) -> list[str]:
    words, i = [], 0
    while i < len(tokens):
        words.append(tokens[i].text)
        i = matching(tokens, i) + 1 if tokens[i].text in ("(", "[") else i + 1
    return words


def _function(tokens: Sequence[Token], begin: int, end: int, close: int) -> FunctionTokens | None:
    """The function whose head is tokens[begin:end], if it is one."""
    while begin < end and tokens[begin].kind == "directive":
        begin += 1
    i = begin
    attributes: list[tuple[str, str]] = []
    while i < end:
        text = tokens[i].text
        if text == "[":
            stop = matching(tokens, i)
            attributes += attributes_of(tokens[i : stop + 1])
            i = stop + 1
        elif text == "<" and (stop := matching_angle(tokens, i)) > 0:
            i = stop + 1
        elif text == "(" and i > begin and tokens[i - 1].kind == "name" and tokens[i - 1].text not in _NOT_NAMES:
            name = tokens[i - 1]
            head = tuple(_without_attributes(tokens[begin : i - 1]))
            if not any(t.kind == "name" for t in head):
                return None
            parameters = _parameters(tokens[i + 1 : matching(tokens, i)])
            at, last = (end, close) if close > end else (end, end)
            return FunctionTokens(name, head, parameters, at, last, begin, tuple(attributes))
        elif text == "(":
            i = matching(tokens, i) + 1
        else:
            i += 1
    return None


_NOT_NAMES = frozenset({"alignas", "decltype", "__attribute__", "sizeof", "static_assert", "operator"})


def _parameters(tokens: Sequence[Token]) -> tuple[Parameter, ...]:
    return tuple(_parameter(part) for part in split(tokens) if part)


def split(tokens: Sequence[Token], sign: str = ",") -> list[list[Token]]:
    """Split tokens at a sign outside brackets and template arguments."""
    parts: list[list[Token]] = [[]]
    i = 0
    while i < len(tokens):
        text, stop = tokens[i].text, i
        if text in _CLOSING:
            stop = matching(tokens, i)
        elif text == "<":
            stop = max(i, matching_angle(tokens, i))
        if text == sign and tokens[i].kind == "punct":
            parts.append([])
        else:
            parts[-1] += tokens[i : stop + 1]
        i = stop + 1
    return parts


def _parameter(tokens: Sequence[Token]) -> Parameter:
    attributes = attributes_of(tokens)
    plain = _without_attributes(tokens)
    names = [t for t in split(plain, "=")[0] if t.kind == "name"]
    return Parameter(tuple(plain), names[-1].text if len(names) > 1 else "", tuple(attributes))


def _without_attributes(tokens: Sequence[Token]) -> list[Token]:
    plain, i = [], 0
    while i < len(tokens):
        if _begins_attribute(tokens, i):
            i = matching(tokens, i) + 1
            continue
        plain.append(tokens[i])
        i += 1
    return plain


def _begins_attribute(tokens: Sequence[Token], i: int) -> bool:
    return i + 1 < len(tokens) and tokens[i].text == "[" and tokens[i + 1].text == "["


def attributes_of(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Return name and argument of each attribute ``[[name(argument), ...]]`` in tokens."""
    found: list[tuple[str, str]] = []
    i = 0
    while i < len(tokens):
        if not _begins_attribute(tokens, i):
            i += 1
            continue
        stop = matching(tokens, i)
        for part in split(tokens[i + 2 : stop - 1]):
            if part:
                inside = part[2:-1] if len(part) > 2 and part[1].text == "(" else []
                found.append((part[0].text, " ".join(t.text for t in inside)))
        i = stop + 1
    return found
