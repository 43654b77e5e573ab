"""Torch without a device: a GPU's tensors are in host memory.

Scripts name ``device="cuda"`` where they make tensors. When their kernels run on the CPU or on the emulator, and torch
has no such device, the tensors must be where the kernels run.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tile_tilelang.host import every_target_name
from tile_tilelang.uncomputed import result_of


class _HostEvent:
    """A point in time, where work is done when it is queued."""

    def __init__(self, **flags: object) -> None:
        self.time = 0.0

    def record(self, stream: object = None) -> None:
        """Take the time."""
        self.time = time.perf_counter()

    def elapsed_time(self, end: _HostEvent) -> float:
        """Return the milliseconds from this event to another one."""
        return (end.time - self.time) * 1e3

    def synchronize(self) -> None:
        """Nothing to wait for."""

    wait = synchronize


def _capability() -> tuple[int, int]:
    """Return the compute capability of the target of all kernels, else 9.0."""
    found = re.search(r"sm_(\d+)(\d)", every_target_name())
    return (int(found[1]), int(found[2])) if found else (9, 0)


#: Of the device of compute capability 9.0.
_PROPERTIES = SimpleNamespace(
    name="host memory", major=9, minor=0, multi_processor_count=132, warp_size=32, total_memory=80 * 1024**3,
    shared_memory_per_block=49152, shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
    max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, L2_cache_size=50 * 1024**2,
)  # fmt: skip
_STREAM = SimpleNamespace(
    cuda_stream=0, synchronize=lambda: None, wait_stream=lambda other: None, wait_event=lambda event: None,
    record_event=lambda event=None: event or _HostEvent(),
)  # fmt: skip
#: Attributes of ``torch.cuda`` that scripts ask, and the answers.
_ANSWERS: dict[str, Callable[..., Any]] = {
    "Event": _HostEvent,
    "Stream": lambda *device, **flags: _STREAM,
    "current_device": lambda: 0,
    "current_stream": lambda device=None: _STREAM,
    "device": lambda device=None: contextlib.nullcontext(),
    "device_count": lambda: 1,
    "empty_cache": lambda: None,
    "get_device_capability": lambda device=None: _capability(),
    "get_device_name": lambda device=None: _PROPERTIES.name,
    "get_device_properties": lambda device=None: SimpleNamespace(
        **{**vars(_PROPERTIES), "major": _capability()[0], "minor": _capability()[1]}
    ),
    "init": lambda: None,
    "is_available": lambda: True,
    "manual_seed": lambda seed: None,
    "manual_seed_all": lambda seed: None,
    "max_memory_allocated": lambda device=None: 0,
    "mem_get_info": lambda device=None: (_PROPERTIES.total_memory, _PROPERTIES.total_memory),
    "memory_allocated": lambda device=None: 0,
    "reset_peak_memory_stats": lambda device=None: None,
    "set_device": lambda device: None,
    "stream": lambda stream=None: contextlib.nullcontext(),
    "synchronize": lambda device=None: None,
}


@contextlib.contextmanager
def in_host_memory(computed: bool = True) -> Iterator[None]:
    """Answer for torch's devices in a block, if torch is installed and has none.

    Without ``computed``, large tensors of torch are zeros: no element is compared where no kernel is launched.
    """
    try:
        import torch
        from torch.overrides import TorchFunctionMode
    except ImportError:
        yield
        return
    if torch.cuda.is_available():
        yield
        return

    class OnHost(TorchFunctionMode):  # type: ignore[misc]
        """Gives every function host memory for a device."""

        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            if func is torch.Tensor.cuda:
                return args[0]
            if func is torch.device:  # translated where it is used
                return func(*args, **(kwargs or {}))
            named = {k: host(v) if k == "device" else v for k, v in (kwargs or {}).items()}
            given = tuple(map(host, args))
            return func(*given, **named) if computed else result_of(func, given, named)

    def host(value: Any) -> Any:
        """Return host memory for a device, and everything else as it is."""
        name = str(value) if isinstance(value, (str, torch.device)) else ""
        return torch.device("cpu") if name.partition(":")[0] == "cuda" else value

    class Generator(torch.Generator):  # type: ignore[misc]
        """Random numbers of host memory."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, device=host(device))

    with OnHost(), contextlib.ExitStack() as answers:
        answers.enter_context(mock.patch.object(torch, "Generator", Generator))
        for name, answer in _ANSWERS.items():
            answers.enter_context(mock.patch.object(torch.cuda, name, answer))
        yield
