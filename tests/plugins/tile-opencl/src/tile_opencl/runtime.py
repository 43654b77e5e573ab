"""The runtime ``pyopencl``: host arrays are copied to device buffers and back."""

from __future__ import annotations

import ctypes
import functools
import struct

import numpy as np

from tile_core.abi.adapter import RuntimeAdapter
from tile_core.errors import SetupError
from tile_opencl.target import CAPABILITIES, EXTENSIONS
from tile_runtime.texts.choose import TextChoice
from tile_runtime.texts.packing import fields_of

ARITHMETIC = ("DENORM", "INF_NAN", "ROUND_TO_NEAREST", "CORRECTLY_ROUNDED_DIVIDE_SQRT")
#: Buffers consist of whole words of this many bytes, because atomics exchange words.
WORD = 16
#: The driver whose optimizer is not used, and the option. It cuts a kernel into loops over the threads at each barrier,
#: after it has merged tests of one condition: with a barrier in a branch, PoCL 3.1 then runs the wrong threads. It also
#: takes minutes to optimize some kernels of 100 lines.
POCL = {"Portable Computing Language": "-cl-opt-disable"}


class NoDevice(SetupError):
    """There is no device that computes what kernels of this target mean."""

    code = "S851"
    template = "no OpenCL device serves target opencl: {reason}"
    remedy = "install a driver, for example apt-get install pocl-opencl-icd for the processor; `clinfo` lists devices"


class OpenClAdapter(RuntimeAdapter):
    """Launch on the first device with all features of the target."""

    name = "pyopencl"

    def load(self, artefact):
        """Return the launch of a text; it takes arrays of the host and numbers."""
        choose = TextChoice(artefact, built)
        fields = fields_of(artefact.facts, self.name)

        def launch(*values):
            program, text = choose([0 if field.pointer else values[field.position] for field in fields])
            execute(program, text.facts, fields, values)

        return launch

    def synchronize(self):
        """Nothing to wait for: a call returns when its outputs have been copied back."""


def built(text):
    """Return the program of a text, and the text."""
    import pyopencl as cl

    options = f"-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -w {POCL.get(queue().device.platform.name, '')}"
    return cl.Program(queue().context, text.text).build(options, cache_dir=False), text


def execute(program, facts, fields, values):
    """Copy arrays to the device, launch, and copy those that the kernel writes back."""
    import pyopencl as cl

    grid = facts.blocks({p.name: v for p, v in zip(facts.params, values, strict=True) if p.kind == "scalar"})
    if 0 in grid:
        return
    kernel, buffers = cl.Kernel(program, facts.entry), []  # a kernel does not keep its buffers alive
    for field, param, value in zip(fields, facts.params, values, strict=True):
        if not field.pointer:
            kernel.set_arg(field.position, struct.pack(f"<{field.code}", field.written(value)))
            continue
        memory = bytes_of(np.asarray(value))
        buffer = cl.Buffer(queue().context, cl.mem_flags.READ_WRITE, (len(memory) // WORD + 1) * WORD)
        if len(memory):
            cl.enqueue_copy(queue(), buffer, memory)
        kernel.set_arg(field.position, buffer)
        buffers.append((buffer, memory, param.access != "read" and len(memory)))
    threads = [blocks * size for blocks, size in zip(grid, facts.block, strict=True)]
    cl.enqueue_nd_range_kernel(queue(), kernel, threads, facts.block)
    for buffer, memory, written in buffers:
        if written:
            cl.enqueue_copy(queue(), memory, buffer)
    queue().finish()


def bytes_of(array):
    """Return the memory of an array from its first to its last element."""
    if not array.size:
        return np.empty(0, "uint8")
    last = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    address = array.__array_interface__["data"][0]
    return np.frombuffer((ctypes.c_uint8 * (last + array.itemsize)).from_address(address), "uint8")


@functools.cache
def queue():
    """Return the queue of the first device that serves."""
    import pyopencl as cl

    reasons = []
    try:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise NoDevice(reason=str(error)) from error
    for device in devices:
        lacks = lacking(cl, device)
        if not lacks:
            return cl.CommandQueue(cl.Context([device]))
        reasons.append(f"{device.name} lacks {', '.join(lacks)}")
    raise NoDevice(reason="; ".join(reasons) or "there is none")


def lacking(cl, device):
    """Return the features of the target that a device lacks."""
    has = device.single_fp_config
    lacks = [name for name in EXTENSIONS if name not in device.extensions.split()]
    lacks += [f"float32 with {name}" for name in ARITHMETIC if not has & getattr(cl.device_fp_config, name)]
    for holds, what in (
        (device.max_work_group_size >= CAPABILITIES.max_threads, f"groups of {CAPABILITIES.max_threads} threads"),
        (device.local_mem_size >= CAPABILITIES.shared_bytes, f"{CAPABILITIES.shared_bytes} bytes of local memory"),
        (device.endian_little, "the byte order of its host"),
        (device.compiler_available, "a compiler"),
    ):
        lacks += [] if holds else [what]
    return lacks
