"""The commands of ``tile debug``."""

from __future__ import annotations

import cmd
import contextlib
import linecache
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.debugging.expressions import parse
from tile_core.debugging.kernels import require_line
from tile_core.debugging.session import Breakpoint, Debugger, Quit, Stop
from tile_core.errors import TileError
from tile_core.errors.debugging import BadCommand, NoSuchName
from tile_core.reference.nonfinite import block_text
from tile_runtime.errors.guess import hint

if TYPE_CHECKING:
    from tile_core.ir.program import Program

__all__ = ["Commands"]

_SHORT = {
    "b": "break", "c": "continue", "d": "delete", "h": "help", "l": "list", "n": "next", "p": "print", "q": "quit",
    "s": "step", "t": "tiles", "w": "where",
}  # fmt: skip
_USAGE = {
    "block": "[N ...]", "break": "[LINE [if CONDITION]]", "delete": "NUMBER", "print": "EXPRESSION",
    "watch": "NAME [if CONDITION]",
}  # fmt: skip
_AROUND = 4


class Commands(cmd.Cmd):
    """Reads commands at a stop, and prints what they ask for.

    Parameters
    ----------
    program
        The program.
    show
        Prints a text, a table or an error.
    script
        Commands that are executed first. Without any, they are read from standard input.
    """

    prompt = "(tile) "

    def __init__(self, program: Program, show: Any, script: Sequence[str]) -> None:
        super().__init__()
        self.program, self.show = program, show
        self.debugger = Debugger(self.ask, show.printed)
        self.stop: Stop | None = None
        self.failed = False
        self.use_rawinput = sys.stdin.isatty()
        if self.use_rawinput:
            with contextlib.suppress(ImportError):  # not on every system
                import readline

                readline.set_completer(self.complete)  # type: ignore[arg-type]
                readline.parse_and_bind("tab: complete")
        self._script: Iterator[str] | None = iter(script) if script else None

    def ask(self, stop: Stop) -> None:
        """Show a stop, and execute commands until one goes on."""
        self.stop = stop
        if stop.reason:
            self.show.text(stop.reason)
        self.show_location()
        self.read()

    def after_error(self, error: TileError) -> None:
        """Show an error of the program, and execute commands where it was raised."""
        self.show.error(error)
        self.stop, self.debugger.mode = self.debugger.last, "ended"
        if self.stop is not None:
            self.show_location()
            self.read()

    def read(self) -> None:
        """Execute commands until one goes on.

        Raises
        ------
        Quit
            There are no more.
        """
        while True:
            line = self._next_line()
            if line is None:
                raise Quit
            if self.onecmd(line):
                return

    def _next_line(self) -> str | None:
        if self._script is not None:
            return next(self._script, None)
        if self.use_rawinput:
            try:
                return input(self.prompt)
            except EOFError:
                return None
        return sys.stdin.readline() or None

    # cmd.Cmd

    def onecmd(self, line: str) -> bool:
        """Execute a command; whether the execution goes on."""
        name, _, rest = line.strip().partition(" ")
        if not name or name.startswith("#"):
            return False
        try:
            return bool(super().onecmd(f"{_SHORT.get(name, name)} {rest.strip()}"))
        except TileError as error:
            self.show.error(error)
            self.failed = self.failed or self._script is not None
            return False

    def completedefault(self, text: str, *where: object) -> list[str]:
        """Return the names of the program that begin with a text."""
        return sorted(name for name in self._here().names if name.startswith(text))

    def default(self, line: str) -> None:
        """Refuse an unknown command."""
        name = line.split()[0]
        known = [n[3:] for n in dir(self) if n.startswith("do_")]
        raise BadCommand(text=name, reason="it does not exist", hint=hint(name, known, f"one of: {', '.join(known)}"))

    def do_step(self, rest: str) -> bool:
        """Go to the next line, also into loops."""
        return self._go("step")

    def do_next(self, rest: str) -> bool:
        """Go to the next line after the present statement, so over a loop."""
        return self._go("next")

    def do_continue(self, rest: str) -> bool:
        """Go to the next breakpoint, or to the end."""
        return self._go("go")

    def do_nan(self, rest: str) -> bool:
        """Go to the next operation that makes a NaN from numbers."""
        self.debugger.track(infinities=False)
        return self._go("bad")

    def do_inf(self, rest: str) -> bool:
        """Go to the next operation that makes an infinity or a NaN from numbers."""
        self.debugger.track(infinities=True)
        return self._go("bad")

    def do_break(self, rest: str) -> None:
        """Stop before a line, where a condition holds; or list the breakpoints."""
        at, _, condition = rest.partition(" if ")
        if not rest:
            found = [f"{n}: {b}" for n, b in enumerate(self.debugger.breakpoints, 1) if b is not None]
            self.show.text("\n".join(found) or "no breakpoints")
            return
        if not at.strip().isdecimal():
            raise BadCommand(text=f"break {rest}", reason="a line is missing", hint="write break 12 if max(m) > 9")
        require_line(self.program, int(at))
        self._add(Breakpoint(int(at), condition=parse(condition) if condition else None))

    def do_watch(self, rest: str) -> None:
        """Stop after each statement that writes a tile, where a condition holds."""
        name, _, condition = rest.partition(" if ")
        names = self._here().site.tiles | self._here().site.names
        known = {*names, *(str(b) for b in _all_names(self.program))}
        if name.strip() not in known:
            raise NoSuchName(name=name.strip(), hint=hint(name.strip(), known, f"one of: {', '.join(sorted(known))}"))
        self._add(Breakpoint(0, name.strip(), parse(condition) if condition else None))

    def do_delete(self, rest: str) -> None:
        """Remove a breakpoint."""
        points = self.debugger.breakpoints
        if not rest.isdecimal() or not 1 <= int(rest) <= len(points):
            raise BadCommand(text=f"delete {rest}", reason="no such breakpoint", hint="break lists them")
        points[int(rest) - 1] = None

    def do_block(self, rest: str) -> None:
        """Stop only in this block; without indices in all."""
        parts = rest.replace(",", " ").split()
        if not all(p.isdecimal() for p in parts):
            raise BadCommand(text=f"block {rest}", reason="indices are integers", hint="write block 0 or block 2 1")
        self.debugger.block = tuple(map(int, parts)) or None

    def do_print(self, rest: str) -> None:
        """A tile, a part of it, a variable, or what is computed of them."""
        value = np.asarray(parse(rest).value(self._here().names))
        text = np.array2string(value, precision=6, threshold=200, edgeitems=4, max_line_width=110)
        shape = f" {value.dtype} {value.shape}" if value.ndim else ""
        self.show.text(f"{rest}{shape} = {text}" if not value.ndim else f"{rest}:{shape}\n{text}")

    def do_tiles(self, rest: str) -> None:
        """All tiles with type, shape, least and greatest number, and NaN."""
        here, rows = self._here(), []
        for name in here.names.tiles:
            memory, value = here.names.memory(name), here.names.value(name)
            if memory is None or value is None:
                continue
            least, most, bad = _summary(value)
            rows.append([name, memory.root.scope, memory.dtype, str(memory.shape), least, most, bad])
        self.show.table(["tile", "scope", "type", "shape", "min", "max", "NaN"], rows)

    def do_where(self, rest: str) -> None:
        """The line, the block, and the variables."""
        self.show_location()
        names = self._here().names
        for name in names.variables:
            value = np.asarray(names.value(name))
            self.show.text(f"  {name} = {np.array2string(value, threshold=8, edgeitems=3)}")

    def do_list(self, rest: str) -> None:
        """The lines around."""
        where = self._here().site.where
        assert where is not None
        for line in range(max(1, where.line - _AROUND), where.line + _AROUND + 1):
            text = linecache.getline(where.file, line).rstrip()
            self.show.text(f"{'->' if line == where.line else '  '} {line:4d}  {text}")

    def do_quit(self, rest: str) -> None:
        """End the execution."""
        raise Quit

    def do_help(self, rest: str) -> None:
        """This list."""
        for method in sorted(n for n in dir(self) if n.startswith("do_")):
            name = method[3:]
            self.show.text(f"{f'{name} {_USAGE.get(name, str())}':29} {getattr(self, method).__doc__}")

    def show_location(self) -> None:
        """Show the line where the execution stands."""
        here = self._here()
        where = here.site.where
        assert where is not None
        lanes = f", {here.lanes}" if here.lanes else ""
        block = block_text(tuple(here.state.grid[a] for a in sorted(here.state.grid)) or (0,))
        self.show.text(f"{where.file}:{where.line}, block {block}{lanes}\n-> {where.source}")

    def _here(self) -> Stop:
        assert self.stop is not None
        return self.stop

    def _go(self, mode: str) -> bool:
        if self.debugger.mode == "ended":
            raise BadCommand(text=mode, reason="the program ended by an error", hint="print, tiles, where, or quit")
        self.debugger.mode = mode
        return True

    def _add(self, point: Breakpoint) -> None:
        self.debugger.breakpoints.append(point)
        self.show.text(f"breakpoint {len(self.debugger.breakpoints)}: {point}")


def _all_names(program: Program) -> list[str]:
    from tile_core.debugging.snapshots import names_of

    return names_of(program)


def _summary(value: Any) -> tuple[str, str, str]:
    """Return the least and the greatest number of an array, and how many are NaN."""
    if not value.size:
        return "", "", ""
    if value.dtype.kind != "f":
        return str(value.min()), str(value.max()), ""
    bad = int(np.isnan(value).sum())
    known = value[~np.isnan(value)]
    return (
        f"{known.min():.6g}" if known.size else "",
        f"{known.max():.6g}" if known.size else "",
        str(bad) if bad else "",
    )
