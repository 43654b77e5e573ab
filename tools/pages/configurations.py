"""Names of configurations in results, written out: ``float16_float32_128x256x64_t256_s4_p0`` is hard to read.

So are the arguments of programs: tables with columns ``program``, ``sizes`` and ``tiles`` get words for them.
"""

from __future__ import annotations

import re

from pages.tables import tables_of
from tile_core.dtypes import DTYPES

#: A name: words joined by underscores, with the extents of a tile among them.
_NAME = re.compile(r"(?<![\w`])(?:[a-z][a-z0-9]*_)*(?:\w+_)?\d+(?:x\d+)+(?:_\w+)*")
_NUMBERED = {
    "t": "{} threads", "s": "{} stages", "p": "panels of {}", "d": "d = {}", "split": "split-K {}",
}  # fmt: skip
_WORDS = {
    "nt": "B transposed", "et": "metadata transposed", "st": "staged epilogue", "boxes": "TMA loads",
    "chunks": "cp.async loads", "auto": "overlap auto", "never": "overlap never", "always": "overlap always",
    "default": "default options",
}  # fmt: skip
_HEADS = "{batch}{3:,} positions, {1} heads, {2} of keys, d = {4}"
_TILE = "M N K threads stages dtype splits"
_GROUPS = ("{0} x {1} x {2}, groups of {3}", "M N K threads stages splits")
#: Programs of ``serving_day_kernels.py`` and ``day_programs.py``: a name, their sizes, and the parameters after these.
_PROGRAMS = {
    "linear": ("linear layer", "{0} x {1} x {2}", _TILE),
    "prefill": ("causal attention", _HEADS, "M N threads"),
    "window": ("window of 1024", _HEADS, "M N threads"),
    "sinks": ("attention with sinks", _HEADS, "M N threads"),
    "sinks_window": ("sinks, window of 128", _HEADS, "M N threads"),
    "backward": ("gradients of causal attention", _HEADS, "M N threads stages"),
    "softcap": ("capped scores", _HEADS, "M N threads"),
    "paged_decode": ("paged decode", "{0} sequences of {positions:,}, {1} heads, {2} of keys", "parts threads"),
    "grouped": ("grouped GEMM", "{0} experts, {3} x {1} x {2}", _TILE),
    "w4a16": ("4-bit weights", *_GROUPS),
    "zeros": ("4-bit weights with zeros", *_GROUPS),
    "fp4": ("fp4 weights", *_GROUPS),
    "fp8_rows": ("fp8 GEMM, row scales", "{0} x {1} x {2}", "M N K threads stages"),
    "fp8_tensor": ("fp8 GEMM, a scale for each matrix", "{0} x {1} x {2}", "M N K threads stages"),
    "fp8_blocks": ("fp8 GEMM, scales of 128-blocks", "{0} x {1} x {2}", "M N threads stages"),
    "rms": ("RMSNorm", "{0} x {1}", "threads"),
    "softmax": ("softmax", "{0} x {1}", "threads"),
    "swiglu": ("SwiGLU", "{0} x {1}", "threads"),
}


def decoded(name: str) -> str:
    """Return the name of a configuration in words; other texts stay as they are.

    Parameters
    ----------
    name
        For example ``"float16_float32_128x256x64_t256_s4_p8"``.
    """
    types = [t for t in DTYPES if "_" in t]
    for number, t in enumerate(types):
        name = name.replace(t, f"dtype{number}q")
    tokens = [re.sub(r"dtype(\d+)q", lambda m: types[int(m[1])], token) for token in name.split("_")]
    sizes = [token for token in tokens if re.fullmatch(r"\d+(?:x\d+)+", token)]
    if len(tokens) < 2 or not sizes:
        return name
    parts: list[str] = []
    seen = 0
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token in sizes:
            seen += 1
            extents = " x ".join(token.split("x"))
            parts.append(f"tile {extents}" if seen == len(sizes) else extents)
        elif token in DTYPES and before in DTYPES and parts:
            parts[-1] += f" to {token}"
        elif match := re.fullmatch(r"([a-z]+)(\d+)", token):
            text = _NUMBERED.get(match[1], token).format(match[2])
            parts += [] if token == "p0" else [text]
        else:
            parts.append(_WORDS.get(token, token))
    return ", ".join(parts)


def described(program: str, sizes: str, tiles: str) -> tuple[str, str, str]:
    """Return a program's name, sizes and tiles in words; unknown ones stay as they are.

    Parameters
    ----------
    program
        The name of a function of ``benchmarks/serving_day_kernels.py``.
    sizes, tiles
        Its arguments: ``"2048 x 10240 x 8192"`` and ``"128x256x64x256x4"``.
    """
    if program not in _PROGRAMS or not re.fullmatch(r"\d+( x \d+)*", sizes):
        return program, sizes, tiles
    title, words, parameters = _PROGRAMS[program]
    extents = [int(extent) for extent in sizes.split(" x ")]
    more = {
        "batch": f"{extents[0]} x " if extents[0] > 1 else "",
        "positions": extents[4] * extents[5] if len(extents) > 5 else 0,
    }
    named = list(zip(parameters.split(), tiles.split("x"), strict=False))
    tile = " x ".join(value for name, value in named if name in "MNK")
    counts = [f"{value} {name}" for name, value in named if name not in ("M", "N", "K", "dtype", "splits")]
    splits = [f"split-K {value}" for name, value in named if name == "splits" and value != "1"]
    return title, words.format(*extents, **more), ", ".join(filter(None, [tile, *counts, *splits]))


def write_out(markdown: str) -> str:
    """Return a page whose tables have configurations and arguments of programs in words."""
    lines = markdown.splitlines(keepends=True)
    for table in tables_of(markdown):
        if table.columns[:3] == ("program", "sizes", "tiles"):
            for number, (program, sizes, tiles, *rest) in enumerate(table.rows, table.line + 2):
                lines[number] = f"| {' | '.join([*described(program, sizes, tiles), *rest])} |\n"
    return "".join(_NAME.sub(lambda m: decoded(m[0]), line) if line.startswith("|") else line for line in lines)
