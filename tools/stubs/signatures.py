"""One name of ``T`` as stub text: signature, overloads, docstring."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from typing import Any

#: Names of `tile_core/language/_types.pyi` that annotations of functions mention.
TYPES = ("BlockIndex", "Buffer", "DTypeLike", "Index", "Number", "Region", "Scalar", "Shape", "Tile", "Value")

#: Other names of annotations -> their stub text.
_OTHERS = {
    "Any": "Any",
    "Barrier": "Any",  # of a backend
    "Callable": "Callable",
    "GemmWarpPolicy": "GemmWarpPolicy",
    "LayoutMap": "LayoutMap",
    "LoopNest": "Iterable[Value]",
    "Mapping": "Mapping",
    "None": "None",
    "Pointer": "ptr",
    "Sequence": "Sequence",
    "Chosen": "Any",
    **{name: name for name in ("bool", "float", "int", "object", "range", "str", "tuple")},
}

#: Functions whose results depend on more than types -> the result.
_RESULTS = {
    "alloc_var": "Any",  # assignments change it, to values of any type
    "const": "Any",
    "dynamic": "Any",  # a symbol, or several
    "any_of": "Any",
    "all_of": "Any",
}

#: Launches and domains: what one axis gives, and what the function returns around it.
_AXES = {
    "Kernel": "AbstractContextManager[{}]",
    "ClusterKernel": "AbstractContextManager[{}]",
    "Parallel": "Iterable[{}]",
    "grid": "Iterable[{}]",
}

#: Classes that a kernel only calls, in `with` or `for` -> what their calls return.
_CALLED = {
    "numerics": "AbstractContextManager[None]",
    "ws": "AbstractContextManager[None]",
    "Persistent": "Iterable[Any]",
}


class UnknownTypeInStub(Exception):
    """An annotation has a name that stubs do not know."""


def stub_of(name: str, value: Any) -> str:
    """Return the declarations of a function or class of ``T``.

    Raises
    ------
    UnknownTypeInStub
        If an annotation has a name that is neither in ``TYPES`` nor translated here.
    """
    if name in ("prim_func", "macro"):
        return _decorator(name, value)
    if name in _AXES:
        return _by_axes(name, value, _AXES[name])
    if name in _CALLED or not inspect.isclass(value):
        result = _CALLED.get(name) or _RESULTS.get(getattr(value, "__name__", name))
        return _function(name, value, result)
    if issubclass(value, enum.Enum) or value.__module__.startswith("tile_core.layout"):
        return f"from {value.__module__} import {value.__name__} as {name}\n"
    return _class(name, value)


def documented(head: str, text: str | None, indent: str = "") -> str:
    """Return a definition with its docstring as the body."""
    if not text:
        return f"{indent}{head} ...\n"
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text += " "
    lines = text.splitlines()
    quoted = f'"""{text}"""' if len(lines) == 1 else f'"""{text}\n"""'
    return f"{indent}{head}\n{textwrap.indent(quoted, indent + '    ')}\n"


def _function(name: str, value: Any, result: str | None = None) -> str:
    signature = inspect.signature(value)
    result = result or _result(signature.return_annotation)
    return documented(f"def {name}({', '.join(_parameters(signature))}) -> {result}:", inspect.getdoc(value))


def _result(note: Any) -> str:
    """Return the result of a function: ``Any`` where types do not decide it."""
    if note in ("Number", "Chosen | Value", "Value | None", "bool | Value"):  # also of tiles, element by element
        return "Any"
    return "int" if note == "Index" else _annotation(note)


def _decorator(name: str, value: Any) -> str:
    """Return the overloads of a decorator with and without options."""
    doc = inspect.getdoc(value)
    if name == "prim_func":
        fn, made = "Callable[..., object]", "PrimFunc"
    else:
        fn = made = "_Function"
    heads = [
        f"def {name}(fn: {fn}, **options: object) -> {made}:",
        f"def {name}(fn: None = None, **options: object) -> Callable[[{fn}], {made}]:",
    ]
    return _overloads(heads, doc)


def _by_axes(name: str, value: Any, around: str) -> str:
    """Return overloads of a function with extents: what one axis and several give."""
    signature = inspect.signature(value)
    options = _parameters(signature)
    star = next(n for n, p in enumerate(options) if p.startswith("*"))
    options = options[star + 1 :]
    keywords = ["*", *options] if options and not options[0].startswith("*") else options
    heads = []
    for axes in ("x", "xy", "xyz"):
        alone = "BlockIndex" if around.startswith("Abstract") else "Value"
        made = alone if len(axes) == 1 else f"tuple[{', '.join(['Value'] * len(axes))}]"
        given = [f"{axis}: Index" for axis in axes] + ["/"]
        heads.append(f"def {name}({', '.join([*given, *keywords])}) -> {around.format(made)}:")
    rest = ", ".join(["*extents: Index | Sequence[Index]", *options])
    heads.append(f"def {name}({rest}) -> {around.format('Any')}:")
    return _overloads(heads, inspect.getdoc(value))


def _class(name: str, value: type) -> str:
    """Return a class with its public methods and those that Python calls."""
    parts = [documented(f"class {name}:", inspect.getdoc(value)).rstrip("\n")]
    for method, what in vars(value).items():
        if method.startswith("_") and method != "__init__":
            continue
        if isinstance(what, property):
            assert what.fget is not None
            returns = _annotation(inspect.signature(what.fget).return_annotation)
            parts.append(
                "    @property\n"
                + documented(f"def {method}(self) -> {returns}:", inspect.getdoc(what), "    ").rstrip()
            )
        elif inspect.isfunction(what):
            signature = inspect.signature(what)
            given = ", ".join(["self", *_parameters(signature)[1:]])
            returns = _annotation(signature.return_annotation)
            doc = None if method == "__init__" else inspect.getdoc(what)
            parts.append(documented(f"def {method}({given}) -> {returns}:", doc, "    ").rstrip())
    return "\n\n".join(parts) + "\n"


def _overloads(heads: list[str], doc: str | None) -> str:
    """Return a function, or overloads; the first one has the docstring, which editors show for all of them."""
    mark = "@overload\n" if len(heads) > 1 else ""
    return "".join(mark + documented(head, None if n else doc) for n, head in enumerate(heads))


def _parameters(signature: inspect.Signature) -> list[str]:
    """Return the parameters as text, with names of types replaced."""
    found: list[str] = []
    star = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not star:
            found.append("*")
            star = True
        mark = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        mark = "**" if parameter.kind is parameter.VAR_KEYWORD else mark
        note = "Any" if parameter.annotation is parameter.empty else _annotation(parameter.annotation)
        text = f"{mark}{parameter.name}: {note}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        found.append(text)
    return found


def _default(value: object) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


def _annotation(text: Any) -> str:
    """Return an annotation of the source in the words of the stubs."""
    if not isinstance(text, str):
        text = "None" if text is None else "Any" if text is inspect.Parameter.empty else text.__name__
    tree = ast.parse(text, mode="eval")
    known = {**{name: name for name in TYPES}, **_OTHERS}

    class Translated(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in known:
                raise UnknownTypeInStub(f"{text}: {node.id} has no translation in tools/stubs/signatures.py")
            return ast.parse(known[node.id], mode="eval").body

        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    return ast.unparse(Translated().visit(tree))
