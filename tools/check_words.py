"""Refuse words that do not belong: vendors in the core, one machine or its registry, terms of no field.

    python tools/check_words.py              everything
    python tools/check_words.py --shrink     lower the accepted numbers of findings to the true ones first

The core knows no target by name, so names of vendors, their instructions, devices and tools may stand in
packages/tile-core/src/tile_core only below compat/. Array libraries are no targets. Published names are excepted by
tools/word_exceptions.txt: lines of `path word`, where the path is a folder or file of the core.

The rules for terms, names, summaries and comments stand in tools/glossary.py. What they still find is counted in
tools/word_exceptions_prose.txt: lines of `path rule count`. A count above the number is refused, and where the
environment has `CI`, a number above the count too. That list may only shrink.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from repository import ROOT, files, report
from word_counts import check_glossary, shrink

CORE = Path("packages", "tile-core", "src", "tile_core")
DOORS = "compat"
EXCEPTIONS = Path("tools", "word_exceptions.txt")

VENDOR_WORDS = (
    *("cuda", "cudnn", "cublas", "cutlass", "cute", "nvidia", "nvcc", "nvrtc", "ptx", "ptxas", "cubin", "sass"),
    *("wgmma", "tcgen05", "tmem", "tma", "ldmatrix", "stmatrix", "cp_async", "mbarrier", "setmaxnreg", "warpgroup"),
    *("ampere", "hopper", "blackwell", r"sm_?\d{2,3}[af]?"),
    *("metal", "msl", "mps", "simdgroup", "threadgroup"),
    *("rocm", "hip", "hiprtc", "amd", "amdgcn", "amdgpu", "mfma", "smfmac", "cdna", r"gfx\d{3,4}[a-z]?"),
    *("opencl", "pocl", "vulkan", "spirv"),
)
# An underscore ends a word: tile_cuda and cutlass_sm80 are found, amd64 is not.
VENDOR = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(VENDOR_WORDS)})(?![A-Za-z0-9])", re.IGNORECASE)

MACHINE = {
    "a path of one machine": re.compile(r"(?<![\w./-])/(?:root|work|home/\w+|Users/\w+)(?![\w.-])"),
    "a registry address": re.compile(
        r"index-url\s*[=:]?\s*[\"']?\w+://|\w+://\S+/simple\b|\b(?:registry|index)\s*=\s*[\"']?https?://", re.IGNORECASE
    ),
}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shrink", action="store_true", help="write the counts that are lower now")
    if parser.parse_args().shrink:
        print(shrink(ROOT))
    strict = bool(os.environ.get("CI"))
    return report("words", check_vendor_words(ROOT) + check_machine(ROOT) + check_glossary(ROOT, strict))


def check_vendor_words(root: Path) -> list[str]:
    """Look for vendors in the core, except below compat/ and for the words that the data file allows."""
    problems = []
    allowed = read_exceptions(root / EXCEPTIONS)
    unused = set(allowed)
    for path in files(root):
        if not path.is_relative_to(root / CORE) or path.is_relative_to(root / CORE / DOORS):
            continue
        name = path.relative_to(root / CORE).as_posix()
        for number, line in enumerate(text_of(path).splitlines(), 1):
            for folder, word in allowed:
                if (name == folder or name.startswith(folder + "/")) and word in line:
                    unused.discard((folder, word))
                    line = line.replace(word, "")
            if found := VENDOR.search(line):
                problems.append(f"{(CORE / name).as_posix()}:{number}: the core names a vendor: {found[0]}")
    return problems + [f"{EXCEPTIONS.as_posix()}: not needed: {folder} {word}" for folder, word in sorted(unused)]


def check_machine(root: Path) -> list[str]:
    """Look for absolute paths of one machine and for addresses of a package registry."""
    problems = []
    for path in files(root):
        name, text = path.relative_to(root).as_posix(), text_of(path)
        inside = {what: pattern for what, pattern in MACHINE.items() if pattern.search(text)}
        for number, line in enumerate(text.splitlines() if inside else (), 1):
            for what, pattern in inside.items():
                if found := pattern.search(line):
                    problems.append(f"{name}:{number}: {what}: {found[0]}")
    return problems


def read_exceptions(path: Path) -> list[tuple[str, str]]:
    """Read lines of the form ``path word``; ``#`` starts a comment."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = (line.partition("#")[0].split() for line in lines)
    return [(entry[0], entry[1]) for entry in entries if entry]


def text_of(path: Path) -> str:
    """Return the text of a file; a binary file has none."""
    data = path.read_bytes()
    return "" if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
