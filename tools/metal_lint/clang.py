"""A second check of address spaces by clang's OpenCL C++ front end, if installed.

It has the spaces of MSL under other names, and refuses casts, arguments and initial values that change them. A missing
space it takes for the generic one, which MSL lacks: `lint` finds those.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tile_metal.emulation.tokens import outline, tokenize
from tile_metal.lint.findings import Finding

PRELUDE = Path(__file__).parent / "metal_prelude.h"
OLDEST, NEWEST = 15, 24
_FLAGS = ("-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-target", "spir64", "-fsyntax-only", "-w")


def clang() -> str | None:
    """Return the clang that `clcpp_findings` runs, ``None`` where there is none that is new enough."""
    names: Iterable[str] = ("clang", *(f"clang-{n}" for n in range(NEWEST, OLDEST - 1, -1)))
    for name in names:
        found = shutil.which(name)
        if found is None:
            continue
        version = (
            subprocess.run([found, "-dumpversion"], capture_output=True, text=True).stdout.partition(".")[0].strip()
        )
        if version.isdigit() and int(version) >= OLDEST:
            return found
    return None


def clcpp_findings(text: str) -> tuple[Finding, ...]:
    """Return clang's errors in a text, of rule ``"clang"``; empty without clang.

    Texts with tensor operations are not looked at: their descriptors are C++ of a later version.
    """
    program = clang()
    if program is None or "matmul2d" in text:
        return ()
    command = [program, *_FLAGS, "-include", str(PRELUDE), "-"]
    done = subprocess.run(command, input=_translated(text), capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return ()
    found = re.findall(r"^<stdin>:(\d+):\d+: (?:fatal )?error: (.*)$", done.stderr, re.MULTILINE)
    findings = tuple(sorted(Finding(int(line), "clang", message) for line, message in found))
    return findings or (Finding(0, "clang", done.stderr.strip()[:500]),)


def _translated(text: str) -> str:
    """The text without includes, with OpenCL's kernel keyword instead of MSL's attribute.

    It keeps its lines.
    """
    tokens = tokenize(text)
    edits = [(t.start, t.end, "") for t in tokens if t.kind == "directive" and t.text[1:].split()[:1] == ["include"]]
    for function in outline([t for t in tokens if t.kind != "directive"]).functions:
        if function.is_kernel and not any(t.text == "kernel" for t in function.head):
            edits.append((function.head[0].start, function.head[0].start, "__kernel "))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
