"""From source to machine code with NVRTC, without a driver, a device or ``nvcc``.

Text is compiled without contraction of multiplications and additions unless the options allow it, so that results are
as written; a text that needs a fused operation calls one.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import importlib.util
import math
import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.errors.base import Where
from tile_core.errors.launch import TextRefused
from tile_core.records import dataclass
from tile_core.reports.slow import warn_of_build
from tile_cuda.line_tables import with_user_lines
from tile_cuda.occupancy import most_registers
from tile_cuda.options import CudaOptions
from tile_cuda_runtime.errors import NVRTC, NoNvrtc
from tile_runtime.errors.interrupts import passed_on

FILE = "kernel.cu"
"""What the compiler calls the text."""


@dataclass(frozen=True)
class Cubin:
    """Machine code of one text for one architecture.

    Attributes
    ----------
    data
        The file that the driver loads.
    arch
        What it was built for, for example ``"sm_90a"``.
    registers
        Registers of a thread.
    spill_bytes
        Bytes that a thread writes because it has too few registers.
    stack_bytes
        Bytes of a thread's own memory, spilled registers and arrays with computed indices.
    shared_bytes
        Bytes of shared memory that the text declares itself.
    serialized_products
        How many asynchronous products the assembler reports as serialized: each is waited for at once.
    """

    data: bytes = field(repr=False)
    arch: str
    registers: int = 0
    spill_bytes: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    serialized_products: int = 0

    def facts(self) -> dict[str, int]:
        """Return the numbers, for reports and for keeping them with the code."""
        names = ("registers", "spill_bytes", "stack_bytes", "shared_bytes", "serialized_products")
        return {name: getattr(self, name) for name in names}


def build(kernel: KernelText, arch: str) -> Cubin:
    """Compile a text for an architecture; the same text is compiled once per process.

    Parameters
    ----------
    kernel
        The text. Its attributes may hold those of `CudaOptions`.
    arch
        For example ``"sm_90a"``; any that NVRTC supports.

    Raises
    ------
    NoNvrtc
        NVRTC is not installed, or is too old for the architecture.
    TextRefused
        NVRTC or the assembler refuses the text; the error has the line of the user's kernel that it comes from.
    """
    options = _options(kernel.facts)
    text = with_user_lines(kernel, FILE) if options.line_info is True else kernel.text
    made = _cubin(text, arch, options)
    if isinstance(made, Cubin):
        return _with_more_registers(made, kernel, text, options)
    if text is not kernel.text:  # for the line of the text
        made = _cubin(kernel.text, arch, options)
    assert isinstance(made, _Refusal), "directives are not refused"
    where, location = _location(kernel, made.line)
    compiler = f"the compiler for {arch}"
    raise TextRefused(kernel=kernel.facts.kernel, compiler=compiler, part=location, reason=made.reason, where=where)


def code_of(kernel: KernelText, arch: str) -> bytes:
    """Compile a text that is launched, and warn if the code is slow."""
    made = build(kernel, arch)
    warn_of_build(kernel.facts.kernel, f"cuda:{arch}", made.facts())
    return made.data


def _with_more_registers(made: Cubin, kernel: KernelText, text: str, options: CudaOptions) -> Cubin:
    """Return the code with the fewest spills: one block per SM if registers are free.

    Seen with NVRTC 13.5: blocks of 512 threads that need more than the 128 registers that each can have got 32, and
    2,844 bytes spilled where 424 do; on an H100 such products took 24 to 130 times as long as the best.
    """
    threads = math.prod(kernel.facts.block)
    bounds, one_block = f"__launch_bounds__({threads}) ", f"__launch_bounds__({threads}, 1) "
    if not made.spill_bytes or made.registers >= most_registers(threads) or bounds not in text:
        return made
    again = _cubin(text.replace(bounds, one_block), made.arch, options)
    return again if isinstance(again, Cubin) and again.spill_bytes < made.spill_bytes else made


def _options(facts: LaunchFacts) -> CudaOptions:
    """Return the compiler options of a text; blocks of one thread use assembler level 1.

    From level 2 on ptxas loses registers where bytes of one wide store are read again, which only one thread does
    without a barrier: seen on an H200 with ptxas 13.0.88 and the one of NVRTC 13.5.37, a running maximum of bytes
    (``tests/device/test_one_thread.py``). Such blocks are never fast.
    """
    options = CudaOptions.from_attributes(facts.attributes)
    return dataclasses.replace(options, opt=min(options.opt, 1)) if math.prod(facts.block) == 1 else options


def flags(arch: str, options: CudaOptions) -> tuple[str, ...]:
    """Return the command line of NVRTC."""
    found = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--disable-warnings",
        # NVRTC's own cache lacks the assembler's register counts; `tile_core.runtime.cache` keeps the rest.
        "--no-cache",
        "--ptxas-options=--verbose",
        "--use_fast_math" if options.is_fast else f"--fmad={'false' if options.is_strict else 'true'}",
    ]
    if options.max_registers is not None:
        found.append(f"--maxrregcount={options.max_registers}")
    if options.line_info:
        found.append("--generate-line-info")
    if options.opt != CudaOptions().opt:
        found.append(f"--ptxas-options=-O{options.opt}")
    folder = headers()
    if folder is not None:
        found.append(f"--include-path={folder}")
    return tuple(found)


def headers() -> Path | None:
    """Return the folder of NVIDIA's headers from the wheel ``nvidia-cuda-runtime``; emitted text needs none."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for folder in sorted(Path(root).glob("cu*/include"), reverse=True):
            if (folder / "cuda_runtime.h").exists():
                return folder
    return None


