"""The stub files as texts: ``T``, its element types, ``tile_core``, and the names that backends add."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from repository import ROOT

from stubs.signatures import TYPES, documented, stub_of
from tile_runtime.dtype_table import ElementType

#: Enumerations whose members are made at run time, which checkers cannot see -> their stubs.
_MADE = {"PassConfigKey": "tile_core.compat._pass_keys:PassConfigKey"}

HEAD = '''\
# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""{}"""

'''

#: Names of imports that are written only where a file mentions them.
_IMPORTS = {
    "collections.abc": ("Callable", "Iterable", "Mapping", "Sequence"),
    "contextlib": ("AbstractContextManager",),
    "typing": ("Any", "TypeVar", "overload"),
    "tile_core.language._dtypes": ("PrimFunc", "ptr"),
    "tile_core.language._types": TYPES,
    "tile_core.layout.base": ("LayoutMap",),
    "tile_core.ops.gemm": ("GemmWarpPolicy",),
}


def stub_files() -> dict[Path, str]:
    """Return all stub files that are generated, by their paths."""
    core = ROOT / "packages/tile-core/src/tile_core"
    added = _names_of_backends()
    keys = import_module("tile_core.compat.dialects").PassConfigKey
    stars = "".join(f"from {package}._names import *\n" for package in added)
    doc = "Names that backends add to ``T``, where they are installed."
    found = {
        core / "__init__.pyi": _package(import_module("tile_core")),
        core / "compat/_added_names.pyi": HEAD.format(doc) + stars,
        core / "compat/_pass_keys.pyi": HEAD.format("Keys of other dialects.") + _members("PassConfigKey", keys),
        core / "language/__init__.pyi": _language(),
        core / "language/_dtypes.pyi": _dtypes(),
        core / "language/_names.pyi": _core_names(),
    }
    for package, names in added.items():
        path = ROOT / f"packages/{package.replace('_', '-')}/src/{package}/_names.pyi"
        found[path] = _file(f"The names that ``{package}`` adds to ``T``.", _stubs(names))
    tilelang = ROOT / "packages/tile-tilelang/src/tile_tilelang"
    found[tilelang / "__init__.pyi"] = _package(import_module("tile_tilelang"))
    found[tilelang / "language.pyi"], found[tilelang / "_names.pyi"] = _spellings()
    return found


def _names_of_backends() -> dict[str, dict[str, Any]]:
    """Return package -> its names of ``T`` and their objects."""
    from tile_core.plugins.manager import installed

    plugins = installed()
    found: dict[str, dict[str, Any]] = {}
    for name in plugins.language_names():
        value = plugins.language_name(name)
        found.setdefault(value.__module__.partition(".")[0], {})[name] = value
    return dict(sorted(found.items()))


def _core_names() -> str:
    from tile_core.vocabulary import NAMES, word

    names = {name: word(name) for name, (module, _) in NAMES.items() if module != "dtypes" and name not in _DECLARED}
    first = '_Function = TypeVar("_Function", bound=Callable[..., object])\n'
    return _file("The names of ``T`` that are no element types or declarations.", [first, *_stubs(names)])


#: Names that `_types.pyi` and `_dtypes.pyi` declare.
_DECLARED = frozenset({"Buffer", "PrimFunc", "Ref", "StridedTensor", "Tensor", "ptr"})


def _stubs(names: Mapping[str, Any]) -> list[str]:
    """Return declarations; further names of a function are aliases of the first one."""
    from tile_core.vocabulary import NAMES

    parts: list[str] = []
    first: dict[object, str] = {}
    for name, value in names.items():
        own = NAMES.get(name, ("", name))[1] if inspect.isroutine(value) else name
        if own != name and own in names:
            parts.append(f"{name} = {own}\n")
            continue
        first[value] = name
        parts.append(stub_of(name, value))
    return parts


def _language() -> str:
    homes = ("compat._added_names", "language._dtypes", "language._names")
    lines = [f"from tile_core.{home} import *" for home in homes]
    module = import_module("tile_core.language")
    return HEAD.format((inspect.getdoc(module) or "").partition("\n")[0]) + "\n".join(lines) + "\n" + _all(module)


def _dtypes() -> str:
    """Return the element types as classes, which annotations and calls accept, and the declarations of parameters."""
    from tile_core.dtypes import DType, dtype
    from tile_core.values import types
    from tile_runtime.dtype_table import TABLE

    parts = ["PrimFunc: TypeAlias = Program\n", _element_class(DType)]
    for row in TABLE:
        parts.append(documented(f"class {row.name}(_Element):", _meaning(row)))
        parts += [f"{word} = {row.name}\n" for word in row.words]
    parts.append(documented("def dtype(name: DTypeLike) -> type[_Element]:", inspect.getdoc(dtype)))
    call = inspect.getdoc(types._TensorFactory.__call__)
    parts.append(documented("class Tensor(Buffer):", call))
    strided = "        self, shape: Shape, strides: Shape | None, dtype: DTypeLike = 'float32'\n    "
    parts.append(
        documented("class StridedTensor(Buffer):", inspect.getdoc(types.StridedTensor))
        + f"    def __init__(\n{strided}) -> None: ...\n"
    )
    parts.append(
        documented("class ptr:", inspect.getdoc(types.ptr))
        + "    def __init__(self, dtype: DTypeLike = 'uint8', storage_scope: str = 'global') -> None: ...\n"
    )
    parts.append("Ref: TypeAlias = Any\n" + f'"""{inspect.getdoc(type(types.Ref))}"""\n')
    imports = (
        "from builtins import bool as _bool, float as _float, int as _int\n"
        "from typing import Any, TypeAlias\n\n"
        "from typing_extensions import Self\n"
        "from tile_core.ir.program import Program\n"
        "from tile_core.language._types import Buffer as Buffer, DTypeLike, Scalar, Shape, Value\n"
    )
    return HEAD.format("The element types of ``T``, and declarations of parameters.") + _joined([imports, *parts])


def _meaning(row: ElementType) -> str:
    """Return one sentence on an element type."""
    kinds = {"int": "Signed integer", "uint": "Unsigned integer", "float": "Floating point", "bool": "Truth value"}
    return f"{kinds[row.kind]} of {row.bits} bits: an element type, and the conversion to it in a kernel."


def _element_class(kind: type) -> str:
    """Return the class of element types: its attributes are those of the types, its calls convert."""
    plain = {"bool": "_bool", "int": "_int", "float": "_float", "str": "str", "Any": "Any"}
    facts = [f"    {n}: {plain[t]}\n" for n, t in kind.__annotations__.items() if t in plain]
    for name, value in vars(kind).items():
        if isinstance(value, property) and value.fget is not None:
            note = plain[value.fget.__annotations__["return"]]
            facts.append("    @property\n" + documented(f"def {name}(cls) -> {note}:", inspect.getdoc(value), "    "))
        elif inspect.isfunction(value) and not name.startswith("_"):
            note = plain[value.__annotations__["return"]]
            facts.append(documented(f"def {name}(cls) -> {note}:", inspect.getdoc(value), "    "))
    equal = ["    def __eq__(cls, other: object) -> _bool: ...\n", "    def __hash__(cls) -> _int: ...\n"]
    base = documented("class _Element(Value, metaclass=_ElementType):", "A scalar of an element type.")
    call = "    def __new__(cls, value: Scalar) -> Self: ...\n"
    return "class _ElementType(type):\n" + "".join([*facts, *equal]) + "\n" + base + call


def _package(module: Any) -> str:
    """Return a package whose names are imported on first use."""
    lines = ["__version__: str"]
    for name, reference in module._LAZY.items():
        reference = _MADE.get(name, reference)
        home, _, attribute = reference.partition(":")
        home = home if home.startswith("tile_") else f"{module.__name__}.{home}"
        if attribute:
            lines.append(f"from {home} import {attribute} as {name}")
        else:
            parent, _, last = home.rpartition(".")
            lines.append(f"from {parent} import {last} as {name}")
    doc = (inspect.getdoc(module) or "").partition("\n")[0]
    return HEAD.format(doc) + "\n".join(lines) + "\n" + _all(module)


def _all(module: Any) -> str:
    return f"\n__all__ = {module.__all__!r}\n"


def _members(name: str, kind: type[enum.Enum]) -> str:
    """Return an enumeration whose members are made at run time."""
    bases = ", ".join([*(b.__name__ for b in kind.__bases__ if b is not enum.Enum), "Enum"])
    members = [f"    {member.name} = {member.value!r}\n" for member in kind]
    return f"from enum import Enum\n\n{documented(f'class {name}({bases}):', inspect.getdoc(kind))}{''.join(members)}"


def _spellings() -> tuple[str, str]:
    """Return TileLang's spellings on top of the language, and functions that take more keywords or have no effect."""
    from tile_tilelang import language, spellings, vectors
    from tile_tilelang.words import HINTS, KEYWORDS, ONLY_HINTS

    core = import_module("tile_core.language")
    spelt = {*spellings.__all__, *vectors.__all__}
    own = {*spelt, *ONLY_HINTS}
    more = {name: tuple(words) for name, words in KEYWORDS.items() if name not in own}
    hints = sorted({*HINTS, *ONLY_HINTS})
    kept = [n for n in core.__all__ if n not in {*own, *more, *hints}]
    lines = [f"from tile_core.language import {n} as {n}\n" for n in kept]
    lines += [f"from tile_core.language import {home} as {n}\n" for n, home in spellings.RENAMED.items()]
    for home in (spellings, vectors):
        lines += [f"from {home.__name__} import {n} as {n}\n" for n in home.__all__]
    parts = [stub_of(name, _with_keywords(getattr(core, name), words)) for name, words in more.items()]
    parts += [
        documented(f"def {n}(*args: Any, **keywords: Any) -> None:", HINTS.get(n)) for n in hints if n not in spelt
    ]
    lines += [f"from tile_tilelang._names import {n} as {n}\n" for n in [*more, *(n for n in hints if n not in spelt)]]
    text = HEAD.format((inspect.getdoc(language) or "").partition("\n")[0]) + "".join(lines) + _all(language)
    return text, _file("Functions that accept keywords of TileLang, and hints.", parts)


def _with_keywords(function: Any, words: tuple[str, ...]) -> Any:
    """Return a function like another one, with keywords that have no effect."""

    def found() -> None: ...

    signature = inspect.signature(function)
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [
        inspect.Parameter(n, kind, default=None, annotation="object") for n in words if n not in signature.parameters
    ]
    kept = list(signature.parameters.values())
    rest = [kept.pop()] if kept and kept[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    found.__signature__ = signature.replace(parameters=[*kept, *more, *rest])  # type: ignore[attr-defined]
    found.__name__, found.__doc__ = function.__name__, inspect.getdoc(function)
    return found


def _file(doc: str, parts: Iterable[str]) -> str:
    text = _joined(parts)
    lines = []
    for module, names in _IMPORTS.items():
        used = [
            n for n in names if re.search(rf"\b{n}\b", _code(text)) and not re.search(rf"^from .* as {n}$", text, re.M)
        ]
        if used:
            lines.append(f"from {module} import {', '.join(used)}\n")
    return HEAD.format(doc) + "".join(lines) + "\n" + text


def _code(text: str) -> str:
    """Return stub text without its docstrings."""
    return re.sub(r'"""(?:[^"\\]|\\.|"(?!""))*"""', "", text)


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(parts)
