"""Launches that differ only in a few values: everything else is prepared once.

The driver's short form of a launch takes its grid, block and stream from memory (``CUlaunchConfig`` of cuda.h). With
arguments that are made once, calling it through ``ctypes`` takes a third of the time of ``cuLaunchKernel`` through
``cuda.bindings``, most of whose arguments are converted at each call.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tile_cuda.runtime.api import Driver, Handle
from tile_cuda.runtime.pack import SLOT

_STREAM = 32  # offset of CUlaunchConfig.hStream; 7 numbers of 4 bytes come before it
_CONFIG = 56  # bytes of CUlaunchConfig
_NO_CONTEXT = 201

Memory = tuple[bytearray, tuple[Any, ...]]
"""Memory of one launch at a time: a configuration, one slot per value, and the arguments of the driver's call.

What ``ctypes.byref`` returns is the cheapest argument, and keeps alive what it refers to.
"""


def short_launch(
    driver: Driver,
    function: Handle,
    shape: Sequence[int],
    codes: Sequence[str],
    values: Sequence[Any],
    moving: Sequence[int],
    stream: tuple[Callable[[int], Handle], dict[int, Any]],
    ordinal: int,
    otherwise: Callable[..., None],
    failed: Callable[[int], Exception],
) -> Callable[..., None] | None:
    """Return a function that launches, given the values at the moving positions; ``None`` if the driver is too old.

    Parameters
    ----------
    driver
        The driver.
    function
        What is launched; it is ready on the device.
    shape
        Grid, block and bytes of shared memory.
    codes
        Format of each value in its slot.
    values
        All values, those at moving positions being examples.
    moving
        The positions.
    stream
        What returns the current stream of a device, and the streams that threads have chosen instead of it.
    ordinal
        The device.
    otherwise
        Launches values at moving positions for a thread that has chosen a stream or works with another device.
    failed
        Makes the error for a number of the driver.
    """
    launch = driver.launch_config
    if launch is None:
        return None
    new = _memory(function, shape, codes, values, moving)
    free: list[Memory] = []
    # The stream, the two fields after it, which are zero, and the values.
    write = struct.Struct("<Q16x" + "".join(codes[i] for i in moving)).pack_into
    current, chosen = stream
    # A stream knows its device, but the default ones (0, 1, 2) are those of the current context.
    elsewhere = (lambda: driver.current() != ordinal) if driver.count() > 1 else None
    make = _maker(len(moving), elsewhere is not None)
    return make(free.pop, new, free.append, write, current, ordinal, chosen, elsewhere, launch, otherwise, failed)


def _memory(
    function: Handle, shape: Sequence[int], codes: Sequence[str], values: Sequence[Any], moving: Sequence[int]
) -> Callable[[], Memory]:
    """Return the factory of a launch's memory, with only the stream and the moving values still to be written."""
    order = [*moving, *(i for i in range(len(codes)) if i not in moving)]
    fixed = [values[i] for i in order[len(moving) :]]
    rest = struct.Struct("<" + "".join(codes[i] for i in order[len(moving) :]))
    start = _CONFIG + SLOT * len(moving)
    slots = [_CONFIG + SLOT * order.index(i) for i in range(len(codes))]
    handle = ctypes.byref(ctypes.c_char.from_address(function))  # never read: the driver's own address

    def new() -> Memory:
        memory = bytearray(_CONFIG + SLOT * len(codes))
        struct.pack_into("<7I", memory, 0, *shape)
        rest.pack_into(memory, start, *fixed)
        pinned = (ctypes.c_char * len(memory)).from_buffer(memory)
        base = ctypes.addressof(pinned)
        table = (ctypes.c_void_p * max(len(slots), 1))(*(base + slot for slot in slots))
        return memory, (ctypes.byref(pinned), handle, ctypes.byref(table), None)

    return new


@functools.cache
def _maker(count: int, devices: bool) -> Callable[..., Callable[..., None]]:
    """Return the launch function for a number of moving values, on a machine with one or with several devices."""
    given = ", ".join(f"v{i}" for i in range(count))
    space: dict[str, Any] = {"NO_CONTEXT": _NO_CONTEXT}
    test = "  if stream < 3 and elsewhere():\n   return otherwise({given})\n" if devices else ""
    exec(compile((_HEAD + test + _TAIL).format(given=given, at=_STREAM), "<a short launch>", "exec"), space)
    made: Callable[..., Callable[..., None]] = space["make"]
    return made


_HEAD = """\
def make(pop, new, put, write, current, ordinal, chosen, elsewhere, launch, otherwise, failed):
 def short({given}):
  if chosen:
   return otherwise({given})
  stream = current(ordinal)
"""

# Memory is taken from `pop` to `put`, so that threads never share it, not even while the driver runs.
_TAIL = """\
  try:
   mine = pop()
  except IndexError:
   mine = new()
  memory, arguments = mine
  write(memory, {at}, stream, {given})
  code = launch(*arguments)
  put(mine)
  if code:
   if code == NO_CONTEXT:
    return otherwise({given})
   raise failed(code)
 return short
"""
