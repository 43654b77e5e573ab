"""The rewrite of a kernel function's syntax tree.

Every construct whose meaning depends on whether its operands are known while tracing becomes a call; the result is
ordinary Python. In this table ``f`` is ``__frame__`` and ``t`` is ``__tile__``::

    x = e                    x = f.assign("x", f.named("x") and e)
    x += e                   x = f.assign("x", t.augmented("iadd", x, e))
    x: T.int32 = e           x = f.declare("x", T.int32, e)
    A[i] = e                 t.store(e, A, i)
    if c: … else: …          h = f.if_(c)
                             if h.then(): …
                             if h.otherwise(): …
                             h.end()
    for i in e: …            for i in f.loop(e, ("i",), False): f.bind(("i",), (i,)); …
    while c: …               w = f.while_()
                             while w.open() and w.test(c): …
    break                    if f.break_(): break
    return e                 return f.return_(e)
    assert c, m              t.check(c, lambda: m)
    a and b                  t.and_(a, lambda: b)
    a < b < c                t.chain(("lt", "lt"), a, lambda: b, lambda: c)
    a if c else b            t.choose(c, lambda: a, lambda: b)
    min(a, b)                t.builtin(min)(a, b)

``if`` keeps Python's statements around the bodies, so that ``break``, ``continue`` and ``return`` under a condition
known while tracing are Python's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from tile_core.errors import Where
from tile_core.errors.language import RefusedSyntax
from tile_core.trace.names import parameters, shadowed, target_names, tracked_names
from tile_core.values.builder import SUPPORT

FRAME = "__frame__"
_Node = TypeVar("_Node", bound=ast.AST)

#: Builtins that have a meaning for runtime values.
BUILTINS = frozenset("min max abs sum len round int float bool print pow any all divmod range".split())

_COMPARISONS = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "is_",
    ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in",
}  # fmt: skip
_AUGMENTED = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand", ast.MatMult: "imatmul",
}  # fmt: skip
_REFUSED = {
    "Try": ("try", "check conditions with if, or raise before the kernel is traced"),
    "TryStar": ("try", "check conditions with if, or raise before the kernel is traced"),
    "AsyncFunctionDef": ("async def", "use a plain def"),
    "AsyncFor": ("async for", "use a plain for"),
    "AsyncWith": ("async with", "use a plain with"),
    "Await": ("await", "kernels run to their end"),
    "Yield": ("yield", "write results to a buffer"),
    "YieldFrom": ("yield from", "write results to a buffer"),
    "Global": ("global", "pass the value as an argument of the function that makes the kernel"),
    "Nonlocal": ("nonlocal", "return the value instead"),
    "ClassDef": ("class", "define it outside of the kernel"),
    "Delete": ("del", "leave it out: names end with their block"),
    "NamedExpr": (":=", "assign in a statement of its own"),
    "Match": ("match", "use if / elif / else"),
}


def rewrite_function(node: ast.FunctionDef, file: str) -> ast.FunctionDef:
    """Return the rewritten definition, without decorators, defaults and annotations.

    Raises
    ------
    RefusedSyntax
        At the line of a statement that a kernel cannot have.
    """
    new = _RewriteFunction(node, file).function(node)
    new.decorator_list, new.returns = [], None
    for arg in (*new.args.posonlyargs, *new.args.args, *new.args.kwonlyargs, new.args.vararg, new.args.kwarg):
        if arg is not None:
            arg.annotation = None
    # Placeholders: the function object gets the user's defaults.
    new.args.defaults = [ast.Constant(None) for _ in new.args.defaults]
    new.args.kw_defaults = [None if d is None else ast.Constant(None) for d in new.args.kw_defaults]
    return new


def function_node(name: str, args: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """Return the definition of a plain function, for every version of Python's syntax tree."""
    node = ast.FunctionDef(name=name, args=args, body=body, decorator_list=[], returns=None)
    if "type_params" in ast.FunctionDef._fields:
        setattr(node, "type_params", [])  # noqa: B010 - since Python 3.12
    return node


