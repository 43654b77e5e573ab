"""The machine a library launches on, and whether kernels run correctly there.

Every adapter checks before the first launch of a kernel. A text may compile on a machine that computes other results,
so the check is never left to Metal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.abi.kernel_text import LaunchFacts
from tile_metal import versions
from tile_metal.errors import LibraryTooOld, MachineLacks
from tile_metal.target import BASELINE, KIND, RECORDS
from tile_metal.versions import Machine, Version

if TYPE_CHECKING:
    from tile_core.target import Target


def check_machine(facts: LaunchFacts, target: Target, library: str, module: Any, system: Version) -> None:
    """Refuse a kernel that this machine or library would compute wrongly.

    Parameters
    ----------
    facts
        Of the text.
    target
        What it was compiled for.
    library, module
        Which launches it, ``"mlx"`` or ``"torch"``.
    system
        Version of macOS.

    Raises
    ------
    MachineLacks
        System or GPU are older than the target.
    LibraryTooOld
        The library does not compile the version of MSL that the text is written in.
    """
    record, machine = RECORDS[target.arch], machine_of(library, module, system)
    needed = record.lacks(machine)
    if needed:
        oldest = versions.shown(versions.first(versions.SYSTEM, f"MSL {versions.shown(RECORDS[BASELINE].language)}"))
        runs = not RECORDS[BASELINE].lacks(machine)
        nearest = f'target="{KIND}", which this machine runs' if runs else f"macOS {oldest} or later"
        shown = {"kernel": facts.kernel, "target": target.text, "needed": needed, "found": machine, "nearest": nearest}
        raise MachineLacks(where=facts.where, **shown)
    version = str(getattr(module, "__version__", ""))
    if versions.compiled_language(library, versions.version_of(version), system) < record.language:
        function = f"compilation as MSL {versions.shown(record.language)}"
        shown = {"kernel": facts.kernel, "library": library, "version": version, "function": function}
        raise LibraryTooOld(target=target.text, where=facts.where, **shown)


def check_products(facts: LaunchFacts, target: Target, wrong: int) -> None:
    """Reject tensor operations on machines where a known product is wrong, see ``probe.py``.

    Raises
    ------
    MachineLacks
        It had.
    """
    if wrong:
        shown = {"kernel": facts.kernel, "target": target.text, "nearest": f'target="{KIND}", which this machine runs'}
        found = f"another one: {wrong} elements of a product of 16 x 32 came out wrong"
        needed = "the arrangement of cooperative tensors that GPUs of generation 17 have"
        raise MachineLacks(needed=needed, found=found, where=facts.where, **shown)


def machine_of(library: str, module: Any, system: Version) -> Machine:
    """Return the machine on which a library launches.

    It is the library's report, else the machine of the chip's name.
    """
    name = architecture(module) if library == "mlx" else device_name(module)
    found = versions.machine_of(name, system) if library == "mlx" else versions.machine_with(name, system)
    return found if name else versions.machine_with(versions.chip(), system)


def device_info(mx: Any) -> dict[str, Any]:
    """Return MLX's device information, or an empty mapping."""
    new, old = getattr(mx, "device_info", None), getattr(getattr(mx, "metal", None), "device_info", None)
    try:
        if new is not None:  # without an argument that of the default device, which may be the processor
            return dict(new(mx.gpu))
        return dict(old()) if old is not None else {}
    except (RuntimeError, ValueError):
        return {}


def architecture(mx: Any) -> str:
    """Return the GPU architecture, for example ``applegpu_g17s``, or an empty string."""
    return str(device_info(mx).get("architecture", ""))


def device_name(torch: Any) -> str:
    """Return the name of the device ``mps``, for example ``Apple M5 Max``, if known."""
    get = getattr(torch.backends.mps, "get_name", None)
    return str(get()) if get is not None else ""
