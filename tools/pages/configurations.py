"""Names of configurations in results, written out: ``float16_float32_128x256x64_t256_s4_p0`` is hard to read."""

from __future__ import annotations

import re

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


def write_out(markdown: str) -> str:
    """Return a page whose tables have names of configurations in words."""
    lines = markdown.splitlines(keepends=True)
    return "".join(_NAME.sub(lambda m: decoded(m[0]), line) if line.startswith("|") else line for line in lines)
