"""Counts of Metal kernels beside hand-written ones after MLX: a page of evidence.

    python benchmarks/metal_counts.py                                    print the counts
    python benchmarks/metal_counts.py --json after.json --only gemm      keep them; of some kernels
    python benchmarks/metal_counts.py --before before.json --page docs/evidence/metal-counts-YYYY-MM-DD.md

Both texts of a kernel run in the emulator on the same arguments, and must be right. No device is needed; registers are
estimated where clang is installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from metal_counts.counts import Counts  # noqa: E402
from metal_counts.rows import MOST, ROWS  # noqa: E402

Found = dict[str, dict[str, dict[str, int]]]
COLUMNS = {
    "products": "8x8x8 products",
    "fragment_loads": "fragment loads",
    "fragment_stores": "fragment stores",
    "exchanges": "shuffles and reductions",
    "device_read": "device bytes read",
    "device_written": "device bytes written",
    "threadgroup_bytes": "threadgroup memory",
    "threadgroup_read": "threadgroup bytes read",
    "threadgroup_written": "threadgroup bytes written",
    "barriers": "barriers",
    "registers": "registers of a thread",
    "arithmetic": "arithmetic instructions of a thread",
}
_HEAD = """# Counts of Metal kernels, {date}

Commit {commit}. Written by `benchmarks/metal_counts.py`; not edited.

Each kernel is counted three times for one launch: the text of an earlier commit (*before*), the one that is emitted
*now*, and a text *by hand* with the structure of MLX's kernels (`tools/metal_counts/reference`). All three
ran in the emulator on the same arguments and were right. Numbers are totals over all threadgroups, but for threadgroup
memory (of one threadgroup) and registers (of one thread, an estimate: what clang allocates for a GPU of 32 lanes, with
instructions in an order with few live values). Arithmetic instructions are those of one thread in what clang makes for
that GPU with all loops unrolled: both sides of branches, no moves, no additions for addresses (nor what clang makes of
them, an `or` with a constant), a product and an addition apart. Bytes are those of the threads' accesses, before any
cache. **Bold** is more than 1.05 times what is written by hand.

Where registers or arithmetic are more than by hand: a thread computes its lane, row and column once (6 to 13
instructions); two `bfloat16` results become a word by arithmetic on that GPU; the maxima of attention and softmax order
zeros and keep numbers beside NaN: a second search by integers, in a branch that zeros and subnormal numbers alone take
(most of what attention has more), and keys of integers between threads, where `fmax` by hand does neither; softmax
divides, with five instructions for a quotient besides the shared reciprocal, where the text by hand multiplies by it;
one thread adds the last four parts of four rows, where by hand four threads add those of one; the vector products
multiply each weight by its scale, as the program says, where the text by hand multiplies a group's total; decoding to
`float` by hand relies on subnormal numbers of `half`, which an implementation may flush; a kernel for metal4 compares
once the elements that lanes hold (80 comparisons and a vote), for any K. Registers of products
of 8-bit floats and of 4-bit integers hold the tiles of the next iteration.

One query: the program finds all scores before their maximum, which takes barriers and registers instead of exponentials
for each key; its second product is one of matrices, of whose 8 rows one is used, so that lanes read a weight eight
times.

By its sources, MLX itself takes 5,376 bytes of threadgroup memory for the products of 16-bit floats and 9,728 for
attention 64 deep.
"""


def main() -> None:
    """Count, and write the page that the command line requests."""
    parser = argparse.ArgumentParser(description="counts of Metal kernels")
    parser.add_argument("--only", default="", help="kernels whose names contain this")
    parser.add_argument("--json", type=Path, help="also write the counts of the emitted texts to this file")
    parser.add_argument("--before", type=Path, help="counts of an earlier commit, as --json wrote them")
    parser.add_argument("--page", type=Path, help="write a page of evidence")
    arguments = parser.parse_args()
    found: Found = {}
    for row in ROWS:
        if arguments.only in row.name:
            own, reference = row.measured()
            found[row.name] = {"now": asdict(own), "by hand": asdict(reference)}
            print(row.name, *(f"  {key}: {a} and {b}" for key, (a, b) in own.beyond(reference, MOST).items()), sep="\n")
    if arguments.json:
        text = json.dumps({name: counts["now"] for name, counts in found.items()}, indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    before = json.loads(arguments.before.read_text(encoding="utf-8")) if arguments.before else {}
    page = _page({name: {"before": before.get(name, {}), **counts} for name, counts in found.items()})
    if arguments.page:
        arguments.page.write_text(page, encoding="utf-8")
    else:
        print(page)


def _page(found: Found) -> str:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    parts = [_HEAD.format(date=datetime.date.today().isoformat(), commit=commit.stdout.strip())]
    for name, counts in found.items():
        parts.append(f"## {name}\n")
        sides = [side for side in counts if counts[side]]
        parts.append(f"| | {' | '.join(sides)} |\n| --- |{' ---: |' * len(sides)}")
        for key, title in COLUMNS.items():
            values = [counts[side].get(key) for side in sides]
            if any(values):
                cells = [_cell(value, values[-1]) for value in values]
                parts.append(f"| {title} | {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _cell(value: int | None, by_hand: int | None) -> str:
    if value is None:
        return ""
    return f"**{value:,}**" if by_hand is not None and value > MOST * by_hand else f"{value:,}"


assert set(COLUMNS) == set(Counts.__dataclass_fields__)

if __name__ == "__main__":
    main()
