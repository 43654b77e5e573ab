"""The checks of ``tile doctor``, from the interpreter up to a kernel that runs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Literal

from tile_core import __version__
from tile_core.cli.requirements import requirements
from tile_core.errors import TileError
from tile_core.plugins.versions import satisfies
from tile_core.records import dataclass
from tile_runtime import knobs
from tile_runtime.compat.distributions import version_of
from tile_runtime.errors.guess import hint

Status = Literal["OK", "missing", "note"]

#: Packages that are not imported unless their version is right: a wrong one may end the process.
PINNED = ("apache-tvm", "apache-tvm-ffi")

OLDEST, UNTESTED = (3, 10), (3, 14)


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes
    ----------
    name
        The subject of the check.
    status
        ``"OK"``; ``"missing"`` if something does not work; ``"note"`` for information.
    detail
        The finding.
    remedy
        One thing to do; empty if all is well.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""


def core_checks() -> Generator[Check, None, bool]:
    """Yield the checks of the interpreter, the core and its dependencies.

    Return whether TVM can be imported.
    """
    yield python()
    yield Check("tile-core", "OK", f"{version_of('tile-core') or __version__ + ' (from source)'}")
    packages = list(distributions())
    yield from packages
    if any(c.status == "missing" and c.name in PINNED for c in packages):
        yield Check("self-test", "note", "not run: first correct the versions above")
        return False
    loaded = tvm_loads()
    yield loaded
    if loaded.status == "missing":
        return False
    yield caught("processor", processor)
    yield threads()
    yield caught("self-test", self_test)
    return True


def python() -> Check:
    """Check the interpreter's version."""
    found = (
        f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()} {platform.machine()})"
    )
    if sys.version_info < OLDEST:
        return Check("Python", "missing", found, "use Python 3.10 to 3.13")
    if sys.version_info >= UNTESTED:
        return Check("Python", "note", f"{found}; newer than the tested versions", "use Python 3.10 to 3.13")
    return Check("Python", "OK", found)


def distributions() -> Iterator[Check]:
    """Compare each dependency with its bounds by metadata: a wrong one may crash when imported."""
    for name, bounds in requirements().items():
        found = version_of(name)
        remedy = f'pip install "{name}{bounds}"'
        if found is None:
            yield Check(name, "missing", f"not installed; expected {bounds}", remedy)
        elif not satisfies(found, bounds):
            # The pins of TVM are exact, and other packages pin them too.
            owner = "; another package may need that version: use a separate environment" if "==" in bounds else ""
            yield Check(name, "missing", f"{found} clashes with tile-core {__version__}, which needs {bounds}",
                        remedy + owner)  # fmt: skip
        else:
            yield Check(name, "OK", f"{found} (needs {bounds})")
    if not requirements():
        yield Check(
            "dependencies",
            "note",
            "their bounds are not known: no metadata",
            "pip install packages/tile-runtime packages/tile-core",
        )


def tvm_loads() -> Check:
    """Import TVM in a process of its own, since a damaged installation may abort it."""
    code = "import sys; sys.path[:] = sys.argv[1:]; from tile_core.compat.tvm import tvm; print(tvm.__version__)"
    done = subprocess.run([sys.executable, "-c", code, *sys.path], capture_output=True, text=True)
    if done.returncode == 0:
        return Check("import of TVM", "OK", done.stdout.strip())
    lines = done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"]
    remedy = "pip install --force-reinstall apache-tvm apache-tvm-ffi at the versions above"
    return Check("import of TVM", "missing", lines[-1], remedy)


def processor() -> Check:
    """Check the CPU backend."""
    from tile_core.plugins.manager import installed

    target = installed().resolve_target("cpu")
    capabilities = target.capabilities
    isa = capabilities.extra.get("isa", "unknown")
    widest = max(capabilities.vector_bytes, default=0) * 8
    return Check("processor", "OK", f"{target.text}, instruction set {isa}, vectors of {widest} bits")


def threads() -> Check:
    """Count the cores that kernels on the host may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [f"{name}={os.environ[name]}" for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS") if name in os.environ]
    return Check("threads", "OK", ", ".join([f"{cores} cores are usable", *limits]))


def self_test() -> Check:
    """Compile and run a small kernel with tails; compare with its reference and float64."""
    import numpy as np

    import tile_core as tile
    from tile_core.cli.demo_kernel import matmul

    kernel = tile.compile(matmul(37, 29, 51, 16, 16, 16), "cpu", out_idx=-1)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((37, 51), dtype="float32"), rng.standard_normal((51, 29), dtype="float32")
    kernel.verify(a, b)
    error = float(np.abs(kernel(a, b) - a.astype("float64") @ b.astype("float64")).max())
    if not error < 1e-4:
        return Check("self-test", "missing", f"a GEMM is wrong by {error}", "report it with the output of this command")
    return Check("self-test", "OK", f"a GEMM of 37 x 29 x 51 compiled, ran and is right (largest error {error:.1e})")


def caught(name: str, check: Callable[[], Check]) -> Check:
    """Return the outcome of a check; an error that it raises is one."""
    try:
        return check()
    except TileError as error:
        return Check(name, "missing", f"[{error.code}] {error.message}", error.help)
    except Exception as error:
        remedy = "report it with the output of this command"
        return Check(name, "missing", f"{type(error).__name__}: {error}", remedy)


def settings() -> Iterator[Check]:
    """Read the ``TILE_*`` variables; unknown ones have no effect, which is worth knowing."""
    from tile_core.plugins.manager import Plugins, installed

    try:
        now = knobs.current()
    except TileError as error:
        yield Check("settings", "missing", error.message, error.help)
        return
    changed = [f"{knobs.PREFIX}{k.upper()}={v}" for k, v in vars(now).items() if v != getattr(knobs.Knobs(), k)]
    yield Check("settings", "OK", ", ".join(changed) or "all at their defaults")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        knobs.check_environment(installed().names())
    for warning in caught:
        yield Check("settings", "note", str(warning.message), "correct or unset it")
    there = Plugins().all_names() if now.disable_backends else ()
    for name in now.disable_backends:
        if name not in there:
            detail = f"TILE_DISABLE_BACKENDS names {name!r}, which is not installed"
            yield Check("settings", "note", detail, hint(name, there, "correct or unset it", "'{}'"))
