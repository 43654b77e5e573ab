"""Rewriting of ``asm`` statements to C++ calls of models of PTX instructions.

``asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(a));`` becomes a block that copies
the inputs to registers, calls ``ptx::ldmatrix_sync_aligned_m8n8_x1_shared_b16(line, ptx::v(r0), r1)`` and assigns the
outputs. The assignments stay plain C++, so that they are checked like every other access of the kernel.

Nothing is skipped: an instruction without a model, or one that cannot be parsed, becomes a compile error at its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tile_core.records import dataclass

# The call that stands for an opcode: name of the function in namespace ``ptx``; or why there is none.
Find = Callable[[str], str]


class Refused(Exception):
    """Something in the source has no model; the argument is the message."""


def translate(text: str, find: Find) -> str:
    """Replace every ``asm`` statement of a text.

    Parameters
    ----------
    text
        C++ for the device.
    find
        Gives the function for an opcode, or raises ``Refused``.

    Returns
    -------
    str
        A text with the same number of lines.
    """
    parts: list[str] = []
    end = 0
    for found in _statements(text):
        parts.append(text[end : found.start])
        try:
            code = _block(text[found.open + 1 : found.end - 1], find)
        except Refused as reason:
            code = refusal(str(reason))
        parts += [code, "\n" * text.count("\n", found.start, found.end)]
        end = found.end
    return "".join([*parts, text[end:]])


def refusal(message: str) -> str:
    """Return C++ that does not compile, with a message."""
    quoted = message.replace("\\", "/").replace('"', "'")
    return f'_Pragma("GCC error \\"{quoted}\\"")'


# -------------------------------------------------------------------------------------------------------- C++ around it

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\b(?:asm|__asm__|__asm)\b|[^\W\d]\w*|[\d.]\w*|.|\n""",
    re.DOTALL,
)
_HEAD = re.compile(r"(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__|__volatile)\s*)?\(")


@dataclass(frozen=True)
class _Statement:
    start: int
    open: int  # of its bracket
    end: int  # behind the closing one


def _statements(text: str) -> Iterator[_Statement]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None
        head = _HEAD.match(text, position) if token[0] in ("asm", "__asm__", "__asm") else None
        if head is None:
            position = token.end()
            continue
        end = _closing(text, head.end() - 1)
        yield _Statement(position, head.end() - 1, end)
        position = end


def _closing(text: str, opening: int) -> int:
    """Return the position behind the bracket that closes the one at ``opening``."""
    depth, position = 0, opening
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
        position = token.end()
        if not depth:
            return position
    return position


def _split(text: str, separator: str) -> list[str]:
    """Parts of C++ source between separators outside brackets and strings."""
    parts, depth, begin = [], 0, 0
    for token in _TOKEN.finditer(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] == separator and not depth:
            parts.append(text[begin : token.start()])
            begin = token.end()
    return [*parts, text[begin:]]


@dataclass(frozen=True)
class _Operand:
    constraint: str
    expression: str


_LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"')
_ESCAPE = re.compile(r"\\(.)")
_OPERAND = re.compile(r'\s*(?:\[(?P<name>\w+)\]\s*)?"(?P<constraint>[^"]*)"\s*\((?P<expression>.*)\)\s*', re.DOTALL)
_REGISTERS = "hrlfd"


def _operands(section: str) -> list[_Operand]:
    operands = []
    for part in _split(section, ","):
        if not part.strip():
            continue
        found = _OPERAND.fullmatch(part)
        if found is None or found["name"]:
            raise Refused(f"the operand {part.strip()} of an asm statement cannot be read")
        expression = re.sub(r"//[^\n]*|/\*.*?\*/", " ", found["expression"], flags=re.DOTALL)
        operands.append(_Operand(found["constraint"], " ".join(expression.split())))
    return operands


def _template(section: str) -> str:
    rest = re.sub(r"//[^\n]*|/\*.*?\*/", " ", _LITERAL.sub(" ", section), flags=re.DOTALL)
    if rest.strip():
        raise Refused("the text of an asm statement must be string literals")
    escapes = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
    joined = "".join(_LITERAL.findall(section))
    return _ESCAPE.sub(lambda m: escapes.get(m[1], " "), joined)


