"""Docstrings in numpy style as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass, field, replace
from typing import Any

#: Sections that are shown, in this order; others follow as they stand.
_LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring.

    Attributes
    ----------
    summary
        Its first paragraph, as one line.
    body
        The paragraphs before the first section.
    sections
        Title -> text.
    """

    summary: str
    body: str = ""
    sections: dict[str, str] = field(default_factory=dict)

    def without(self, section: str) -> Docstring:
        """Return the docstring without one of its sections."""
        return replace(self, sections={title: text for title, text in self.sections.items() if title != section})

    def markdown(self) -> str:
        """Return all of it; parameters, results and errors as lists."""
        parts = [self.summary, _fenced_sessions(self.body)]
        for title, text in self.sections.items():
            shown = _items(text, code=title != "Returns") if title in _LISTS else _fenced_sessions(text)
            parts.append(f"**{title}**\n\n{shown}")
        return "\n\n".join(part for part in parts if part) + "\n"


def docstring_of(value: Any) -> Docstring:
    """Return the docstring of a module, class or function."""
    text = inspect.getdoc(value) or ""
    chunks = re.split(r"^(\w[\w ]*)\n-{3,}$\n?", text, flags=re.MULTILINE)
    first, _, rest = chunks[0].strip().partition("\n\n")
    sections = {title: body.strip("\n") for title, body in zip(chunks[1::2], chunks[2::2], strict=True)}
    return Docstring(" ".join(first.split()), rest.strip(), sections)


#: Characters of a line of code that a page shows.
WIDTH = 100


def signature_of(value: Any, name: str) -> str:
    """Return how something is called, without types: ``T.copy(src, dst, *, coalesced_width=None)``."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    # Members of enumerations are shown as <Name.member: 0>.
    return name + re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", text)


def wrapped_signature_of(value: Any, name: str) -> str:
    """Return the same on lines of at most ``WIDTH`` characters."""
    text = signature_of(value, name)
    if len(text) <= WIDTH:
        return text
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * (len(name) + 1), break_on_hyphens=False)


#: Lines of an interactive session, and the output below them.
_SESSION = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


def _fenced_sessions(text: str) -> str:
    """Return a text with its doctests as code; Markdown would make quotations of them."""
    return _SESSION.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _items(text: str, *, code: bool) -> str:
    """Return a list from lines without indentation, each with an indented explanation."""
    out: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            out.append((line.strip(), []))
        elif out:
            out[-1][1].append(line[4:] if line.startswith("    ") else line)
    shown = []
    for head, lines in out:
        explained = "\n".join(lines).strip()
        name = f"`{head}`" if code else head
        shown.append(f"- {name}" + (f": {_indented(explained)}" if explained else ""))
    return "\n".join(shown)


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