_version_of = functools.cache(importlib.metadata.version)


def toolchain() -> str:
    """Return the versions of the build tools; empty if NVRTC is not installed. Loads nothing."""
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13"):
        try:
            return f"nvrtc {_version_of(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        return f"nvrtc {version()}"
    except NoNvrtc:
        return ""


@functools.cache
def version() -> str:
    """Return the version of NVRTC that is loaded, for example ``"13.5"``.

    Raises
    ------
    NoNvrtc
        There is none.
    """
    _, major, minor = nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


@functools.cache
def known_archs() -> tuple[int, ...]:
    """Return the architectures that NVRTC supports, ascending."""
    _, found = nvrtc().nvrtcGetSupportedArchs()
    return tuple(int(number) for number in found)


def nvrtc(target: str = "cuda") -> Any:
    """Return ``cuda.bindings.nvrtc`` with its library loaded.

    Raises
    ------
    NoNvrtc
        One of the two is not installed.
    """
    try:
        from cuda.bindings import nvrtc as bound
    except ImportError as error:
        advice = 'pip install "cuda-python>=13,<14" "nvidia-cuda-nvrtc>=13,<14"'
        raise NoNvrtc(target=target, reason=f"cuda-python cannot be imported ({error})", advice=advice) from error
    try:
        bound.nvrtcVersion()
    except Exception as error:  # whatever the search for a library ends with
        passed_on(error)
        reason = f"the library NVRTC is not found ({str(error).splitlines()[0]})"
        raise NoNvrtc(target=target, reason=reason, advice=NVRTC) from error
    return bound


@dataclass(frozen=True)
class _Refusal:
    """An NVRTC message and its line of the text (0: none)."""

    line: int
    reason: str


@functools.lru_cache(maxsize=256)
def _cubin(text: str, arch: str, options: CudaOptions) -> Cubin | _Refusal:
    number = int(re.sub(r"\D", "", arch))
    if number not in known_archs():
        shown = ", ".join(f"sm_{n}" for n in known_archs())
        reason = f"NVRTC {version()} supports {shown}"
        raise NoNvrtc(target=f"cuda:{arch}", reason=reason, advice="pip install --upgrade nvidia-cuda-nvrtc")
    status, log, code = _run(text, flags(arch, options), "CUBIN")
    if status == 0:
        return Cubin(code, arch, **_numbers(log))
    return _refusal(text, log, arch, options)


