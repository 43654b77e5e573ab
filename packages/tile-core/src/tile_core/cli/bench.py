"""``tile bench``: time kernels, and compare their rates with the machine's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tile_core.cli.arguments import (
    Arguments,
    Files,
    Options,
    RuntimeName,
    TargetText,
    combinations,
    read_arguments,
    read_options,
)
from tile_core.cli.console import AsJson, Verbose, console, print_json, table, waiting
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.cli.roofline import Rates
    from tile_core.runtime.bench import BenchResult
    from tile_core.runtime.kernel import Kernel

_Vary = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option(metavar="NAME=VALUE,VALUE", help="Values of an argument to compare; all combinations are timed."),
]
_VaryOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="NAME=VALUE,VALUE", help="Values of an option of the backend to compare."),
]
_Html = Annotated[Optional[Path], typer.Option(help="Write spread and roofline to this page.")]  # noqa: UP045


def bench_files(
    files: Files,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    vary: _Vary = None,
    vary_option: _VaryOption = None,
    runtime: RuntimeName = None,
    seed: Annotated[int, typer.Option(min=0, max=10**6, help="Seed of the random inputs.")] = 0,
    warmup: Annotated[int, typer.Option(min=0, help="Launches before timing.")] = 3,
    repeat: Annotated[int, typer.Option(min=1, help="Number of timed samples of each.")] = 20,
    html: _Html = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Time kernels on random inputs, beside the peak rates of the machine.

    Samples of several kernels, --vary and --vary-option alternate, so that drifts of the machine affect all alike. An
    --arg that a function does not have is the value of a symbolic size or of a scalar parameter.
    """
    from tile_core.runtime.bench import measure

    given, fixed = read_arguments(arg), read_options(option) or {}
    entries = []
    for file in files:
        for varied in combinations("--vary", vary):
            for options in combinations("--vary-option", vary_option):
                label = _label(file if len(files) > 1 else "", varied, options)
                chosen = {**fixed, **options} or None
                entries.append(_entry(label, file, target, {**given, **varied}, chosen, runtime, seed))
    with waiting("timing"):
        results = measure([e.kernel.stopwatch(*e.values) for e in entries], warmup=warmup, repeat=repeat)
    rates = [e.rates(r) for e, r in zip(entries, results, strict=True)]
    if html is not None:
        _write(html, entries, results, rates)
    if as_json:
        print_json([_json(*one) for one in zip(entries, results, rates, strict=True)])
    else:
        _show(entries, results, rates)


@dataclass(frozen=True)
class _Timed:
    """One kernel to time, with its arguments."""

    label: str
    kernel: Kernel
    program: object
    values: tuple[object, ...]
    sizes: dict[str, int]

    def rates(self, result: BenchResult) -> Rates:
        from tile_core.cli.roofline import Rates
        from tile_core.tiling.work import work_of

        work = work_of(self.program, self.kernel.signature, self.sizes)  # type: ignore[arg-type]
        return Rates(self.label, work, result.median, peaks_of(self.kernel))


def peaks_of(kernel: Kernel) -> dict[str, float]:
    """Return the peak rates of a kernel's device, where the runtime states them."""
    with waiting("measuring peak rates"):
        return dict(getattr(kernel.adapter, "peaks", dict)())


def _label(file: str, *chosen: dict[str, object]) -> str:
    parts = [file] if file else []
    parts += [f"{name}={value}" for one in chosen for name, value in one.items()]
    return " ".join(parts)


def _entry(
    label: str, file: str, target: str, given: dict[str, object], options: dict[str, object] | None,
    runtime: str | None, seed: int,
) -> _Timed:  # fmt: skip
    from tile_core.cli.prepare import prepare

    prepared = prepare(file, target, given, options, runtime)
    inputs = prepared.inputs(seed)
    return _Timed(label or prepared.kernel.name, prepared.kernel, prepared.program, inputs.values, inputs.sizes)


def spread_text(low: float, high: float) -> str:
    """Return the fastest sample and the third quartile, in the unit of the latter."""
    from tile_core.runtime.bench import time_text

    end = time_text(high)
    number, unit = end.split()
    return f"{low / (high / float(number)):.4g} to {number} {unit}"


def _show(entries: list[_Timed], results: list[BenchResult], rates: list[Rates]) -> None:
    from tile_core.cli.roofline import lines
    from tile_core.runtime.bench import time_text

    best = min(r.median for r in results)
    rows = [
        (e.label, time_text(r.median), spread_text(r.min, r.high), *x.cells(), f"{r.median / best:.2f}")
        for e, r, x in zip(entries, results, rates, strict=True)
    ]
    out = console()
    first = entries[0].kernel
    sizes = "".join(f", {name} = {value}" for name, value in entries[0].sizes.items())
    out.print(f"{first.signature} for {first.target} on {first.adapter.device_name()}", markup=False)  # type: ignore[attr-defined]
    out.print(f"inputs: random{sizes}; {len(results[0].samples)} samples each, alternating", markup=False)
    columns = ("kernel", "median", "min to third quartile", "operations", "memory", "share of peak", "/ best")
    kept = slice(None) if len(rows) > 1 else slice(-1)
    out.print(table(columns[kept], [row[kept] for row in rows]))
    for one in rates if len(rates) == 1 else [min(rates, key=lambda r: r.seconds)]:
        for line in lines(one):
            out.print(line, markup=False, soft_wrap=True)


def _write(path: Path, entries: list[_Timed], results: list[BenchResult], rates: list[Rates]) -> None:
    """Write the page of ``--html``."""
    from tile_core.cli.roofline import lines, svg
    from tile_core.runtime.bench import time_text
    from tile_core.runtime.files import write_result
    from tile_runtime import markup

    best = min(results, key=lambda r: r.median)
    spans = [
        markup.Span(e.label, r.min, r.high, f"median {time_text(r.median)}", (r.median,), r is best)
        for e, r in zip(entries, results, strict=True)
    ]
    end = max(span.high for span in spans)
    first = entries[0].kernel
    parts = [
        markup.paragraph(f"{first.signature} for {first.target}", "title"),
        markup.spans(spans, end, time_text(end)),
    ]
    parts.append(markup.paragraph("from the fastest sample to the third quartile; the mark is the median"))
    rows = [(r.label, *r.cells()) for r in rates]
    parts.append(markup.table(("kernel", "operations", "memory", "share of peak"), rows))
    parts += [
        svg(rates),
        *(markup.paragraph(line) for line in lines(min(rates, key=lambda r: r.seconds)) if "|" not in line),
    ]
    head = f'<!doctype html><meta charset="utf-8"><title>{first.name}</title>\n'
    write_result(path, head + markup.page(*parts))


def _json(entry: _Timed, result: BenchResult, rates: Rates) -> dict[str, object]:
    work = rates.work
    return {
        "label": entry.label, "kernel": entry.kernel.name, "target": entry.kernel.target, "sizes": entry.sizes,
        "seconds": {"median": result.median, "min": result.min, "high": result.high, "samples": list(result.samples)},
        "work": {"operations": work.operations, "bytes": work.moved, "known": work.known},
        "rates": {"operations": rates.operations, "bytes": rates.bytes},
        "peaks": dict(rates.peaks), "limit": rates.limit, "share": rates.share,
    }  # fmt: skip
