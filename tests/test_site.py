"""The site's statements about other languages hold, and its checks can fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import check_site
import pytest
from distribution import readme_kernel
from pages import names, programs
from pages.docstrings import docstring_of
from repository import ROOT

import tile_core as tile
from tile_core.cli.app import run
from tile_core.plugins.manager import installed
from tile_core.vocabulary import NAMES

MOVING = ("from-triton.md", "from-tilelang.md")


def names_of_t() -> set[str]:
    return {*NAMES, *installed().language_names()}


def parts(page: str) -> tuple[str, list[str], list[str]]:
    """Return a page up to tile's missing features, and the columns of that table."""
    present, _, lacking = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("## What tile does not have")
    rows = [line.split("|") for line in lacking.splitlines() if line.startswith("| ")]
    return present, [row[1] for row in rows], [row[2] for row in rows]


@pytest.mark.parametrize("page", MOVING)
def test_names_that_a_page_recommends_exist(page: str) -> None:
    present, _, instead = parts(page)
    assert set(re.findall(r"`T\.(\w+)", "\n".join([present, *instead]))) - names_of_t() == set()


def test_names_that_are_said_to_be_missing_are_missing() -> None:
    _, missing, _ = parts("from-tilelang.md")
    found = set(re.findall(r"`T\.(\w+)(?=`)", "\n".join(missing)))
    assert len(found) > 2
    assert found & names_of_t() == set()


@pytest.mark.parametrize(
    ("page", "loads"),
    [
        ('<script src="https://x.example/a.js"></script>', "https://x.example/a.js"),
        ('<link rel="stylesheet" href="//fonts.example/css">', "//fonts.example/css"),
        ('<img src="http://x.example/a.png">', "http://x.example/a.png"),
        ("<style>@import 'https://x.example/a.css';</style>", "https://x.example/a.css"),
        ('<p style="background: url(https://x.example/b.png)">', "https://x.example/b.png"),
        ('<img srcset="a.png 1x, https://x.example/c.png 2x">', "https://x.example/c.png"),
        ('<a href="https://x.example/">a link</a><link rel="canonical" href="https://x.example/">', ""),
        ('<script src="assets/a.js"></script><img src="../a.png"><img src="data:image/png;base64,AA">', ""),
    ],
)
def test_what_a_page_loads(tmp_path: Path, page: str, loads: str) -> None:
    (tmp_path / "a.html").write_text(page)
    assert check_site.remote(tmp_path) == ([f"a.html: loads {loads}"] if loads else [])


def test_what_a_style_loads(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text('@font-face { src: url("https://x.example/f.woff2") } p { background: url(a.png) }')
    assert check_site.remote(tmp_path) == ["a.css: loads https://x.example/f.woff2"]


def test_words_in_braces_are_not_swallowed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<td style="text-align: right;">1</td><th class="x">')
    assert check_site.swallowed(tmp_path) == []
    (tmp_path / "a.html").write_text('<td found>T.op: the destination is</td><td style="text-align: right;">1</td>')
    assert check_site.swallowed(tmp_path) == ["a.html: a cell has lost its end, {found}"]


def test_what_the_search_finds(tmp_path: Path) -> None:
    assert check_site.missing(tmp_path) == ["404.html is missing", "there is no index to search"]
    (tmp_path / "404.html").write_text("")
    (tmp_path / "search").mkdir()
    docs = [{"location": location, "title": title} for location, title in check_site.WANTED]

    def missing(docs: list[dict[str, str]], separator: str) -> list[str]:
        index = {"docs": docs, "config": {"separator": separator}}
        (tmp_path / "search" / "search_index.json").write_text(json.dumps(index))
        return check_site.missing(tmp_path)

    assert missing(docs, r"\s+|\b[tT]\.") == []
    assert missing(docs[1:], r"\s+|\b[tT]\.") == ["the search does not find 'All names' in reference/names/"]
    assert missing(docs, r"\s+")[0] == "the search does not find 'T.copy' in reference/moves/"


def test_the_site_links_every_example() -> None:
    files = {path.stem for path in programs.FOLDER.glob("*.py")}
    assert sorted([*programs.all_names(), *programs.OTHERS]) == sorted(files)
    titles = [programs.title_of(name) for name in programs.all_names()]
    assert len(set(titles)) == len(titles)
    assert all(len(title) < 45 for title in titles), titles


def test_readme_shows_the_refusal_of_its_kernel_without_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = readme_kernel().partition("\nkernel = ")[0]
    assert whole.count("            T.clear(C_f)\n") == 1
    (tmp_path / "kernel.py").write_text(whole.replace("            T.clear(C_f)\n", ""))
    arguments = ["compile", f"{tmp_path}/kernel.py:matmul", "--arg", "M=1000", "--arg", "N=300", "--arg", "K=500"]
    assert run([*arguments, "--target", "cpu"]) == 1
    shown = capsys.readouterr().err.replace(f"{tmp_path}/", "").strip()
    assert f"```text\n{shown}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.sweep(0.25)
def test_doctests_are_code() -> None:
    text = docstring_of(tile.Kernel).markdown()
    assert "```pycon\n>>> from tile_core.abi.signature import" in text
    fenced = re.sub(r"^```.*?^```", "", "\n".join(names.pages().values()), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ *>", fenced, flags=re.MULTILINE)


def test_no_text_installs_packages_by_names_that_no_index_has() -> None:
    ours = "|".join(path.name for path in (ROOT / "packages").iterdir())
    command = re.compile(rf"pip install [^`\n]*?(?<!packages/)\b(?:{ours})\b")
    texts = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/README.md"), *ROOT.glob("packages/*/src/**/*.py")]
    found = {str(path.relative_to(ROOT)): command.findall(path.read_text(encoding="utf-8")) for path in texts}
    assert {path: commands for path, commands in found.items() if commands} == {}
    assert command.findall("pip install --upgrade tile-core, or pip install packages/tile-cuda tile-metal") == [
        "pip install --upgrade tile-core",
        "pip install packages/tile-cuda tile-metal",
    ]
