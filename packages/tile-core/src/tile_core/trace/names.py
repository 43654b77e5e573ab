"""Find the names that a function binds, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def parameters(args: ast.arguments) -> list[str]:
    """Return the names of a function's parameters, in order."""
    plain = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return plain + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


def target_names(target: ast.expr) -> list[str]:
    """Return the names that an assignment to ``target`` binds, in order."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Starred):
        return target_names(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [n for t in target.elts for n in target_names(t)]
    return []


def tracked_names(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names bound inside a block of the function: their uses need a check."""
    found: set[str] = set()
    for statement in function.body:
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With)):
            found.update(_bound(statement))
    return frozenset(found)


def shadowed(node: ast.expr) -> list[str]:
    """Return the names that a lambda or comprehension binds."""
    if isinstance(node, ast.Lambda):
        return parameters(node.args)
    if isinstance(node, _COMPREHENSIONS):
        return [n for g in node.generators for n in target_names(g.target)]
    return []


def _bound(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif not isinstance(child, (*_SCOPES, *_COMPREHENSIONS)):
            yield from _bound(child)
