"""Registers and private arrays: their contents before the first write.

Instrumentation cannot see registers, so a kernel is executed twice, with different bytes in every variable that its
source declares without a value. If the arrays differ afterwards, the result depends on uninitialised registers. A
register that is only padding, and whose value is never used, changes nothing.
"""

from __future__ import annotations

import re

import numpy as np

from tile_emulator.image import Image

#: Maximum number of bytes per array whose writer is looked up.
WATCHES = 16
_DECLARATION = re.compile(
    r"^(\s*)(?:alignas\(\d+\)\s*)?([A-Za-z_][\w:]*(?:<[^;<>()]*>)?(?:\s+[A-Za-z_]\w*)*)\s+([A-Za-z_]\w*)((?:\[\w+\])*);\s*$"
)
_NO_TYPES = frozenset(
    "return static extern const constexpr threadgroup device constant struct union typedef using goto delete new else "
    "case volatile namespace typename class enum register __shared__ __constant__ __device__ SIMT_SHARED".split()
)


def with_undefined(text: str, entry: str) -> tuple[str, bool]:
    """Initialize uninitialized declarations with the run's bytes; line numbers stay the same.

    Parameters
    ----------
    text
        The text as the dialect has prepared it.
    entry
        Name of the kernel whose body is searched for declarations.

    Returns
    -------
    tuple of str and bool
        The source, and whether it declares anything without a value.
    """
    lines = text.split("\n")
    heads = [n for n, line in enumerate(lines) if re.search(rf"\b{re.escape(entry)}\s*\(", line)]
    found = False
    for n in range(heads[-1] + 1 if heads else len(lines), len(lines)):
        match = _DECLARATION.match(lines[n])
        if match is not None and not _NO_TYPES & set(re.findall(r"\w+", match[2])):
            lines[n] = f"{lines[n].rstrip()} simt::undefined({match[3]});"
            found = True
    return "\n".join(lines), found


def differing(image: Image, other: Image) -> list[tuple[int, int]]:
    """Return the first bytes of each array that differ after two runs.

    Each is (array, byte).
    """
    found = []
    for n, (mine, theirs) in enumerate(zip(image.placed, other.placed, strict=True)):
        if mine.param is None or mine.param.access == "read" or not mine.footprint.bytes:
            continue
        a, b = (
            np.frombuffer(i.memory, np.uint8, p.mapped, p.file_offset)  # type: ignore[arg-type]
            for i, p in ((image, mine), (other, theirs))
        )
        parts = sorted({*image.data(mine), *other.data(theirs)})
        differ = sorted({low + int(at) for low, end in parts for at in np.flatnonzero(a[low:end] != b[low:end])})
        inside = [at - mine.start for at in differ if mine.start <= at < mine.start + mine.footprint.bytes]
        found += [(n, at) for at in inside[:WATCHES]]
    return found
