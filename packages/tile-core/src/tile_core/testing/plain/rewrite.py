"""Rewrite kernel constructs that Python lacks: the launch, variables, and thread synchronization.

``with T.Kernel(...) as b:`` becomes a function of the block and a call that runs it for every block. A name that is
bound to ``T.alloc_var`` is a box: ``x = e`` stores, and reading it loads. In a kernel that names its threads the body
is a generator, and what the threads do together is a ``yield``.
"""

from __future__ import annotations

import ast
from typing import Any

#: Collective operations of a warp.
WARP = frozenset(
    "shfl_sync shfl_xor shfl_up shfl_down ballot any_sync all_sync warp_reduce_sum warp_reduce_max warp_reduce_min "
    "warp_reduce_bitand warp_reduce_bitor sync_warp activemask match_any_sync match_all_sync".split()
)
#: Collective operations of a block.
BLOCK = frozenset(
    "sync_threads syncthreads_count syncthreads_or syncthreads_and "
    "copy fill clear transpose gemm gemm_sp gemm_scaled reduce_sum reduce_max reduce_min reduce_abssum reduce_absmax "
    "reduce_bitand reduce_bitor reduce_bitxor reduce_prod reduce_any reduce_all reduce "
    "sort topk reduce_with scan_with argmax argmin cumsum cumprod cummax reducer_init finalize_reducer gather "
    "scatter".split()
)
_NAMING = ("get_thread_binding", "get_thread_bindings", "get_lane_idx", "get_warp_idx")


def rewritten(text: str) -> ast.Module:
    """Return a kernel's text as a Python module over ``T``, ``tile`` and ``launch``."""
    tree = ast.parse(text)
    tree.body = [s for s in tree.body if not isinstance(s, (ast.Import, ast.ImportFrom))]
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    refs = {f.name: {n for n, a in enumerate(f.args.args) if _is_ref(a)} for f in functions}
    threaded = any(_called(node) in _NAMING for node in ast.walk(tree))
    for f in functions:
        _Body(_variables(f), refs, threaded and f.name == "main").function(f)
    return ast.fix_missing_locations(tree)


