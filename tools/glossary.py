"""The rules for words: terms, names, summaries of docstrings and comments that the project does not use.

Each rule looks at one file and yields its findings. The words have one replacement each, which is the term of CUTLASS,
Triton, PTX or LLVM for the same thing.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

RULES = {
    "word": "a word with a better term: persistent kernel, producer warp, accumulator, epilogue, L2, asynchronous, n",
    "identifier": "a name without meaning in this field: iteration, epilogue, prefetch, vector, accumulator, storage",
    "file-name": "a file name without meaning in this field",
    "summary": "the first sentence of a docstring is a verb and an object, at most 15 words, about a named thing",
    "narration": "a comment describes the code as it is; its history is in the commits",
}
SUMMARY_WORDS = 15

_GAP = r"\s+(?:#\s*)?"  # also where a comment is wrapped
_TERMS = (
    *("told", "nobody", "copiers?", "lasting", "workers?", "sums"),
    *("blocks?~that~stays?", "in~turns", "(?:is|are)~none~of", "so~many", "second[- ]cache", "lines~ahead"),
)
WORD = re.compile(rf"\b(?:{'|'.join(_TERMS)})\b".replace("~", _GAP), re.IGNORECASE)
NAME_PARTS = frozenset(
    "turn turns later ahead together lasting sums pieces place places room tell bring brought".split()
)
NARRATION = re.compile(r"\b(?:no longer|used to be|was changed|now also|formerly)\b", re.IGNORECASE)
_HEADS = "(?:what|those|that|who|nobody)"
PRONOUN = re.compile(rf"^{_HEADS}\b|\b(?:Return|Yield|Whether|Print) {_HEADS}\b", re.IGNORECASE)

ALLOWED_NAMES = re.compile("in_?place|InPlace", re.IGNORECASE)  # the field's own term
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CANDIDATE = re.compile("|".join(sorted(NAME_PARTS)), re.IGNORECASE)

# Not written by hand, or a record of what was: generated files, expected texts, results. And where the rules stand.
_LEFT_OUT = re.compile(
    r"(?:^|/)golden|^benchmarks/(?:results/|serving_day_kernels)|^docs/evidence/|^tools/(?:check_words|glossary|word_counts)\.py$"
    r"|^tests/test_(?:glossary|repository)\.py$"
)
_GENERATED = "<!-- Written by tools/"


class Finding(NamedTuple):
    """What a rule refuses: the line, the key in RULES, and the text."""

    line: int
    rule: str
    text: str


def is_checked(name: str) -> bool:
    """Return whether the rules hold for a file, by its path from the root with slashes."""
    return name.endswith((".py", ".md")) and not _LEFT_OUT.search(name)


def findings(name: str, text: str) -> Iterator[Finding]:
    """Apply all rules to one file.

    Parameters
    ----------
    name
        The path from the root, with slashes.
    text
        The content. Of a changelog the first version counts, which is the unreleased one.
    """
    path = PurePosixPath(name)
    if path.name == "CHANGELOG.md":
        text = "\n## [".join(text.split("\n## [")[:2])
    if _GENERATED in text[:500]:
        return
    for part in path.with_suffix("").parts:
        if is_refused_name(part):
            yield Finding(1, "file-name", part)
    for match in WORD.finditer(text):
        yield Finding(text.count("\n", 0, match.start()) + 1, "word", " ".join(match[0].split()))
    if path.suffix == ".py":
        yield from _findings_of_code(path, text)


def is_refused_name(name: str) -> bool:
    """Return whether a snake_case or CamelCase name has a refused part, and is not refused as a word anyway."""
    if not _CANDIDATE.search(name) or WORD.fullmatch(name):
        return False
    parts = _PART.findall(ALLOWED_NAMES.sub("", name))
    return any(part.lower() in NAME_PARTS for part in parts)


def _findings_of_code(path: PurePosixPath, text: str) -> Iterator[Finding]:
    """Apply the rules for Python code: identifiers, summaries in packages, comments."""
    candidates = {name for name in set(re.findall(r"\w+", text)) if is_refused_name(name)}
    in_package = "src" in path.parts
    if candidates or in_package:
        for node in ast.walk(ast.parse(text, path.as_posix())):
            if candidates:
                for line, name in _names(node):
                    if name in candidates:
                        yield Finding(line, "identifier", name)
            if in_package and isinstance(node, _DOCUMENTED):
                yield from _check_summary(node)
    if NARRATION.search(text):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (found := NARRATION.search(token.string)):
                yield Finding(token.start[0], "narration", found[0])


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _check_summary(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    """Check the length and the head of the first sentence of a docstring."""
    docstring = ast.get_docstring(node)
    if docstring:
        summary = summary_of(docstring)
        words = len(summary.split())
        if words > SUMMARY_WORDS:
            yield Finding(node.body[0].lineno, "summary", f"{words} words")
        elif PRONOUN.search(summary):
            yield Finding(node.body[0].lineno, "summary", summary)


def summary_of(docstring: str) -> str:
    """Return the first line of a docstring, with the lines on which its sentence goes on."""
    lines: list[str] = []
    for line in docstring.splitlines():
        if not line.strip():
            break
        lines.append(line.strip())
        if line.rstrip().endswith((".", ":", "?", "!")):
            break
    return " ".join(lines)


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of the identifiers at a node of a syntax tree, not below it.

    Tokens would not do: what stands in an f-string is tokens since Python 3.12 only.
    """
    line = getattr(node, "lineno", 1)
    for _, value in ast.iter_fields(node):
        if isinstance(node, ast.Constant):
            return
        for name in value if isinstance(value, list) else (value,):
            if isinstance(name, str):
                for part in name.split("."):
                    yield line, part
