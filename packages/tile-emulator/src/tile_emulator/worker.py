"""The process of a kernel: reads a job, maps arrays, calls the engine, exits.

Started by a fresh Python with only the standard library, so that it cannot harm the caller's process, and with few of
its modules: a kernel of a test runs for some milliseconds, and ``json``, ``signal`` and ``typing`` take ten to import.
Before the kernel runs, it drops its privileges, see ``confine.py``. The job is on the standard input, as ``marshal``
writes it; the structures are those of ``engine/core.h``.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import sys

import confine  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Dim3(ctypes.Structure):
    """``simt::Dim3``."""

    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class MappedBuffer(ctypes.Structure):
    """``simt::Buffer``."""

    _fields_ = (
        ("file_offset", ctypes.c_ulonglong), ("mapped", ctypes.c_ulonglong), ("start", ctypes.c_ulonglong),
        ("bytes", ctypes.c_ulonglong), ("flags", ctypes.c_uint), ("pad", ctypes.c_uint), ("address", ctypes.c_void_p),
    )  # fmt: skip


class Argument(ctypes.Structure):
    """``simt::Argument``."""

    _fields_ = (("buffer", ctypes.c_uint), ("pad", ctypes.c_uint), ("offset", ctypes.c_ulonglong))


class Patch(ctypes.Structure):
    """``simt::Patch``."""

    _fields_ = (("buffer", ctypes.c_uint), ("target", ctypes.c_uint), ("offset", ctypes.c_ulonglong))


class Watch(ctypes.Structure):
    """``simt::Watch``."""

    _fields_ = (("buffer", ctypes.c_uint), ("pad", ctypes.c_uint), ("offset", ctypes.c_ulonglong))


class LaunchJob(ctypes.Structure):
    """``simt::Launch``."""

    _fields_ = (
        ("entry", ctypes.c_void_p), ("grid", Dim3), ("threads", Dim3), ("clusters", Dim3), ("cluster", ctypes.c_uint),
        ("warp", ctypes.c_uint), ("shared_bytes", ctypes.c_uint), ("options", ctypes.c_uint),
        ("max_reports", ctypes.c_uint), ("stack_bytes", ctypes.c_uint), ("milliseconds", ctypes.c_uint),
        ("data", ctypes.c_int), ("reports", ctypes.c_int), ("output", ctypes.c_int), ("seed", ctypes.c_ulonglong),
        ("output_bytes", ctypes.c_ulonglong), ("buffers_n", ctypes.c_uint), ("args_n", ctypes.c_uint),
        ("patches_n", ctypes.c_uint), ("watches_n", ctypes.c_uint), ("buffers", ctypes.POINTER(MappedBuffer)),
        ("args", ctypes.POINTER(Argument)), ("patches", ctypes.POINTER(Patch)), ("watches", ctypes.POINTER(Watch)),
        ("static_low", ctypes.c_void_p), ("static_high", ctypes.c_void_p),
    )  # fmt: skip


def _limit(kind: int, value: int) -> None:
    """Set a limit of this process, within the one that it was started with."""
    most = resource.getrlimit(kind)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, value))


def main() -> None:
    """Run the job; the engine ends the process."""
    job: dict[str, Any] = marshal.load(sys.stdin.buffer)
    _limit(resource.RLIMIT_CORE, 0)
    # Writing beyond it fails: Python ignores the signal that would end the process.
    _limit(resource.RLIMIT_FSIZE, job["file_bytes"])
    _limit(resource.RLIMIT_AS, job["memory_bytes"])
    engine = ctypes.CDLL(job["engine"], mode=ctypes.RTLD_GLOBAL)
    # Loading a library runs code of it.
    confined = confine.confine()
    kernel = ctypes.CDLL(job["kernel"])
    confined = confined and confine.close_files()
    os.write(job["reports"], b'{"confined": %s}\n' % (b"true" if confined else b"false"))
    for name in ("simt_static_low", "simt_static_high"):
        getattr(kernel, name).restype = ctypes.c_void_p
    buffers = (MappedBuffer * max(1, len(job["buffers"])))(*(MappedBuffer(*b) for b in job["buffers"]))
    args = (Argument * max(1, len(job["args"])))(*(Argument(b, 0, offset) for b, offset in job["args"]))
    patches = (Patch * max(1, len(job["patches"])))(*(Patch(*p) for p in job["patches"]))
    watches = (Watch * max(1, len(job["watches"])))(*(Watch(b, 0, offset) for b, offset in job["watches"]))
    launch = LaunchJob(
        entry=ctypes.cast(kernel.simt_entry, ctypes.c_void_p).value,
        grid=Dim3(*job["grid"]), threads=Dim3(*job["block"]), clusters=Dim3(*job["clusters"]),
        data=job["data"], reports=job["reports"], output=1,
        buffers_n=len(job["buffers"]), args_n=len(job["args"]), patches_n=len(job["patches"]),
        watches_n=len(job["watches"]),
        buffers=buffers, args=args, patches=patches, watches=watches,
        static_low=kernel.simt_static_low(), static_high=kernel.simt_static_high(),
        **job["launch"],
    )  # fmt: skip
    engine.simt_launch(ctypes.byref(launch))