class _Body(ast.NodeTransformer):
    """The rewriting of one function."""

    def __init__(self, variables: set[str], refs: dict[str, set[int]], threaded: bool) -> None:
        self.variables, self.refs, self.threaded = variables, refs, threaded

    def function(self, f: ast.FunctionDef) -> None:
        """Rewrite a function in place."""
        f.decorator_list = []
        for a in f.args.args:
            a.annotation = None
        f.body = self._block(f.body)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            made: Any = self.visit(s)
            out += made if isinstance(made, list) else [made]
        return out

    def visit_With(self, node: ast.With) -> Any:
        """Make the launch a function of the block, or several, between barriers of the grid.

        Who does the work of ``T.ws`` changes nothing, and the level of ``T.numerics`` nothing that is as it is written.
        """
        item = node.items[0]
        if _called(item.context_expr) in ("ws", "numerics"):
            return self._block(node.body)
        target = item.optional_vars or ast.Name("_", ast.Store())
        at = "__at" if isinstance(target, ast.Tuple) else "__at[0] if len(__at) == 1 else __at"
        start = ast.Assign([target], ast.parse(at, mode="eval").body)
        arguments = ast.arguments([], [ast.arg("__at")], None, [], [], None, [])
        made: list[ast.stmt] = []
        for part in _between_barriers(node.body):
            body: list[ast.stmt] = [start, *self._block(part)]
            if self.threaded:
                body.append(ast.Expr(ast.Yield(_request("end"))))
            made.append(ast.FunctionDef("__block", arguments, body, [], None))
            given = [self.visit(item.context_expr), ast.Name("__block", ast.Load())]
            made.append(ast.Expr(ast.Call(ast.Name("launch", ast.Load()), given, [])))
        return made

    def visit_For(self, node: ast.For) -> Any:
        """Run the iterations of a parallel loop in the first thread, between barriers."""
        parallel = self.threaded and _called(node.iter) == "Parallel"
        node = self.generic_visit(node)  # type: ignore[assignment]
        if not parallel:
            return node
        node.iter = ast.Yield(ast.Tuple([ast.Constant("parallel"), node.iter], ast.Load()))
        return [node, ast.Expr(ast.Yield(_request("sync_threads")))]

    def visit_Call(self, node: ast.Call) -> Any:
        """Yield collective operations; pass variables themselves where a macro takes a reference."""
        name = _called(node)
        refs = self.refs.get(node.func.id, set()) if isinstance(node.func, ast.Name) else set()
        if name == "Ref":
            return node
        node.args = [a if n in refs else self.visit(a) for n, a in enumerate(node.args)]
        for k in node.keywords:
            k.value = self.visit(k.value)
        if not self.threaded or name not in WARP | BLOCK:
            return node
        words = ast.Dict([ast.Constant(k.arg) for k in node.keywords], [k.value for k in node.keywords])
        return ast.Yield(ast.Tuple([ast.Constant(name), ast.Tuple(node.args, ast.Load()), words], ast.Load()))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Make a bool of what Python returns, one of the operands."""
        return _call("truth", self.generic_visit(node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Let the negation of a number be a bool of the language."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        return _call("negation", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Name(self, node: ast.Name) -> Any:
        """Load a variable."""
        if isinstance(node.ctx, ast.Load) and node.id in self.variables:
            return ast.Call(ast.Attribute(node, "get", ast.Load()), [], [])
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Store to variables."""
        if _called(node.value) == "alloc_var":
            node.value = self.visit(node.value)
            return node
        value = self.visit(node.value)
        targets = node.targets[0]
        names = targets.elts if isinstance(targets, ast.Tuple) else [targets]
        if not any(isinstance(n, ast.Name) and n.id in self.variables for n in names):
            node.value = value
            node.targets = [self.visit(t) for t in node.targets]
            return node
        if len(names) == 1:
            return self._store(names[0], value)
        made: list[ast.stmt] = [ast.Assign([ast.Name("__all", ast.Store())], value)]
        for n, target in enumerate(names):
            part = ast.Subscript(ast.Name("__all", ast.Load()), ast.Constant(n), ast.Load())
            made.append(self._store(target, part))
        return made

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Store to a variable."""
        if isinstance(node.target, ast.Name) and node.target.id in self.variables:
            old = self.visit(ast.Name(node.target.id, ast.Load()))
            return self._store(node.target, ast.BinOp(old, node.op, self.visit(node.value)))
        return self.generic_visit(node)

    def _store(self, target: ast.expr, value: Any) -> ast.stmt:
        if isinstance(target, ast.Name) and target.id in self.variables:
            setter = ast.Attribute(ast.Name(target.id, ast.Load()), "set", ast.Load())
            return ast.Expr(ast.Call(setter, [value], []))
        return ast.Assign([target], value)


def _call(name: str, value: Any) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("T", ast.Load()), name, ast.Load()), [value], [])


def _between_barriers(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Return the statements of a launch, cut at barriers of the whole grid."""
    parts: list[list[ast.stmt]] = [[]]
    for s in body:
        if isinstance(s, ast.Expr) and _called(s.value) == "sync_grid":
            parts.append([])
        else:
            parts[-1].append(s)
    return parts


def _request(name: str) -> ast.Tuple:
    empty = ast.Tuple([], ast.Load())
    return ast.Tuple([ast.Constant(name), empty, empty], ast.Load())


def _variables(f: ast.FunctionDef) -> set[str]:
    found = {a.arg for a in f.args.args if _is_ref(a)}
    for node in ast.walk(f):
        if isinstance(node, ast.Assign) and _called(node.value) == "alloc_var":
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


def _is_ref(a: ast.arg) -> bool:
    return a.annotation is not None and "Ref" in ast.unparse(a.annotation)


def _called(node: Any) -> str:
    """Return ``f`` of a call ``T.f(...)``, else nothing."""
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    return node.func.attr if call and node.func.value.id == "T" else ""
