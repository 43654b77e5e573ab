"""``FILE[:NAME]`` on the command line: import the file and make the kernel."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from tile_core.errors import TileError, Where
from tile_core.errors.cli import (
    FileRaised,
    FileSyntax,
    MissingValue,
    NoKernel,
    NoSuchFile,
    NoSuchKernel,
    NotAKernel,
    SeveralKernels,
    UnknownArgument,
)
from tile_core.records import dataclass
from tile_runtime.errors.guess import hint, nearest

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.target import Target

#: Decorators that make a kernel of a function, by the last part of their name.
_KERNEL_MARKS = ("prim_func", "jit")


@dataclass(frozen=True)
class Found:
    """A kernel of a file.

    Attributes
    ----------
    program
        The traced program.
    out_idx
        Positions of the parameters that a call returns, if the file declares them.
    options_for
        From a target to the backend's options, if the file declares them.
    rest
        Values of ``--arg`` that the function did not take: for sizes and scalar parameters.
    """

    program: Program
    out_idx: Any = None
    options_for: Callable[[Target], Any] = lambda target: None
    rest: Mapping[str, Any] | None = None


def find(path_and_name: str, arguments: Mapping[str, object], keep_rest: bool = False) -> Found:
    """Import a file and return its kernel.

    Parameters
    ----------
    path_and_name
        ``FILE`` or ``FILE:NAME``.
    arguments
        Arguments of a function that returns the kernel.
    keep_rest
        Return arguments that the function does not have instead of refusing them.

    Raises
    ------
    CommandError
        S30x, naming the file.
    KernelError
        A refusal of the frontend.
    """
    path, name, value = find_value(path_and_name)
    return _made(path, name, value, arguments, keep_rest)


def find_value(path_and_name: str, kind: type | None = None) -> tuple[Path, str, Any]:
    """Import a file; return its path and the requested name and value.

    Parameters
    ----------
    path_and_name
        ``FILE`` or ``FILE:NAME``.
    kind
        Where no name is given, the only value of this type comes before any kernel.

    Raises
    ------
    CommandError
        S30x, naming the file.
    """
    path, name = _split(path_and_name)
    tree = _parse(path)
    module = _imported(path)
    if not name:
        first = [n for n, v in vars(module).items() if kind is not None and isinstance(v, kind)]
        name = first[0] if len(first) == 1 else _only(path, tree, module)
    value = vars(module).get(name)
    if value is None:
        _no_such(path, tree, module, name)
    return path, name, value


def named_value(path_and_name: str) -> Any:
    """Import a file and return the function or array of ``FILE:NAME``.

    Raises
    ------
    CommandError
        S30x, naming the file.
    """
    path, name = _split(path_and_name)
    _parse(path)
    value = vars(_imported(path)).get(name)
    if value is None:
        expected = f"give {path}:NAME with the name of a function" if not name else f"define {name} in {path}"
        raise NoSuchKernel(file=path, name=name or "?", found="none", hint=expected)
    return value


def _split(path_and_name: str) -> tuple[Path, str]:
    """Split at the last colon if a name follows it (not in drive paths)."""
    head, colon, tail = path_and_name.rpartition(":")
    file, name = (head, tail) if colon and tail.isidentifier() and head else (path_and_name, "")
    path = Path(file)
    try:
        there = path.is_file()
    except OSError as error:  # a name that is too long
        hint = "give the path of a Python file that defines a kernel"
        raise NoSuchFile(file=file, reason=error.strerror or str(error), hint=hint) from error
    if not there:
        reason = "it is a folder" if path.is_dir() else "there is no such file"
        folder = path.parent if path.parent.is_dir() else Path()
        near = nearest(path.name, [p.name for p in folder.glob("*.py")])
        what = f"did you mean {folder / near[0]}?" if near else "give the path of a Python file that defines a kernel"
        raise NoSuchFile(file=file, reason=reason, hint=what)
    return path, name


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise FileSyntax(file=path, reason=error.msg, where=Where(str(path), error.lineno or 1)) from error
    except (OSError, ValueError) as error:
        hint = "give the path of a Python file that defines a kernel"
        raise NoSuchFile(file=path, reason=str(error), hint=hint) from error


def _imported(path: Path) -> ModuleType:
    """Import a file under a name of its own; ``if __name__ == "__main__"`` stays out."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"_tile_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NoSuchFile(file=path, reason="its name does not end in .py", hint="rename it, for example to kernel.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    _guarded(path, "imported", lambda: loader.exec_module(module))
    return module


def _only(path: Path, tree: ast.Module, module: ModuleType) -> str:
    names = _kernels(tree, module)
    if not names:
        raise NoKernel(file=path)
    if len(names) > 1:
        raise SeveralKernels(file=path, found=", ".join(names), first=names[0])
    return names[0]


def _no_such(path: Path, tree: ast.Module, module: ModuleType, name: str) -> None:
    names = _kernels(tree, module)
    other = f"choose {path}:{names[0]}" if names else "decorate a function with @T.prim_func or @tile.jit"
    what = hint(name, names, other, f"{path}:{{}}")
    raise NoSuchKernel(file=path, name=name, found=", ".join(names) or "none", hint=what)


def kernel_functions(tree: ast.Module) -> list[str]:
    """Return the public functions that are or define kernels, by the text alone."""
    functions = (node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    names = (node.name for node in functions if any(_is_kernel(inner) for inner in ast.walk(node)))
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def _kernels(tree: ast.Module, module: ModuleType) -> list[str]:
    """Names of kernels, or of functions that make one, in the order of the file.

    A function counts by its text: only one that defines a kernel inside is called, never any other code of the file.
    """
    functions = kernel_functions(tree)
    names: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in functions:
                names[node.name] = None
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and _program_of(vars(module).get(target.id)) is not None:
                    names[target.id] = None
    return [name for name in names if not name.startswith("_")]


def _is_kernel(node: ast.AST) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    for decorator in decorators:
        mark = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", "")) in _KERNEL_MARKS:
            return True
    return False


def _made(path: Path, name: str, value: Any, arguments: Mapping[str, object], keep_rest: bool) -> Found:
    if (program := _program_of(value)) is not None:
        return _found(value, program, _rest(name, (), arguments, keep_rest))
    if not callable(value):
        raise NotAKernel(name=name, file=path, found=f"is {type(value).__name__}", expected="a kernel")
    function = getattr(value, "function", value)  # of what @tile.jit made
    if getattr(value, "eager", False):
        found = "is an eager kernel, whose shapes come from its arguments"
        raise NotAKernel(
            name=name, file=path, found=found, expected="shapes that --arg can give", where=_where(function)
        )
    taken = _bind(name, function, arguments)
    rest = _rest(name, tuple(inspect.signature(function).parameters), arguments, keep_rest)
    make = getattr(value, "program", value)  # what @tile.jit makes is traced without being compiled
    made = _guarded(path, f"called ({name})", lambda: make(**taken))
    program = _program_of(made)
    if program is None:
        found = f"returned {type(made).__name__}"
        raise NotAKernel(name=name, file=path, found=found, expected="a kernel", where=_where(function))
    return _found(value, program, rest)


def _found(value: Any, program: Program, rest: Mapping[str, object]) -> Found:
    """Keep the outputs and options of a compiled kernel or a decorator."""
    signature = getattr(value, "signature", None)
    out_idx = signature.out_idx if signature is not None else getattr(value, "out_idx", None)
    options_for = getattr(value, "options_for", None) or (lambda target: None)
    return Found(program, out_idx if out_idx is not None else program.outputs or None, options_for, rest)


def _bind(name: str, function: Callable[..., object], arguments: Mapping[str, object]) -> dict[str, object]:
    taken, missing = {}, []
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if key in arguments:
            taken[key] = arguments[key]
        elif parameter.default is parameter.empty:
            missing.append(key)
    if missing:
        usage = " ".join(f"--arg {key}=VALUE" for key in missing)
        raise MissingValue(kernel=name, name=", ".join(missing), what="", usage=usage, where=_where(function))
    return taken


def _rest(name: str, known: tuple[str, ...], arguments: Mapping[str, object], keep: bool) -> dict[str, object]:
    rest = {key: value for key, value in arguments.items() if key not in known}
    if rest and not keep:
        refuse_argument(name, next(iter(rest)), known)
    return rest


def refuse_argument(kernel: str, found: str, known: tuple[str, ...], option: str = "--arg") -> NoReturn:
    """Raise ``UnknownArgument`` with the nearest of the known names."""
    what = hint(found, known, "leave it out")
    raise UnknownArgument(option=option, name=found, kernel=kernel, known=", ".join(known) or "none", hint=what)


def _program_of(value: Any) -> Program | None:
    """The program of a program, or of a compiled kernel."""
    from tile_core.ir.program import Program

    if isinstance(value, Program):
        return value
    inner = getattr(value, "program", None)
    return inner if isinstance(inner, Program) else None


def _where(function: Callable[..., object]) -> Where | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Where(code.co_filename, code.co_firstlineno)


def _guarded(path: Path, action: str, run: Callable[[], object]) -> Any:
    """Run code of the user's file; errors become ``FileRaised`` at the file's line."""
    try:
        return run()
    except TileError:
        raise
    except (Exception, SystemExit) as error:
        line = None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == str(path):
                line = trace.tb_lineno
            trace = trace.tb_next
        where = None if line is None else Where(str(path), line)
        detail = str(error) or "no message"
        raise FileRaised(file=path, kind=type(error).__name__, action=action, detail=detail, where=where) from error
