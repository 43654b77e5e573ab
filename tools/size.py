"""Sizes of the packages and separation of their parts: numbers for reviews.

::

    python tools/size.py [folder of the repository]

Lines of code are lines with a token of Python's on them: no blank lines, comments or docstrings. Tests are left out,
and ``tile_core.testing``, which is for backends to test with, is counted apart. A circle is a group of modules that
import each other, in functions or for annotations too. An annotation counts as ``Any`` if the name occurs in it. A
homonym is a name of several classes. A duplicated block is a run of six or more lines of code, without imports, that
stands in two packages.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Lines of a block that counts as duplicated.
BLOCK = 6
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """A file of a package.

    Attributes
    ----------
    package
        ``tile_core``, or ``tile_core.testing`` for what lies there.
    name
        With dots.
    path
        Of the file.
    tree
        Its syntax tree.
    """

    package: str
    name: str
    path: Path
    tree: ast.Module

    @functools.cached_property
    def code(self) -> list[tuple[int, str]]:
        """Line numbers and texts of its lines of code."""
        return _code(self.path, self.tree)

    @functools.cached_property
    def classes(self) -> list[str]:
        """Names of its classes, those within others too."""
        return [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]


def main() -> None:
    """Print the tables."""
    with uncollected():
        _print()


def _print() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    modules = modules_of(root)
    packages = sorted({m.package for m in modules})
    print(f"{'':20}{'code':>8}{'files':>8}{'functions':>11}{'Any':>8}")
    for package in [*packages, "all"]:
        chosen = [m for m in modules if package in (m.package, "all")]
        row = sum(len(m.code) for m in chosen), len(chosen), sum(map(_functions, chosen)), sum(map(_any, chosen))
        print(f"{package:20}{row[0]:8}{row[1]:8}{row[2]:11}{row[3]:8}")
    apart = [m for m in modules if not m.package.endswith(".testing")]
    print(f"\ncode without testing: {sum(len(m.code) for m in apart)}")
    found = circles(modules)
    print(f"import circles: {len(found)}, with {sum(map(len, found))} modules")
    for names in found:
        print(f"    {' '.join(names)}")
    same = homonyms(apart)
    print(f"names of several classes: {len(same)}")
    for name, found_in in same.items():
        print(f"    {name} x {len(found_in)}: {' '.join(found_in)}")
    lines, path = max((len(m.path.read_text(encoding="utf-8").splitlines()), m.name) for m in modules)
    print(f"longest file: {path}, {lines} lines")
    lines, path = max(_lengths(modules))
    print(f"longest function: {path}, {lines} lines")
    blocks = duplicates(apart)
    print(f"blocks of {BLOCK} or more lines in two packages: {len(blocks)}")
    for length, one, other in blocks:
        print(f"    {length} lines: {one} and {other}")


def circles(modules: list[Module]) -> list[list[str]]:
    """Return the groups of modules that import each other."""
    names = {m.name for m in modules}
    imported = {m.name: sorted(_imported(m, names) - {m.name}) for m in modules}
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in imported[name]:
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            group = stack[stack.index(name) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(names):
        if name not in number:
            visit(name)
    return found


def homonyms(modules: list[Module]) -> dict[str, list[str]]:
    """Return the names that several classes have, and the modules that these are in."""
    found_in = defaultdict(list)
    for m in modules:
        for name in m.classes:
            found_in[name].append(m.name)
    many = {name: at for name, at in found_in.items() if len(at) > 1}
    return dict(sorted(many.items(), key=lambda item: (-len(item[1]), item[0])))


def duplicates(modules: list[Module]) -> list[tuple[int, str, str]]:
    """Return the blocks that stand in two packages: lines, and where."""
    windows = defaultdict(list)
    lines = {m.name: [(n, text) for n, text in m.code if not text.startswith(("import ", "from "))] for m in modules}
    for m in modules:
        own = [text for _, text in lines[m.name]]
        for i in range(len(own) - BLOCK + 1):
            if any(len(text) > 3 for text in own[i : i + BLOCK]):
                windows[tuple(own[i : i + BLOCK])].append((m.package.partition(".")[0], m.name, i))
    pairs = set()
    for found_in in windows.values():
        for n, (package, name, i) in enumerate(found_in):
            pairs |= {(name, i, other, j) for p, other, j in found_in[n + 1 :] if p != package}
    found = []
    for name, i, other, j in sorted(pairs):
        if (name, i - 1, other, j - 1) not in pairs:
            length = BLOCK
            while (name, i + length - BLOCK + 1, other, j + length - BLOCK + 1) in pairs:
                length += 1
            found.append((length, f"{name}:{lines[name][i][0]}", f"{other}:{lines[other][j][0]}"))
    return sorted(found, reverse=True)


def modules_of(root: Path) -> list[Module]:
    """Return the modules of the packages of a checkout."""
    return list(_modules_of(root))


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage in a block: trees of modules are millions of objects, and none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _modules_of(root: Path) -> Iterator[Module]:
    for source in sorted(root.glob("packages/*/src/tile_*")):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source.parent).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            package = ".".join(parts[:2]) if parts[1:2] == ("testing",) else parts[0]
            yield Module(package, ".".join(parts), path, ast.parse(path.read_text(encoding="utf-8")))


def _code(path: Path, tree: ast.Module) -> list[tuple[int, str]]:
    """Return the lines with code: numbers, and texts without indentation."""
    text = path.read_text(encoding="utf-8")
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    return [(n, lines[n - 1].strip()) for n in sorted(found)]


def _imported(module: Module, names: set[str]) -> set[str]:
    """Return the modules imported by a module.

    An import of a name is that of its package if the name is not a module.
    """
    found = set()
    inside = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(inside.split(".")[: len(inside.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (above, node.module) if part)
            for alias in node.names:
                found.add(full if (full := f"{source}.{alias.name}") in names else source)
    return found & names


def _functions(module: Module) -> int:
    return sum(isinstance(node, _FUNCTIONS) for node in ast.walk(module.tree))


def _any(module: Module) -> int:
    """Return how many annotations have ``Any`` in them."""
    annotations: list[ast.expr | None] = []
    for node in ast.walk(module.tree):
        if isinstance(node, _FUNCTIONS):
            annotations.append(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            annotations.append(node.annotation)
    return sum(any(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(a)) for a in annotations if a)


def _lengths(modules: list[Module]) -> Iterator[tuple[int, str]]:
    for m in modules:
        for node in ast.walk(m.tree):
            if isinstance(node, _FUNCTIONS):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{m.name}.{node.name}"


if __name__ == "__main__":
    main()
