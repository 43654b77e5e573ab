"""Check the budgets: length of files and functions, and import costs of `tile_core`.

    python tools/check_budgets.py              everything
    python tools/check_budgets.py --no-time    without the import time, which a busy machine may miss

Exceptions stand in tools/budget_exceptions.txt. That list may only shrink: an entry whose file or function is within
its budget, or is gone, or differs in length from the entry, is an error.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from repository import ROOT, files, report

FILE_LINES = 500
FUNCTION_LINES = 60
IMPORT_SECONDS = 0.3
IMPORT_TRIES = 5
CODE = (".py", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".metal")
GENERATED = ("golden", "golden_metal4")  # folders of expected texts
EXCEPTIONS = Path("tools", "budget_exceptions.txt")

# What must not be loaded by `import tile_core, tile_core.language`, and everything below it.
LAZY = ("tvm", "tvm_ffi", "torch", "jax", "mlx", "cupy", "cuda", "pyopencl", "tile_core.cpu", "tile_core.compat.tvm")
BACKENDS = (
    "tile_cuda", "tile_cuda_runtime", "tile_metal", "tile_rocm_stub", "tile_emulator", "tile_tilelang", "tile_jax",
    "tile_torch",
)  # fmt: skip

TIME_PROBE = "import time; t = time.perf_counter(); import tile_core; print(time.perf_counter() - t)"
LOADED_PROBE = "import sys, tile_core, tile_core.language; print(*sorted(sys.modules))"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-time", action="store_true", help="do not measure the import time")
    problems = check_lengths(ROOT) + check_loaded()
    if not parser.parse_args().no_time:
        problems += check_import_time()
    return report("budgets", problems)


def check_lengths(root: Path) -> list[str]:
    """Compare all files and functions under ``root`` with budgets and exceptions."""
    problems = []
    allowed = read_exceptions(root / EXCEPTIONS)
    for name, lines, budget in measure(root):
        exception = allowed.pop(name, None)
        if lines <= budget:
            if exception is not None:
                problems.append(f"{name}: {lines} lines are within the budget of {budget}: remove the exception")
        elif exception is None:
            problems.append(f"{name}: {lines} lines, the budget is {budget}: split it")
        elif exception != lines:
            problems.append(f"{name}: {lines} lines, the exception allows {exception}: it may only shrink")
    return problems + [f"{name}: no such file or function: remove the exception" for name in allowed]


def measure(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, length in lines and budget of each file (``path``) and function (``path:Class.function``)."""
    for path in files(root, *CODE):
        name = path.relative_to(root).as_posix()
        if not {*GENERATED}.isdisjoint(path.relative_to(root).parts):
            continue
        text = path.read_text(encoding="utf-8")
        yield name, len(text.splitlines()), FILE_LINES
        if path.suffix == ".py":
            for function, lines in functions(ast.parse(text, name)):
                yield f"{name}:{function}", lines, FUNCTION_LINES


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield qualified name and length of all functions below a node.

    Nested functions and docstrings are included.
    """
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{child.name}."
            if not isinstance(child, ast.ClassDef):
                yield inner[:-1], (child.end_lineno or child.lineno) - child.lineno + 1
        yield from functions(child, inner)


def read_exceptions(path: Path) -> dict[str, int]:
    """Read lines of the form ``name length``; ``#`` starts a comment."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = (line.partition("#")[0].split() for line in lines)
    return {entry[0]: int(entry[1]) for entry in entries if entry}


def check_loaded() -> list[str]:
    """Look for modules that importing the core must not load."""
    loaded = run_python(LOADED_PROBE).split()
    return [f"import tile_core, tile_core.language loads {name}" for name in loaded if is_lazy(name)]


def is_lazy(module: str) -> bool:
    """Return whether the core's import must not load a module."""
    return any(module == name or module.startswith(name + ".") for name in LAZY + BACKENDS)


def check_import_time() -> list[str]:
    """Measure `import tile_core` in fresh processes; the fastest counts."""
    best = min(float(run_python(TIME_PROBE)) for _ in range(IMPORT_TRIES))
    print(f"import tile_core: {best:.3f} s")
    if best < IMPORT_SECONDS:
        return []
    return [f"import tile_core takes {best:.3f} s, the budget is {IMPORT_SECONDS} s"]


def run_python(code: str) -> str:
    """Run code in a fresh interpreter and return its output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"`{code}` failed:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
