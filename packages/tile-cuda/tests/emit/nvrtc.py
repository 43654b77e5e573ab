"""Compiles text for a device that need not be there."""

from __future__ import annotations

from typing import Any

import pytest

ARCHITECTURES = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")


def assemble(text: str, arch: str) -> str:
    """Return the compiler's messages about a text; empty if there are none."""
    nvrtc: Any = pytest.importorskip("cuda.bindings.nvrtc")
    error, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    assert int(error) == 0
    options = [f"-arch={arch}".encode(), b"-std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    size = nvrtc.nvrtcGetProgramLogSize(program)[1]
    log = bytearray(size)  # never bytes, which Python shares: all that are b" " would change
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    said = log.decode().strip("\0 \n")
    # On sm_120a the assembler accepts multicast and advises against it, as it may be slow: the code is right.
    said = "\n".join(line for line in said.splitlines() if "Advisory: '.multicast::cluster'" not in line)
    # The assembler reports problems of matrix products of warpgroups, C75.., as mere information.
    return said if int(error) or "warning" in said or "(C75" in said else ""


def ptx_of(text: str, arch: str) -> str:
    """Return the PTX of an accepted text, before the assembler."""
    nvrtc: Any = pytest.importorskip("cuda.bindings.nvrtc")
    program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])[1]
    options = [f"-arch={arch}".encode(), b"-std=c++17"]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert int(error) == 0, text
    made = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, made)
    nvrtc.nvrtcDestroyProgram(program)
    return made.decode().strip("\0")