class _RewriteFunction(ast.NodeTransformer):
    """The rewrite of one function; nested functions get a rewriter of their own."""

    def __init__(self, node: ast.FunctionDef, file: str) -> None:
        self.file = file
        self.params = parameters(node.args)
        self.tracked = tracked_names(node)
        self.shadow: tuple[str, ...] = ()
        self.exchanged: list[str] = []
        self.count = 0

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        names = ast.Dict([ast.Constant(p) for p in self.params], [_load(p) for p in self.params])
        start = _assign(FRAME, _call(SUPPORT, "Frame", names))
        body = self.block(node.body)
        new = function_node(node.name, node.args, [_at(start, node), *body])
        new.decorator_list, new.returns = node.decorator_list, node.returns
        return _at(new, node)

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a list of statements."""
        out: list[ast.stmt] = []
        for s in statements:
            new = self.visit(s)
            out.extend(new if isinstance(new, list) else [] if new is None else [new])
        return out

    def visit(self, node: ast.AST) -> Any:
        refused = _REFUSED.get(type(node).__name__)
        if refused is not None:
            raise self.refuse(node, *refused)
        return super().visit(node)

    def refuse(self, node: Any, what: str, instead: str) -> RefusedSyntax:
        return RefusedSyntax(what=what, instead=instead, where=Where(self.file, node.lineno))

    def temporary(self, kind: str) -> str:
        self.count += 1
        return f"__{kind}{self.count}"

    # ------------------------------------------------------------------ assignment

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        names = [n for t in node.targets for n in target_names(t)]
        value = self.hinted(names, self.visit(node.value))
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return [_at(self.bind_name(node.targets[0].id, value), node)]
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            return self.assign_to(node.targets[0], value, node)
        temporary = self.temporary("v")
        out: list[ast.stmt] = [_at(_assign(temporary, _call(SUPPORT, "snapshot", value)), node)]
        self.exchanged = names
        for target in node.targets:
            out += self.assign_to(target, _load(temporary), node)
        self.exchanged = []
        return out

    def hinted(self, names: Sequence[str], value: ast.expr) -> ast.expr:
        if not names or not any(isinstance(n, ast.Call) for n in ast.walk(value)):
            return value
        return ast.BoolOp(ast.And(), [_call(FRAME, "named", *[ast.Constant(n) for n in names]), value])

    def bind_name(self, name: str, value: ast.expr) -> ast.stmt:
        return _assign(name, _call(FRAME, "assign", ast.Constant(name), value, *map(ast.Constant, self.exchanged)))

    def assign_to(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return [_at(self.bind_name(target.id, value), node)]
        if isinstance(target, ast.Subscript):
            call = _call(SUPPORT, "store", value, self.visit(target.value), self.visit(target.slice))
            return [_at(ast.Expr(call), node)]
        if isinstance(target, ast.Attribute):
            new = ast.Attribute(self.visit(target.value), target.attr, ast.Store())
            return [_at(ast.Assign([new], value), node)]
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.refuse(node, "this assignment", "assign to names, elements, or tuples of them")
        parts = [(self.temporary("v"), t) for t in target.elts]
        stars: list[ast.expr] = [
            ast.Starred(_store(n), ast.Store()) if isinstance(t, ast.Starred) else _store(n) for n, t in parts
        ]
        out: list[ast.stmt] = [_at(ast.Assign([ast.Tuple(stars, ast.Store())], value), node)]
        for name, part in parts:
            out += self.assign_to(part.value if isinstance(part, ast.Starred) else part, _load(name), node)
        return out

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        op = ast.Constant(_AUGMENTED[type(node.op)])
        value = self.visit(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            old = self.visit(_at(_load(target.id), target))
            return [_at(self.bind_name(target.id, _call(SUPPORT, "augmented", op, old, value)), node)]
        if isinstance(target, ast.Subscript):
            call = _call(SUPPORT, "augmented_store", op, self.visit(target.value), self.visit(target.slice), value)
            return [_at(ast.Expr(call), node)]
        new = ast.Attribute(self.visit(target.value), target.attr, ast.Store())
        return [_at(ast.AugAssign(new, node.op, value), node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if not isinstance(node.target, ast.Name):
            if node.value is None:
                return [_at(ast.Pass(), node)]
            return self.assign_to(node.target, self.visit(node.value), node)
        name = node.target.id
        annotation = self.visit(node.annotation)
        if node.value is not None:
            call = _call(FRAME, "declare", ast.Constant(name), annotation, self.hinted([name], self.visit(node.value)))
        elif name in self.params:
            call = _call(FRAME, "declare_parameter", ast.Constant(name), annotation, _load(name))
        else:
            return [_at(ast.Pass(), node)]
        return [_at(_assign(name, call), node)]

    # ------------------------------------------------------------------ control

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        handle = self.temporary("if")
        start = _assign(handle, _call(FRAME, "if_", self.visit(node.test)))
        then = ast.If(_call(handle, "then"), self.block(node.body), [])
        out: list[ast.stmt] = [_at(start, node), _at(then, node)]
        if node.orelse:
            out.append(_at(ast.If(_call(handle, "otherwise"), self.block(node.orelse), []), node))
        return [*out, _at(ast.Expr(_call(handle, "end")), node)]

    def visit_For(self, node: ast.For) -> ast.stmt:
        names = self.plain_targets(node.target, node)
        source = node.iter
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range":
            function = _call(SUPPORT, "loop_builtin", self.visit(source.func))
            rest = [self.visit(a) for a in source.args]
            iterable: ast.expr = ast.Call(function, rest, [self.visit(k) for k in source.keywords])
        else:
            iterable = self.visit(source)
        constants = ast.Tuple([ast.Constant(n) for n in _counted(names, node.target)], ast.Load())
        loop = _call(FRAME, "loop", _at(iterable, source), constants, ast.Constant(bool(node.orelse)))
        bind = self.bind_targets(names, node)
        return _at(ast.For(node.target, loop, [bind, *self.block(node.body)], self.block(node.orelse)), node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        handle = self.temporary("while")
        start = _assign(handle, _call(FRAME, "while_", ast.Constant(bool(node.orelse))))
        test = ast.BoolOp(ast.And(), [_call(handle, "open"), _call(handle, "test", self.visit(node.test))])
        return [_at(start, node), _at(ast.While(test, self.block(node.body), self.block(node.orelse)), node)]

    def visit_With(self, node: ast.With) -> ast.stmt:
        items, binds = [], []
        for item in node.items:
            names = self.plain_targets(item.optional_vars, node) if item.optional_vars is not None else []
            known = _counted(names, item.optional_vars)
            unpacked = ast.Constant(isinstance(item.optional_vars, (ast.Tuple, ast.List)))
            call = _call(FRAME, "entering", self.visit(item.context_expr), unpacked, *map(ast.Constant, known))
            items.append(ast.withitem(call, item.optional_vars))
            if names:
                binds.append(self.bind_targets(names, node))
        return _at(ast.With(items, [*binds, *self.block(node.body)]), node)

    def plain_targets(self, target: ast.expr, node: ast.stmt) -> list[str]:
        if any(
            not isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context)) for n in ast.walk(target)
        ):
            raise self.refuse(node, "a target that is not a name", "use names, or tuples of names")
        return target_names(target)

    def bind_targets(self, names: Sequence[str], node: ast.stmt) -> ast.stmt:
        constants = ast.Tuple([ast.Constant(n) for n in names], ast.Load())
        values = ast.Tuple([_load(n) for n in names], ast.Load())
        return _at(ast.Expr(_call(FRAME, "bind", constants, values)), node)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return _at(ast.If(_call(FRAME, "break_"), [node], []), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return _at(ast.If(_call(FRAME, "continue_"), [node], []), node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return _at(ast.Return(_call(FRAME, "return_", value)), node)

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        return [_at(ast.Expr(_call(FRAME, "raise_")), node), self.generic_visit(node)]  # type: ignore[list-item]

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = ast.Constant(None) if node.msg is None else self.visit(node.msg)
        return _at(ast.Expr(_call(SUPPORT, "check", self.visit(node.test), _thunk(message))), node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant):
            return node
        return _at(ast.Expr(_call(SUPPORT, "statement", self.visit(node.value))), node)

    # ------------------------------------------------------------------ expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.tracked and node.id not in self.shadow:
            return _at(_call(FRAME, "use", ast.Constant(node.id), node), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        result = self.visit(node.values[-1])
        for value in reversed(node.values[:-1]):
            result = _at(_call(SUPPORT, name, self.visit(value), _thunk(result)), node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return _at(_call(SUPPORT, "not_", self.visit(node.operand)), node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            return self.generic_visit(node)  # type: ignore[return-value]
        ops = ast.Tuple([ast.Constant(_COMPARISONS[type(op)]) for op in node.ops], ast.Load())
        rest = [_thunk(self.visit(c)) for c in node.comparators]
        return _at(_call(SUPPORT, "chain", ops, self.visit(node.left), *rest), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        sides = [_thunk(self.visit(node.body)), _thunk(self.visit(node.orelse))]
        return _at(_call(SUPPORT, "choose", self.visit(node.test), *sides), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        new: ast.Call = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS and node.func.id not in self.shadow:
            new.func = _at(_call(SUPPORT, "builtin", new.func), node.func)
        return new

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        new: ast.FormattedValue = self.generic_visit(node)  # type: ignore[assignment]
        new.value = _at(_call(SUPPORT, "formatted", new.value), node)
        return new

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return self.inside(shadowed(node), node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda  # type: ignore[assignment]

    def inside(self, names: Iterable[str], node: ast.expr) -> ast.expr:
        before, self.shadow = self.shadow, (*self.shadow, *names)
        new = self.generic_visit(node)
        self.shadow = before
        return new  # type: ignore[return-value]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return _RewriteFunction(node, self.file).function(node)


def _at(new: _Node, old: ast.AST) -> _Node:
    """Give a node the location of another, as one line.

    Python reports a long method call at its last line.
    """
    ast.copy_location(new, old)
    if hasattr(new, "end_lineno"):
        located: Any = new
        located.end_lineno, located.end_col_offset = located.lineno, located.col_offset
    return new


def _counted(names: Sequence[str], target: ast.expr | None) -> Sequence[str]:
    """Return the names of a target with a fixed number of values, without a star."""
    starred = target is not None and any(isinstance(n, ast.Starred) for n in ast.walk(target))
    return () if starred else names


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([_store(name)], value)


def _call(owner: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load(owner), name, ast.Load()), list(args), [])


def _thunk(value: ast.expr) -> ast.expr:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(empty, value)
