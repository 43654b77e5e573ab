"""Write published.npz: the lane layouts of AMD's Matrix Instruction Calculator.

    python publish.py <folder of github.com/ROCm/amd_matrix_instruction_calculator>

For each instruction and each of A, B, D and the compression index K there is an array of (lane, place, 2): the row and
the column of the elements in a lane, in the order of its registers and of the bits in them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tile_rocm_stub.instructions import INSTRUCTIONS

PUBLISHED = Path(__file__).parent / "published.npz"


def table(folder: Path, name: str, matrix: str) -> np.ndarray:
    """Return one table; a sparse cell names its group's elements, two of them stored."""
    which = "-k" if matrix == "K" else f"-{matrix}"
    command = f"{sys.executable} matrix_calculator.py -a cdna3 -i v_{name} --matrix-layout {which} --csv".split()
    lines = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    lanes = [re.findall(rf"{matrix}\[(\d+)\]\[(\d+)\]", line) for line in lines if re.match(r"\d+,", line)]
    return np.array(lanes, dtype="int16")


def main() -> None:
    folder, found = Path(sys.argv[1]), {}
    for name, one in INSTRUCTIONS.items():
        for matrix in "ABDK" if one.sparse else "ABD":
            found[f"{name}.{matrix}"] = table(folder, name, matrix)
    np.savez_compressed(PUBLISHED, **found)


if __name__ == "__main__":
    main()
