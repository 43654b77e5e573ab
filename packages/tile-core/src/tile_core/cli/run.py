"""``tile run``: compile a kernel, verify it on random inputs, and time it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tile_core.cli.arguments import Arguments, File, Options, TargetText, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, console, print_json
from tile_core.compat.types import Argument
from tile_core.errors.cli import TargetWithoutDevice

if TYPE_CHECKING:
    from tile_core.runtime.kernel import Kernel


def run_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    runtime: Annotated[str | None, typer.Option(help="Runtime of the target, or `emulator`.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=10**6, help="Seed of the random inputs.")] = 0,
    repeat: Annotated[int, typer.Option(min=1, help="Number of timed samples.")] = 20,
    reference: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="A function of the inputs that returns the right outputs.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Accept `unwritten` or `nonfinite` elements of outputs.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compile a kernel, verify it on random inputs, and time it.

    An --arg that the function does not have is the value of a symbolic size or of a scalar parameter. The status is 1
    if outputs are wrong, not written, or NaN or infinite without a cause in the inputs.
    """
    import tile_core as tile
    from tile_core.cli.inputs import make_inputs
    from tile_core.cli.source import find, named_value
    from tile_core.ops.held_codes import held_codes
    from tile_core.plugins.manager import installed
    from tile_core.runtime.bench import time_text

    own = None if reference is None else named_value(reference)
    found = find(file, read_arguments(arg), keep_rest=True)
    options = read_options(option) or found.options_for(installed().resolve_target(target))
    with console(stderr=True).status("compiling"):
        kernel = tile.compile(found.program, target, out_idx=found.out_idx, options=options, runtime=runtime)
    inputs = make_inputs(kernel.signature, found.rest or {}, seed, held_codes(found.program))
    inputs = replace(inputs, values=_moved(kernel, inputs.values))
    with console(stderr=True).status("verifying"):
        report = kernel.verify(*inputs.values, seed=seed, reference=own, allow=allow or ())
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


def _moved(kernel: Kernel, values: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return the inputs where the kernel's runtime reaches them.

    Raises
    ------
    TargetWithoutDevice
        This machine has no device that runs the kernel.
    """
    from tile_core.abi.adapter import HOST_DEVICE
    from tile_core.errors import SetupError, UnsupportedError
    from tile_core.runtime.kernel import there

    if HOST_DEVICE in kernel.adapter.devices:
        return values
    reason = f"its runtime {kernel.adapter.name!r} cannot put arrays on one"
    if getattr(kernel.adapter, "from_host", None) is not None:
        try:
            return tuple(there(kernel.adapter, value) for value in values)
        except (SetupError, UnsupportedError) as error:
            reason = error.message
    raise TargetWithoutDevice(kernel=kernel.name, target=kernel.target, reason=reason)


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
