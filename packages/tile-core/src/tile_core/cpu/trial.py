"""Trial code generation in a separate process where LLVM is not known to survive.

LLVM ends the process over code for which it has no instructions. ``python -m tile_core.cpu.trial`` reads a function and
a processor, and generates the code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys

from tile_core.compat.structural import op_name
from tile_core.compat.tvm import ir, tvm
from tile_core.compat.types import PrimFunc
from tile_core.cpu.build import ENTRY, build
from tile_core.cpu.isa import Isa
from tile_core.errors import InternalError
from tile_core.errors.lowering import CodeGenerationEnded
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.manifest import fingerprint_of
from tile_core.runtime import cache

__all__ = ["try_to_compile"]

#: Seconds after which a trial counts as failed.
LONGEST = 300
#: Exit status of a trial that ended with an error of the catalogue, which the caller then meets itself.
_REFUSED = 3


def try_to_compile(func: PrimFunc, isa: Isa, target: str) -> None:
    """Generate the code of a lowered function in another process, unless that was done before.

    Raises
    ------
    CodeGenerationEnded
        The process ended.
    """
    operators = sorted({n for c in collect(func.body, ir.Call) if (n := op_name(c)).startswith("tile.")})
    job = json.dumps([dataclasses.asdict(isa), operators, str(tvm.ir.save_json(func))])
    facts = f"{fingerprint_of('tile_core', 'tile-core')} {tvm.__version__} {job}"
    key = hashlib.sha256(facts.encode()).hexdigest()[:40]
    if cache.enabled() and cache.read(key, cache.TRIALS) is not None:
        return
    if reason := _ended(job):
        raise CodeGenerationEnded(target=target, reason=reason)
    if cache.enabled():
        cache.write(key, b"well", cache.TRIALS)


def _ended(job: str) -> str:
    """Run a trial; return why it ended, or nothing."""
    command = [sys.executable, "-m", "tile_core.cpu.trial"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run(
            command, input=job, env=environment, capture_output=True, text=True, errors="replace", timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"no code after {LONGEST} s"
    except OSError as error:
        return f"no process to try it in: {error.strerror or error}"
    if done.returncode in (0, _REFUSED):
        return ""
    said = [line for line in done.stderr.splitlines() if line.startswith("LLVM ERROR")]
    if done.returncode < 0:
        with contextlib.suppress(ValueError):
            said.append(signal.Signals(-done.returncode).name)
    return "; ".join(said) or f"exit status {done.returncode}"


def _main() -> None:
    described, operators, text = json.loads(sys.stdin.read())
    for name in operators:
        nodes.register_scalar_op(name)
    isa = Isa(**{**described, **{name: tuple(described[name]) for name in ("mattr", "features")}})
    try:
        build(tvm.ir.load_json(text), isa)[ENTRY]
    except InternalError:
        sys.exit(_REFUSED)


if __name__ == "__main__":
    _main()