def _block(body: str, find: Find) -> str:
    """The C++ block that stands for one statement."""
    sections = _split(body, ":")
    if len(sections) > 4:
        raise Refused("an asm statement has more than four sections")
    outputs, inputs = (_operands(sections[i]) if len(sections) > i else [] for i in (1, 2))
    before, after, operand_names = [], [], []
    template = _template(sections[0])
    asynchronous = _async_operands(template)
    for number, operand in enumerate(outputs):
        kind = operand.constraint[1:]
        if operand.constraint[:1] not in ("=", "+") or kind not in tuple(_REGISTERS):
            raise Refused(f"no register for the output constraint '{operand.constraint}'")
        if number in asynchronous:
            before.append(_itself(number, operand, kind))
            operand_names.append(f"r{number}")
            continue
        take = "fresh" if operand.constraint[0] == "=" else "take"
        before.append(f"auto& to{number} = ({operand.expression});")
        before.append(f"ptx::reg_{kind} r{number} = ptx::{take}<ptx::reg_{kind}>(to{number});")
        after.append(f"to{number} = (__typeof__(to{number} + 0))r{number};")
        operand_names.append(f"r{number}")
    for number, operand in enumerate(inputs, len(outputs)):
        kind = operand.constraint
        if number in asynchronous:
            before.append(_itself(number, operand, kind))
        elif kind in tuple(_REGISTERS):
            taken = f"ptx::take<ptx::reg_{kind}>({operand.expression})"
            before.append(f"const ptx::reg_{kind} r{number} = {taken};")
        elif kind == "n":
            before.append(f"constexpr long long r{number} = ({operand.expression});")
        else:
            raise Refused(f"no register for the input constraint '{kind}'")
        operand_names.append(f"r{number}")
    code = _Ptx(find, operand_names).print(template)
    return " ".join(["do {", code.labels, *before, code.calls, *after, "} while (0)"])


_ASYNCHRONOUS = re.compile(r"\bwgmma\.mma_async(?P<sparse>\.sp)?\.[\w.]+\s+(?P<operands>[^;]+);")

_LOADS = re.compile(r"\btcgen05\.ld\.[\w.]+\s+\{(?P<registers>[^}]*)\}")


def _async_operands(template: str) -> frozenset[int]:
    """Return the operands that an asynchronous instruction accesses after its statement.

    These are the fragments, which stand in braces, and the metadata of a sparse product; and what a load from tensor
    memory fills.
    """
    found: set[int] = {int(n) for one in _LOADS.finditer(template) for n in re.findall(r"%(\d+)", one["registers"])}
    for one in _ASYNCHRONOUS.finditer(template):
        operands = _parts(one["operands"])
        fragments = [o for o in operands if o.strip().startswith("{")] + (operands[3:4] if one["sparse"] else [])
        found |= {int(n) for o in fragments for n in re.findall(r"%(\d+)", o)}
    return frozenset(found)


def _itself(number: int, operand: _Operand, kind: str) -> str:
    """Declare a register as a variable of the text instead of a copy."""
    same = f"static_assert(sizeof(ptx::reg_{kind}) == sizeof(r{number}))"
    return f"auto& r{number} = ({operand.expression}); {same};"


# ----------------------------------------------------------------------------------------------------- PTX inside of it

_PIECE = re.compile(
    r"\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<open>\{)|(?P<close>\})|(?P<label>[A-Za-z_$][\w$]*)\s*:(?!:)|(?P<empty>;)"
    r"|(?P<statement>[^;]+);)", re.DOTALL
)  # fmt: skip
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.DOTALL)
_GUARD = re.compile(r"@(!?)([A-Za-z_][\w$]*)\s+(.+)", re.DOTALL)
_TYPES = {
    "pred": "bool", "f32": "ptx::reg_f", "f64": "ptx::reg_d",
    **{f"{sign}{bits}": f"ptx::reg_{kind}" for sign in "bus" for bits, kind in ((16, "h"), (32, "r"), (64, "l"))},
}  # fmt: skip
_SPECIAL = {"laneid", "warpid", "tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y",
            "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "lanemask_lt", "lanemask_le", "lanemask_eq", "lanemask_ge",
            "lanemask_gt", "cluster_ctarank", "cluster_nctarank"}  # fmt: skip


@dataclass(frozen=True)
class _Code:
    labels: str
    calls: str


