"""Map addresses of a kernel's library to source lines, with inlined calls."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

Line = tuple[str, int]


class Symbols:
    """The line table of a library.

    Parameters
    ----------
    path
        An ELF file with DWARF line numbers, read once, at the first lookup.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._units: list[_Unit] | None = None

    def lines(self, address: int, guess: bool = False) -> list[Line]:
        """Return file and line of an address, then those of inlined calls, outwards.

        Nothing if the address belongs to no line; with ``guess`` that of the code before it.
        """
        if self._units is None:
            with self._path.open("rb") as file:
                dwarf = ELFFile(file).get_dwarf_info()
                self._units = [_Unit(dwarf, unit) for unit in dwarf.iter_CUs()]
        for unit in self._units:
            found = unit.lines(address, guess)
            if found:
                return found
        return []


class _Unit:
    """One compilation unit: line rows and inlined calls.

    Rows are (address, file, line); calls are (low, high, file, line).
    """

    def __init__(self, dwarf: Any, unit: Any) -> None:
        program = dwarf.line_program_for_CU(unit)
        self._names = _Names(program)
        self.rows: list[tuple[int, str, int]] = []
        for entry in program.get_entries() if program is not None else ():
            if entry.state is not None:
                name = "" if entry.state.end_sequence else self._names[entry.state.file]
                self.rows.append((entry.state.address, name, entry.state.line))
        self.rows.sort(key=lambda row: row[0])
        self._addresses = [row[0] for row in self.rows]
        self.calls = list(self._inlined(dwarf, unit))

    def lines(self, address: int, guess: bool) -> list[Line]:
        at = bisect.bisect_right(self._addresses, address) - 1
        if at < 0 or not self.rows[at][1]:
            return []
        around = [call for call in self.calls if call[0] <= address < call[1]]
        around.sort(key=lambda call: call[1] - call[0])  # the innermost range is the smallest
        found = [self.rows[at][1:], *((name, line) for _, _, name, line in around)]
        known = [location for location in found if location[1]]
        # Line 0 is code that the compiler added or merged: then the line before it is the best guess.
        return known or [row[1:] for row in reversed(self.rows[:at]) if row[2]][:1] if guess else known

    def _inlined(self, dwarf: Any, unit: Any) -> Iterator[tuple[int, int, str, int]]:
        for die in unit.iter_DIEs():
            if die.tag != "DW_TAG_inlined_subroutine" or "DW_AT_call_line" not in die.attributes:
                continue
            name = self._names[die.attributes["DW_AT_call_file"].value]
            for low, high in _ranges(dwarf, unit, die):
                yield low, high, name, die.attributes["DW_AT_call_line"].value


class _Names:
    """Names of a unit's files by their number, without folders."""

    def __init__(self, program: Any) -> None:
        entries = program["file_entry"] if program is not None else []
        first = 0 if program is not None and program["version"] >= 5 else 1
        self._names = {i: entry.name.decode("utf-8", "replace") for i, entry in enumerate(entries, first)}

    def __getitem__(self, number: int) -> str:
        return Path(self._names.get(number, "?")).name


def _ranges(dwarf: Any, unit: Any, die: Any) -> Iterator[tuple[int, int]]:
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in attributes:
        top = unit.get_top_DIE().attributes
        base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        lists = dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=unit) if lists else ():
            if hasattr(entry, "base_address"):
                base = entry.base_address
            elif getattr(entry, "is_absolute", False):
                yield entry.begin_offset, entry.end_offset
            else:
                yield base + entry.begin_offset, base + entry.end_offset
