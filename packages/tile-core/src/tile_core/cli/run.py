"""``tile run``: compile a kernel, verify it on random inputs, and time it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tile_core.cli.arguments import (
    Allow,
    Arguments,
    File,
    Options,
    Reference,
    RuntimeName,
    TargetText,
    read_arguments,
    read_options,
)
from tile_core.cli.console import AsJson, Verbose, console, print_json, waiting

if TYPE_CHECKING:
    from tile_core.runtime.kernel import Kernel


def run_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    runtime: RuntimeName = None,
    seed: Annotated[int, typer.Option(min=0, max=10**6, help="Seed of the random inputs.")] = 0,
    repeat: Annotated[int, typer.Option(min=1, help="Number of timed samples.")] = 20,
    reference: Reference = None,
    allow: Allow = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compile a kernel, verify it on random inputs, and time it.

    An --arg that the function does not have is the value of a symbolic size or of a scalar parameter. The status is 1
    if outputs are wrong, not written, or NaN or infinite without a cause in the inputs.
    """
    from tile_core.cli.prepare import prepare
    from tile_core.cli.source import named_value
    from tile_core.runtime.bench import time_text

    own = None if reference is None else named_value(reference)
    prepared = prepare(file, target, read_arguments(arg), read_options(option), runtime)
    kernel, inputs = prepared.kernel, prepared.inputs(seed)
    with waiting("verifying"):
        report = kernel.verify(*inputs.values, seed=seed, reference=own, allow=allow or ())
    with waiting("timing"):
        bench = kernel.bench(*inputs.values, repeat=repeat)
    if as_json:
        print_json(_json(kernel, inputs.sizes, seed, report, bench))
        return
    sizes = "".join(f", {name} = {value}" for name, value in inputs.sizes.items())
    out = console()
    out.print(f"{kernel.signature} for {kernel.target}", markup=False)
    out.print(f"inputs: random, seed {seed}{sizes}", markup=False)
    out.print(str(report), markup=False)
    out.print(f"time: median {time_text(bench.median)}, min {time_text(bench.min)} of {repeat} samples", markup=False)


def _json(kernel: Kernel, sizes: dict[str, int], seed: int, report: Any, bench: Any) -> dict[str, object]:
    outputs = [
        {"name": o.name, "elements": o.elements, "worst_index": list(o.worst_index), "worst_error": o.worst_error,
         "rtol": o.rtol, "atol": o.atol, "unwritten": o.unwritten, "nonfinite": o.nonfinite}
        for o in report.outputs
    ]  # fmt: skip
    return {
        "kernel": kernel.name, "target": kernel.target, "signature": kernel.signature.to_json(), "seed": seed,
        "sizes": sizes, "verified": outputs,
        "seconds": {"median": bench.median, "min": bench.min, "samples": list(bench.samples)},
    }  # fmt: skip