class _Ptx:
    """Prints the instructions of one asm statement."""

    def __init__(self, find: Find, operand_names: Sequence[str]) -> None:
        self._find = find
        self._operand_names = operand_names
        self._names: set[str] = set()
        self._labels: set[str] = set()

    def print(self, template: str) -> _Code:
        matches, position = [], 0
        template = template.rstrip()
        while position < len(template):
            found = _PIECE.match(template, position)
            if found is None:
                raise Refused(f"'{template[position:].strip()}' does not end with a semicolon")
            matches.append(found)
            position = found.end()
        self._labels = {f["label"] for f in matches if f["label"]}
        if len(self._labels) < sum(bool(f["label"]) for f in matches):
            raise Refused("an asm statement has two labels of one name")
        calls = " ".join(self._piece(f) for f in matches)
        labels = f"__label__ {', '.join('at_' + name for name in sorted(self._labels))};" if self._labels else ""
        return _Code(labels, calls)

    def _piece(self, found: re.Match[str]) -> str:
        if found["comment"] or found["empty"]:
            return ""
        if found["open"] or found["close"]:
            return found["open"] or found["close"]
        return f"at_{found['label']}:;" if found["label"] else self._statement(found["statement"].strip())

    def _statement(self, text: str) -> str:
        guard = _GUARD.fullmatch(text)
        if guard is not None:
            return f"if ({guard[1]}{self._name(guard[2])}) {{ {self._statement(guard[3])} }}"
        declared = _REGISTER.fullmatch(text)
        if declared is not None:
            return self._declare(declared[1], declared[2])
        opcode, _, rest = text.partition(" ")
        opcode = opcode.strip()
        if opcode in ("bra", "bra.uni"):
            if rest.strip() not in self._labels:
                raise Refused(f"the label {rest.strip()} is not in the asm statement")
            return f"goto at_{rest.strip()};"
        operands = [self._operand(part) for part in _parts(rest)]
        return f"ptx::{self._find(opcode)}({', '.join(['__LINE__', *operands])});"

    def _declare(self, kind: str, names: str) -> str:
        wanted = [name.strip() for name in names.split(",")]
        if kind not in _TYPES or not all(re.fullmatch(r"[A-Za-z_][\w$]*", name) for name in wanted):
            raise Refused(f"the registers .{kind} {names} cannot be read")
        self._names.update(wanted)
        return " ".join(f"{_TYPES[kind]} reg_{name} = ptx::poison<{_TYPES[kind]}>();" for name in wanted)

    def _name(self, name: str) -> str:
        if name not in self._names:
            raise Refused(f"{name} is not a register of the asm statement")
        return f"reg_{name}"

    def _operand(self, text: str) -> str:
        text = text.strip()
        inner = _parts(text[1:-1])
        if text[:1] == "{" and text[-1:] == "}":
            return f"ptx::v({', '.join(self._operand(part) for part in inner)})"
        if text[:1] == "[" and text[-1:] == "]":
            printed = [self._operand(part) for part in inner]
            return printed[0] if len(printed) == 1 else f"ptx::mem({', '.join(printed)})"
        both = re.fullmatch(r"([^|]+)\|([^|]+)", text)
        if both is not None:
            return f"ptx::both({self._operand(both[1])}, {self._operand(both[2])})"
        plus = re.fullmatch(r"(.+?)\s*\+\s*(.+)", text)
        if plus is not None:
            return f"({self._operand(plus[1])} + {self._operand(plus[2])})"
        return self._atom(text)

    def _atom(self, text: str) -> str:
        number = re.fullmatch(r"%(\d+)", text)
        if number is not None:
            if int(number[1]) >= len(self._operand_names):
                raise Refused(f"an asm statement has no operand {text}")
            return self._operand_names[int(number[1])]
        if text == "_":
            return "ptx::sink"
        if text.startswith("%%") and text[2:] in _SPECIAL:
            return f"ptx::special_{text[2:].replace('.', '_')}()"
        if text.startswith("!"):
            return f"!{self._name(text[1:].strip())}"
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return text.rstrip("U")
        bits = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text)
        if bits is not None:
            return f"ptx::bits_f(0x{bits[1]}u)" if bits[1] else f"ptx::bits_d(0x{bits[2]}ull)"
        if re.fullmatch(r"[A-Za-z_][\w$]*", text):
            return self._name(text)
        raise Refused(f"the operand '{text}' cannot be read")


def _parts(text: str) -> list[str]:
    """Operands of an instruction: what stands between commas that are in no bracket."""
    return [part for part in _split(text, ",") if part.strip()]
