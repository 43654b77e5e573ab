"""The tables of docs/cuda.md equal the backend's data."""

from __future__ import annotations

import dataclasses
import re

from repository import ROOT

from tile_cuda.options import CudaOptions
from tile_cuda.target import FP8_MMA
from tile_cuda_runtime.architectures import RECORDS

PAGE = (ROOT / "docs" / "cuda.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table of a section, without its head."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_targets() -> None:
    expected = [
        [
            f"`cuda:{r.arch}`", "{}.{}".format(*r.compute), f"{r.shared_bytes // 1024} KiB",
            "yes" if FP8_MMA.name in r.features else "converted to float16", "yes" if r.forward else "no",
        ]
        for r in RECORDS.values()
    ]  # fmt: skip
    assert rows("Targets") == expected


def test_options() -> None:
    assert {name: value for name, value, _ in rows("Options")} == {
        f"`{f.name}`": f"`{f.default}`" for f in dataclasses.fields(CudaOptions)
    }


def test_the_readme_names_all_targets() -> None:
    readme = (ROOT / "packages" / "tile-cuda" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`cuda:(sm_\w+)`", readme)) == set(RECORDS)
