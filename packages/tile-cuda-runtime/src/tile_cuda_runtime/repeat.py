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

from tile_cuda_runtime.api import Driver, Handle
from tile_runtime.calls.repeat import Repeat
from tile_runtime.texts.constants import ByValue
from tile_runtime.types import Argument

_STREAM = 32  # offset of CUlaunchConfig.hStream; 7 numbers of 4 bytes come before it
_CONFIG = 56  # bytes of CUlaunchConfig
_NO_CONTEXT = 201

Memory = tuple[bytearray, tuple[Any, ...]]
"""Memory of one launch at a time: a configuration, a slot for each value and constant, and the arguments of the call.

What ``ctypes.byref`` returns is the cheapest argument, and keeps alive what it refers to.
"""


def short_launch(
    driver: Driver,
    function: Handle,
    shape: Sequence[int],
    codes: Sequence[str],
    values: Sequence[Argument],
    moving: Sequence[int],
    constants: Sequence[tuple[int, ByValue]],
    stream: tuple[Callable[[int], Handle], dict[int, Any]],
    ordinal: int,
    otherwise: Callable[..., None],
    failed: Callable[[int], Exception],
    attributes: int = 0,
) -> Repeat | None:
    """Return launches with changing values at some positions; ``None`` with an old driver.

    Parameters
    ----------
    driver
        The driver.
    function
        What is launched; it is ready on the device.
    shape
        Grid, block and bytes of shared memory.
    codes
        Format of each value in its slot, those of constants last.
    values
        All values that a call passes, those at moving positions being examples.
    moving
        The positions.
    constants
        For each constant, whose values follow the others, the position of the value that decides it, and its bytes by
        that value.
    stream
        What returns the current stream of a device, and the streams that threads have chosen instead of it.
    ordinal
        The device.
    otherwise
        Launches values at moving positions for a thread that has chosen a stream or works with another device.
    failed
        Makes the error for a number of the driver.
    attributes
        Address of the launch's attribute; 0 for none.
    """
    launch = driver.launch_config
    if launch is None:
        return None
    known = [of[int(values[at])] for at, of in constants]
    decided = [(moving.index(at), len(values) + i, of) for i, (at, of) in enumerate(constants) if at in moving]
    written = [*moving, *(at for _, at, _ in decided)]
    new = _memory(function, shape, codes, [*values, *known], written)
    free: list[Memory] = []
    # The stream, the two fields after it, for attributes, and the values.
    write = struct.Struct(("<QQQ" if attributes else "<Q16x") + "".join(codes[i] for i in written)).pack_into
    # A stream belongs to a device, but the default ones (0, 1, 2) are those of the current context.
    elsewhere = (lambda: driver.current() != ordinal) if driver.count() > 1 else None
    make = _maker(len(moving), tuple(at for at, _, _ in decided), elsewhere is not None, attributes)
    given = stream[0], ordinal, stream[1], elsewhere, launch, otherwise, failed
    short, prepare, again = make(free.pop, new, free.append, write, *given, [of for _, _, of in decided])
    return Repeat(short, (), prepare, again)


def _memory(
    function: Handle, shape: Sequence[int], codes: Sequence[str], values: Sequence[Argument], moving: Sequence[int]
) -> Callable[[], Memory]:
    """Return the factory of a launch's memory, which leaves the stream and moving values open."""
    order = [*moving, *(i for i in range(len(codes)) if i not in moving)]
    fixed = [values[i] for i in order[len(moving) :]]
    rest = struct.Struct("<" + "".join(codes[i] for i in order[len(moving) :]))
    sizes = [struct.calcsize("<" + codes[i]) for i in order]
    start = _CONFIG + sum(sizes[: len(moving)])
    slots = [_CONFIG + sum(sizes[: order.index(i)]) for i in range(len(codes))]
    handle = ctypes.byref(ctypes.c_char.from_address(function))  # never read: the driver's own address

    def new() -> Memory:
        memory = bytearray(_CONFIG + sum(sizes))
        struct.pack_into("<7I", memory, 0, *shape)
        rest.pack_into(memory, start, *fixed)
        pinned = (ctypes.c_char * len(memory)).from_buffer(memory)
        base = ctypes.addressof(pinned)
        table = (ctypes.c_void_p * max(len(slots), 1))(*(base + slot for slot in slots))
        return memory, (ctypes.byref(pinned), handle, ctypes.byref(table), None)

    return new


@functools.cache
def _maker(
    count: int, deciding: tuple[int, ...], devices: bool, attributes: int = 0
) -> Callable[..., tuple[Callable[..., Any], ...]]:
    """Return a factory of the launch functions for a number of moving values.

    One function launches, one prepares a launch, and one launches what was prepared, if the stream is still the same.
    The text differs between machines with one and with several devices.

    ``deciding`` has the number of the value that decides a constant, for each that moves. ``attributes`` is the address
    of the launch's attribute, if it has one.
    """
    given = "".join(f"v{i}, " for i in range(count)).rstrip(" ")
    constants = "".join(f" b{i}[v{at}]," for i, at in enumerate(deciding))
    take = "".join(f" b{i} = bytes_of[{i}]\n" for i in range(len(deciding)))
    space: dict[str, Any] = {"NO_CONTEXT": _NO_CONTEXT}
    test = "  if stream < 3 and elsewhere():\n   return otherwise({given})\n" if devices else ""
    fixed = f"{attributes}, 1, " if attributes else ""
    text = _HEAD + test + _TAIL + _PREPARED.replace("{test}", test.replace("({given})", "(*key)"))
    code = text.format(given=given, key=given or "()", at=_STREAM, constants=constants, take=take, fixed=fixed)
    exec(compile(code, "<a short launch>", "exec"), space)
    made: Callable[..., tuple[Callable[..., Any], ...]] = space["make"]
    return made


_HEAD = """\
def make(pop, new, put, write, current, ordinal, chosen, elsewhere, launch, otherwise, failed, bytes_of):
{take} def short({given}):
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
  write(memory, {at}, stream, {fixed}{given}{constants})
  code = launch(*arguments)
  put(mine)
  if code:
   if code == NO_CONTEXT:
    return otherwise({given})
   raise failed(code)
"""

# What is prepared is never written again, so that threads may share it.
_PREPARED = """\
 def prepare(key):
  {key} = key
  stream = current(ordinal)
  memory, arguments = new()
  write(memory, {at}, stream, {fixed}{given}{constants})
  return stream, *arguments
 def again(ready, key):
  was, config, function, values, extra = ready
  if chosen:
   return otherwise(*key)
  stream = current(ordinal)
  if stream != was:
   return short(*key)
{test}  code = launch(config, function, values, extra)
  if code:
   if code == NO_CONTEXT:
    return otherwise(*key)
   raise failed(code)
 return short, prepare, again
"""