def _run(text: str, arguments: Sequence[str], wanted: str) -> tuple[int, str, bytes]:
    """Compile; return the status, the log, and the file."""
    bound = nvrtc()
    _, program = bound.nvrtcCreateProgram(text.encode(), FILE.encode(), 0, [], [])
    try:
        (status,) = bound.nvrtcCompileProgram(program, len(arguments), [a.encode() for a in arguments])
        log = _read(program, bound.nvrtcGetProgramLogSize, bound.nvrtcGetProgramLog).rstrip(b"\0 ")
        code = b""
        if int(status) == 0:
            code = _read(program, getattr(bound, f"nvrtcGet{wanted}Size"), getattr(bound, f"nvrtcGet{wanted}"))
        return int(status), log.decode(errors="replace"), code
    finally:
        bound.nvrtcDestroyProgram(program)


def _read(program: Any, size_of: Any, read: Any) -> bytes:
    _, size = size_of(program)
    content = bytearray(size)  # it is written in place, and Python may share objects of type bytes
    read(program, content)
    return bytes(content)


_NUMBERS = {
    "registers": r"Used (\d+) registers",
    "spill_bytes": r"(\d+) bytes spill stores",
    "stack_bytes": r"(\d+) bytes stack frame",
    "shared_bytes": r"(\d+) bytes smem",
}

#: "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
_SERIALIZED = r"wgmma\.mma_async instructions are serialized"


def _numbers(log: str) -> dict[str, int]:
    found = {name: re.search(pattern, log) for name, pattern in _NUMBERS.items()}
    numbers = {name: int(match[1]) for name, match in found.items() if match is not None}
    return {**numbers, "serialized_products": len(re.findall(_SERIALIZED, log))}


def _refusal(text: str, log: str, arch: str, options: CudaOptions) -> _Refusal:
    """Read the first error of a log."""
    front = re.search(rf"^{re.escape(FILE)}\((\d+)\): (?:catastrophic )?error: (.*)$", log, re.MULTILINE)
    if front is not None:
        return _Refusal(int(front[1]), front[2])
    if re.search(r"ptxas application ptx input, line \d+; error", log):
        again = dataclasses.replace(options, line_info=True)
        _, log, _ = _run(text, flags(arch, again), "CUBIN")
        error = re.search(r"ptxas application ptx input, line (\d+); error\s*: (.*)$", log, re.MULTILINE)
        if error is not None:
            virtual = flags(arch.replace("sm_", "compute_"), again)
            _, _, ptx = _run(text, virtual, "PTX")
            return _Refusal(_line_of(ptx.decode(errors="replace"), int(error[1])), error[2])
    error = re.search(r"^ptxas (?:error|fatal)\s*: (.*)$|^.*\berror\b[^:]*: (.*)$", log, re.MULTILINE)
    return _Refusal(0, (error[1] or error[2]) if error is not None else log.strip() or "no message")


def _line_of(ptx: str, line: int) -> int:
    """Return the source line of a line of assembly; the call's line in inlined functions."""
    for above in reversed(ptx.splitlines()[:line]):
        directive = re.match(r"\s*\.loc\s+\d+\s+(\d+)", above)
        if directive is not None:
            call = re.search(r"inlined_at\s+\d+\s+(\d+)", above)
            return int(call[1] if call is not None else directive[1])
    return 0


def _location(kernel: KernelText, line: int) -> tuple[Where | None, str]:
    """Return the location in the user's source and the line of the text, if known."""
    lines = kernel.text.splitlines()
    if not 1 <= line <= len(lines):
        return kernel.facts.where, "the text"
    where = kernel.facts.line_map.where(line) or kernel.facts.where
    return where, f"line {line} of the text, `{lines[line - 1].strip()}`"
