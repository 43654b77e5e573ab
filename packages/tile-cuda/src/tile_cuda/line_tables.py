"""Line tables of the user's Python lines, by directives in the text that is built."""

from __future__ import annotations

from tile_core.abi.kernel_text import KernelText

__all__ = ["with_user_lines"]


def with_user_lines(kernel: KernelText, file: str) -> str:
    """Add ``#line`` directives to a kernel's text.

    They give each line its location in the user's source.

    Profilers and debuggers read the locations from the line table of the built code. They are not part of
    ``kernel.text``, whose own lines messages refer to.

    Parameters
    ----------
    kernel
        The text and its line map.
    file
        Name of the text itself, for lines without a location.
    """
    lines: list[str] = []
    expected = (file, 1)
    for number, line in enumerate(kernel.text.splitlines(), 1):
        where = kernel.facts.line_map.where(number)
        wanted = (file, number) if where is None else (where.file, where.line)
        if wanted != expected:
            lines.append(f'#line {wanted[1]} "{_escaped(wanted[0])}"')
        lines.append(line)
        expected = (wanted[0], wanted[1] + 1)
    return "\n".join(lines) + "\n"


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
