"""The hooks of mkdocs: generated pages, and replaced placeholders in pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mkdocs.structure.files import File, Files

from pages.generate import generated
from pages.pictures import draw_pictures
from pages.programs import all_names
from pages.search import meta_of, weigh_names


def on_config(config: Any) -> Any:
    """List the pages of evidence, of examples and of results as they are found."""
    folder = Path(config.docs_dir, "evidence")
    evidence = [f"evidence/{path.name}" for path in sorted(folder.glob("*.md")) if path.stem != "README"]
    section = next(entry["Evidence"] for entry in config.nav if "Evidence" in entry)
    speed = next(entry["Performance"] for entry in section if "Performance" in entry)
    section[1:1] = evidence
    listed = next(entry["Examples"] for entry in config.nav if "Examples" in entry)
    listed += [f"examples/{name}.md" for name in all_names()]
    speed += sorted(path for path in generated() if path.startswith("performance/"))
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Draw pictures of a page; protect words in braces at cell ends; set its weight in the search."""
    page.meta.setdefault("search", meta_of(page.file.src_uri))
    markdown = re.sub(r"^\|.*\|$", lambda row: re.sub(r"\{(?=\w+\} *\|)", r"\\{", row[0]), markdown, flags=re.MULTILINE)
    return draw_pictures(markdown)


def on_post_build(config: Any) -> None:
    """Set the weights of names in the search, whose plugin has written the index: hooks are called after plugins."""
    weigh_names(Path(config.site_dir, "search", "search_index.json"))
