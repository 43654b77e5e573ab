"""Confines a process to what a kernel needs: no other files, processes, programs, or network.

A Linux seccomp filter refuses all system calls except those that compute, manage this process's memory, write to open
files, and end the process. It is a list of allowed calls, by number, so that calls added by later systems are refused
as well. Installing it takes microseconds and no privileges.
"""

from __future__ import annotations

import ctypes
import errno
import os

#: System call: its numbers on x86-64 and on arm64.
ALLOWED = {
    "read": (0, 63), "write": (1, 64), "writev": (20, 66), "pread64": (17, 67), "lseek": (8, 62), "close": (3, 57),
    "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "madvise": (28, 233),
    "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "gettimeofday": (96, 169), "getitimer": (36, 102), "setitimer": (38, 103), "timer_create": (222, 107),
    "timer_settime": (223, 110), "sched_yield": (24, 124), "futex": (202, 98), "rseq": (334, 293),
    "getrandom": (318, 278), "getpid": (39, 172), "gettid": (186, 178), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
OPEN, KILL, LIMIT, CONTROL = (257, 56), (234, 131), (302, 261), (157, 167)  # openat, tgkill, prlimit64, prctl

# Column of the numbers, and the system's name of the architecture.
_MACHINE = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}.get(os.uname().machine)
_X32 = 0x40000000  # numbers of another convention, which x86-64 takes as well
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000  # O_TMPFILE
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER, _KIND, _FIRST, _THIRD = 0, 4, 16, 32  # offsets in what a filter is given
_SET_SECCOMP, _SET_NO_NEW_PRIVILEGES, _FILTER = 22, 38, 2


class _Instruction(ctypes.Structure):
    """``struct sock_filter``."""

    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(_Instruction)))


def confine() -> bool:
    """Restrict the process to listed system calls and reading files.

    Return whether the system does so.
    """
    if _MACHINE is None:
        return False
    column, arch = _MACHINE
    rules = [(_LOAD, 0, 0, _KIND), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _DENY), (_LOAD, 0, 0, _NUMBER)]
    rules += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _DENY)]
    for numbers, offset, test, value, wanted in (
        (OPEN, _THIRD, _ANY_BIT, _WRITING, False),
        (KILL, _FIRST, _EQUAL, os.getpid(), True),
        (LIMIT, _FIRST, _EQUAL, 0, True),
        (CONTROL, _FIRST, _EQUAL, _SET_SECCOMP, True),  # a filter more takes more away
    ):
        rules += [(_EQUAL, 0, 4, numbers[column]), (_LOAD, 0, 0, offset)]
        rules += [(test, 0 if wanted else 1, 1 if wanted else 0, value)]
        rules += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _DENY)]
    for numbers in ALLOWED.values():
        rules += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ALLOW)]
    libc = ctypes.CDLL(None)
    nothing = (ctypes.c_ulong(0),) * 3
    if libc.prctl(_SET_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), *nothing):
        return False
    return _install([*rules, (_RETURN, 0, 0, _DENY)])


def close_files() -> bool:
    """Also refuse to open files; returns whether the system does so."""
    if _MACHINE is None:
        return False
    return _install([
        (_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 1, OPEN[_MACHINE[0]]), (_RETURN, 0, 0, _DENY), (_RETURN, 0, 0, _ALLOW),
    ])  # fmt: skip


def _install(rules: list[tuple[int, int, int, int]]) -> bool:
    program = (_Instruction * len(rules))(*(_Instruction(*rule) for rule in rules))
    described = ctypes.byref(_Program(len(rules), program))
    nothing = (ctypes.c_ulong(0),) * 2
    return not ctypes.CDLL(None).prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), described, *nothing)
