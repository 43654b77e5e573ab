"""The pages of ``examples/``: each complete program, and a list by subject."""

from __future__ import annotations

import ast
import re
from functools import cache

from repository import ROOT

FOLDER = ROOT / "examples"

#: The programs by topic; a test finds those that stand nowhere.
TOPICS = {
    "Products": ("gemm", "fused_epilogue", "mixed_gemm", "split_k", "stream_k", "grouped_gemm", "vector_matrix"),
    "Sparsity and small types": (
        "sparse_gemm",
        "sparse_tutorial",
        "fp8_gemm",
        "dequant_gemm",
        "stochastic_quantization",
    ),
    "Attention and rows by index": (
        "flash_attention",
        "attention_backward",
        "decode",
        "sparse_attention",
        "kv_cache",
        "moe",
    ),
    "Rows and elements": ("softmax", "rms_norm", "cumsum", "top_k", "dropout", "elementwise"),
}
#: Files that are no examples of kernels.
OTHERS = ("checks",)


def pages() -> dict[str, str]:
    """Return the pages as Markdown, by their paths below ``docs``."""
    return {"examples/index.md": _index()} | {f"examples/{name}.md": _page(name) for name in all_names()}


def all_names() -> list[str]:
    """Return the names of all programs, in the order of the list."""
    return [name for names in TOPICS.values() for name in names]


def title_of(name: str) -> str:
    """Return the title of a page: what the program is called."""
    return _docstring(name).partition(":")[0].rstrip(".")


def standalone(name: str) -> str:
    """Return a program with the functions of ``checks.py`` that it uses, so that it runs when it is copied."""
    source, shared = _source(name), _source("checks")
    functions = {f.name: f for f in ast.parse(shared).body if isinstance(f, ast.FunctionDef)}
    line = re.search(r"^from checks import (.+)\n", source, re.MULTILINE)
    if line is None:
        return source
    wanted = set(line[1].split(", "))
    while more := {n for f in wanted for n in _names(functions[f]) & functions.keys()} - wanted:
        wanted |= more
    used = set().union(*(_names(functions[f]) for f in wanted))
    body = "\n\n\n".join(ast.get_source_segment(shared, f) or "" for n, f in functions.items() if n in wanted)
    words = re.findall(r"^.*\bimport (.+)$", source, re.MULTILINE)
    missing = used - {word for one in words for word in re.split(r"\W+", one)}
    imports = re.findall(r"^(?:import|from) (?!__future__).+\n", shared, re.MULTILINE)
    first = "import annotations\n\n"
    added = "".join(one for one in imports if one.split()[-1] in missing)
    source = source.replace(line[0], "").replace(first, first + added, 1)
    before, main, after = source.partition('if __name__ == "__main__":')
    return f"{before}{body}\n\n\n{main}{after}"


def _names(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function uses."""
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def _docstring(name: str) -> str:
    return " ".join((ast.get_docstring(ast.parse(_source(name))) or "").split("\n\n")[0].split())


def _rest(name: str) -> str:
    """Return a docstring's text after its title."""
    return _docstring(name).partition(":")[2].strip().rstrip(".")


def _index() -> str:
    parts = [_HEAD]
    for topic, names in TOPICS.items():
        rows = "\n".join(f"| [{title_of(name)}]({name}.md) | {_rest(name)} |" for name in names)
        parts.append(f"\n## {topic}\n\n| program | what it is |\n| --- | --- |\n{rows}\n")
    return "\n".join(parts)


def _page(name: str) -> str:
    return _PAGE.format(title=title_of(name), meaning=_docstring(name), name=name, code=standalone(name).strip())


_HEAD = """\
# Examples

Complete programs. Each runs on every target, compares its results with NumPy at awkward sizes, and is run by CI. They
are the files of `examples/`:

```bash
python examples/gemm.py                 # on the best device of this machine
python examples/gemm.py --target cpu
```

`checks.py` beside them has what they share: the command line and the comparison. The pages show each program together
with the functions that it takes from there, so that it runs when it is copied into a file.
"""

_PAGE = """\
# {title}

{meaning}

```bash
python examples/{name}.py
```

```py title="examples/{name}.py"
{code}
```
"""
