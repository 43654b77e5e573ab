"""The chart of ``tile tune``, drawn by matplotlib where that is installed."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.errors.cli import CannotWrite, MissingPackage
from tile_core.runtime.files import write_named

if TYPE_CHECKING:
    from tile_core.tuning import Tuned

#: Bars in a chart; of more configurations the fastest are drawn.
MOST = 80


def require(path: Path) -> None:
    """Refuse a chart that could not be drawn in the end.

    Raises
    ------
    MissingPackage
        If matplotlib is not installed.
    CannotWrite
        If it does not write such files, or there is no such folder.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackage(option="--plot", package="matplotlib", extra="plot")
    from matplotlib.backend_bases import FigureCanvasBase

    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise CannotWrite(file=path, reason=f"its name ends in none of {', '.join('.' + k for k in known)}")
    if not path.parent.is_dir():
        raise CannotWrite(file=path, reason=f"there is no folder {path.parent}")


def draw(path: Path, found: Tuned) -> None:
    """Draw the time of each configuration that works, the fastest first.

    Raises
    ------
    CannotWrite
        If the file cannot be written.
    """
    from matplotlib.figure import Figure

    from tile_core.runtime.bench import time_text

    working = sorted((t for t in found.trials if t.seconds is not None), key=lambda t: t.seconds or 0.0)[:MOST]
    seconds = [t.seconds or 0.0 for t in working]
    figure = Figure(figsize=(9, 1.2 + 0.24 * len(working)), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(range(len(working)), [s * 1e6 for s in seconds], color=["#1f77b4"] + ["#9ecae1"] * len(working))
    axes.bar_label(bars, [time_text(s) for s in seconds], padding=3, fontsize=8)
    labels = [", ".join(f"{k}={v}" for k, v in t.config.items()) for t in working]
    axes.set_yticks(range(len(working)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15, y=0.01)
    axes.set_xlabel("median time of a launch, us")
    failed = len(found.trials) - sum(t.seconds is not None for t in found.trials)
    rest = f", {failed} failed" if failed else ""
    axes.set_title(
        f"{found.kernel.name} for {found.kernel.target}: {len(found.trials)} configurations{rest}", fontsize=9
    )
    try:
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix[1:] or "png")
        write_named(path, picture.getvalue())
    except (OSError, ValueError) as error:  # no such format
        raise CannotWrite(file=path, reason=getattr(error, "strerror", None) or str(error)) from error
