"""Text of an expression with the precedence of its outermost operator."""

from __future__ import annotations

CHOICE, LOGIC, BITS, COMPARE, SUM, PRODUCT, UNARY, ATOM = range(8)

_LEVELS = {
    **dict.fromkeys(("&&", "||"), LOGIC), **dict.fromkeys(("&", "|", "^", "<<", ">>"), BITS),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARE), "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "%": PRODUCT,
}  # fmt: skip


class Text(str):
    """The text of an expression; a plain string is one that never needs parentheses.

    Attributes
    ----------
    level
        The precedence of the outermost operator.
    sign
        That operator, if it has two operands.
    inner
        The operand of an outermost conversion: sufficient where the text is assigned to a variable of the same type.
    """

    level: int
    sign: str
    inner: str | None

    def __new__(cls, text: str, level: int, sign: str = "", inner: str | None = None) -> Text:
        """Make a text of the given level."""
        self = super().__new__(cls, text)
        self.level, self.sign, self.inner = level, sign, inner
        return self


def wrapped(text: str, level: int, sign: str = "") -> str:
    """Return a text as an operand: parenthesized if it binds less, unless signs agree."""
    if not isinstance(text, Text) or text.level >= level or (sign and text.sign == sign):
        return text
    return f"({text})"


def infix(sign: str, left: str, right: str) -> Text:
    """Return an operation of two operands.

    Bit operations, ``&&`` within ``||``, and a quotient within a product get more parentheses than C requires, because
    their precedence is easily misread.
    """
    level = _LEVELS[sign]
    if level in (LOGIC, BITS):
        above = COMPARE if level == LOGIC else UNARY
        repeats = sign if sign in ("&&", "||", "&", "|", "^") else ""
        return Text(f"{wrapped(left, above, repeats)} {sign} {wrapped(right, above)}", level, sign)
    first = level + 1 if level == COMPARE else level
    if level == PRODUCT and isinstance(left, Text) and left.sign != sign:
        first = UNARY
    return Text(f"{wrapped(left, first)} {sign} {wrapped(right, level + 1)}", level, sign)
