"""The contract between a compiled kernel and the runtime that launches it.

A backend offers adapters through the hook ``tile_runtimes``. The order of events is:

1. ``load(artefact)`` once per kernel: make the binary callable. It may start a driver and fail with a ``SetupError``.
2. The binder (`calls.binder`) checks the arguments of each call against the signature, without the adapter.
3. The launch callable from step 1, once per call, with checked arguments (see ``RuntimeAdapter.load``).
4. ``synchronize()`` only when time is measured or results are compared, never by an ordinary call.

A runtime whose compilation is slow can have the result cached on disk and in exported files. It then implements
``toolchain()``, and ``build(artefact)`` comes before step 1: its result is the ``built`` of the text passed to
``load``. A kernel found on disk is loaded without running passes, emitting text, or calling ``build``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from tile_runtime.records import dataclass
from tile_runtime.types import Argument, Array

Convention = Literal["packed", "pointers"]

HOST_DEVICE = 1
"""The DLPack device type of host memory (``kDLCPU``)."""


@dataclass(frozen=True)
class Location:
    """The location of the arrays of one call.

    Attributes
    ----------
    device
        DLPack device type and device number.
    library
        Name of the first array argument's library (``"numpy"``, ``"torch"``, ...): whose current stream to use.
    """

    device: tuple[int, int] = (HOST_DEVICE, 0)
    library: str = "numpy"


@dataclass(frozen=True)
class NewArray:
    """An array that a call allocates, for the first launch that takes it: uninitialized.

    Runtimes of immutable arrays return it from ``allocate``, so that an output which is an argument of a later call
    is an array like any other.

    Attributes
    ----------
    array
        The array that the call returns.
    """

    array: Argument


@dataclass(frozen=True)
class Built:
    """A kernel's text as built by a runtime: bytes that load without the compiler.

    Attributes
    ----------
    runtime
        Name of the runtime that made it; only that one loads it.
    kind
        The format of the bytes, as named by that runtime.
    data
        The bytes.
    arch
        The architecture they run on, as named by that runtime; empty: everything that the target covers.
    facts
        Private to that runtime, except for ``registers`` and ``spill_bytes`` of a thread: where a backend states them,
        spills are reported to the user.
    """

    runtime: str
    kind: str
    data: bytes = field(repr=False)
    arch: str = ""
    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)


class AdapterFacts(Protocol):
    """Facts that the binder needs about an adapter; read once, when a kernel is made."""

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def devices(self) -> frozenset[int]:
        """DLPack device types whose memory the kernel can access."""

    @property
    def convention(self) -> Convention:
        """How the launch callable takes its arguments, see ``RuntimeAdapter.load``."""

    @property
    def renews(self) -> frozenset[str]:
        """Libraries of immutable arrays whose content a launch replaces."""

    def describe(self, value: Argument) -> Any:
        """Facts of a lazy array; ``None`` for all other values."""

    def allocate(self, library: str, shape: tuple[int, ...], dtype: str, device: tuple[int, int]) -> Argument:
        """An uninitialised array, or ``None`` to let the binder do it."""


class RuntimeAdapter(ABC):
    """Base of runtime adapters.

    Attributes
    ----------
    name
        Stable name, as in ``--tile-runtime``.
    devices
        DLPack device types whose memory the kernel can access.
    convention
        ``"packed"`` or ``"pointers"``, see `load`.
    renews
        Libraries whose arrays are immutable values but are accepted for parameters that the kernel writes: a launch
        gives the object new content, which keeps the old elements that the kernel did not write.
    launches
        Whether it launches kernels; one that only builds them refuses every call with a ``SetupError``.
    """

    name: str = ""
    devices: frozenset[int] = frozenset({HOST_DEVICE})
    convention: Convention = "packed"
    renews: frozenset[str] = frozenset()
    launches: bool = True

    @abstractmethod
    def load(self, artefact: Any) -> Callable[..., object]:
        """Make an artefact callable; called once per kernel.

        Parameters
        ----------
        artefact
            What the last pass of the backend's pipeline leaves as ``lowered``. If that is a ``KernelText``, its
            ``built`` is what `build` of this runtime returned for it, now or long ago, or ``None``: see `binary_of`.

        Returns
        -------
        Callable
            ``"packed"``: called as ``launch(*values)``, one value per parameter of the signature, in its order. A
            tensor is a NumPy array or a torch tensor (off the host: an array of any library) whose element type is
            the *storage* type of the parameter: ``uint8`` for fp8 and packed 4-bit types, ``uint16`` for bfloat16,
            otherwise the type itself. A scalar is a Python ``int``, ``float`` or ``bool``; a pointer is a
            ``ctypes.c_void_p``. Arrays of other libraries off the host are passed as they are.

            ``"pointers"``: called as ``launch(values, place)``: tensors and pointers are addresses (``int``), the
            values of the symbols that the compiled function also takes follow the parameters, and ``place`` gives the
            device and library. The callable may have a method ``repeat``, which makes similar launches cheaper: see
            `calls.repeat`.

            Arguments have been checked: the callable must not check, copy or convert. It returns when the work is
            queued on the caller's current stream. The binder keeps the arrays alive only until it returns.

        Raises
        ------
        SetupError
            This machine lacks a driver, a device or a library.
        """

    def machine_code(self, launch: Callable[..., object]) -> object:
        """Return the function of tvm-ffi behind a launch, for libraries that call kernels without Python.

        Parameters
        ----------
        launch
            What `load` returned, of the convention ``"packed"``.

        Returns
        -------
        object or None
            It takes the same values, except that scalars have passed ``runtime.convert.coded_number``, and may be
            called by any thread. ``None`` (the default) if the launch needs Python.
        """
        return None

    def toolchain(self) -> str:
        """Return text that changes whenever `build` could return other bytes: versions of compilers and headers.

        Part of the key of every kernel on disk. Called once per compilation; it must be cheap and touch no device.

        Returns
        -------
        str
            Empty (the default) if nothing is worth caching: `build` is never called.
        """
        return ""

    def build(self, artefact: Any) -> Built | None:
        """Compile a ``KernelText`` without loading it.

        It touches no device and depends only on the text and target.

        Returns
        -------
        Built or None
            ``None`` (the default) if this text is not worth caching.
        """
        return None

    def exported(self, artefact: Any, symbols: Mapping[str, Any]) -> Any:
        """Return another artefact as a ``KernelText`` with its built form, for a file.

        Parameters
        ----------
        artefact
            What the last pass of the backend's pipeline leaves as ``lowered``.
        symbols
            The variables of the program's symbols, by name. The text takes values of those that it needs, behind the
            parameters.

        Returns
        -------
        KernelText or None
            ``None`` (the default) if no file can hold it.
        """
        return None

    def build_steps(self, artefact: Any) -> Sequence[tuple[str, float]]:
        """Build an artefact and time the steps, for a report; it touches no device.

        Parameters
        ----------
        artefact
            What the last pass of the backend's pipeline leaves as ``lowered``, no ``KernelText``: of those the report
            times `build`.

        Returns
        -------
        Sequence
            The name of each step and the seconds that it took, in order; empty (the default) if unknown.
        """
        return ()

    def binary_of(self, artefact: Any) -> Built | None:
        """Return the built form of a ``KernelText``, building it if necessary.

        The first step of most ``load``.
        """
        found = artefact.built
        if isinstance(found, Built) and found.runtime == self.name:
            return found
        return self.build(artefact)

    def refuses(self, built: Built) -> str:
        """Return why no device of this machine can run the bytes; empty if one can.

        Called by ``tile.load`` before `load`. It may start a driver and fail with a ``SetupError``.
        """
        return ""

    def device_name(self) -> str:
        """Return the name of the device of the current launches, under which measurements are kept.

        Returns
        -------
        str
            Empty (the default of a runtime that does not use host memory) if it is not known.
        """
        import platform

        return f"{platform.node()} ({os.cpu_count()} cores)" if HOST_DEVICE in self.devices else ""

    def peaks(self) -> Mapping[str, float]:
        """Return the peak rates of the device of the current launches; called by ``bench`` commands.

        Returns
        -------
        Mapping
            ``"bytes"``: bytes per second of memory. By element type of A (with `` 2:4`` behind it where A is sparse):
            floating-point operations per second of matrix products. Empty (the default) if unknown.
        """
        return {}

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all launched work has finished; called by ``bench`` and ``verify`` only."""

    def clock(self, launch: Callable[[], object], launches: int) -> float | None:
        """Run ``launch`` repeatedly and time the runs on the device, for ``bench``.

        Returns
        -------
        float or None
            The seconds that all of them took, without the host's part of a launch; ``None`` (the default) to let the
            caller use the host's clock and `synchronize`. Nothing has been launched then.
        """
        return None

    def describe(self, value: Argument) -> Any:
        """Return the facts of an argument that its library has not computed yet.

        Returns
        -------
        ArrayFacts or None
            Its `calls.arrays.ArrayFacts`, with the strides and alignment that the launch itself ensures, and a
            ``handle`` that differs for other objects. ``None`` (the default) if the argument's memory is to be read.
        """
        return None

    def allocate(self, library: str, shape: tuple[int, ...], dtype: str, device: tuple[int, int]) -> Argument:
        """Allocate an output of ``out_idx``; called when a call with these shapes is seen.

        Returns
        -------
        Any
            An uninitialised, writable array of ``library`` on ``device``, or ``None`` (the default) to let the binder
            allocate it with the library itself. A `NewArray` reaches the first launch of the call as it is.
        """
        return None

    def from_host(self, array: Array) -> Argument:
        """Copy a NumPy array to memory that kernels can access.

        Called by ``verify`` and the conformance suite only.

        A runtime of a device implements this and `to_host`. The default serves those that reach host memory: it returns
        the array itself.

        Parameters
        ----------
        array
            A NumPy array of any storage type (bool, integers of 8 to 64 bits, float16 to float64, and those of
            ``ml_dtypes``: bfloat16, all of float8; packed 4-bit types are ``uint8``), of any rank, also without
            elements, and of any strides that are whole elements.

        Returns
        -------
        Any
            An array of no other library that the binder accepts: it has ``__dlpack__`` and ``__dlpack_device__`` (see
            `calls.dlpack`), is writable, and reports the same element type, shape and strides; its address is the
            same modulo 16, the alignment common to NumPy's memory and the assumptions of texts. Also, two methods:
            ``get()`` does what `to_host` does, ``fill_bytes(byte)`` sets every byte of every element.

        Raises
        ------
        NotProvided
            This runtime cannot, which is the default of a runtime that cannot access host memory.
        UnsupportedArray
            The array has strides that are not whole elements, or elements that are not numbers.
        """
        return self._own(array, "from_host()")

    def to_host(self, array: Argument) -> Array:
        """Copy an array that `from_host` returned back, after the work on it has finished.

        Returns
        -------
        Any
            A new NumPy array of the same element type, shape and strides.

        Raises
        ------
        KernelError
            A kernel wrote memory around the array or between its elements: an implementation should guard its arrays,
            as those of `texts.guarded` are.
        NotProvided
            As `from_host`.
        """
        return self._own(array, "to_host()")

    def _own(self, array: Array, action: str) -> Array:
        if HOST_DEVICE in self.devices:
            return array
        from tile_runtime.errors.launch import NotProvided

        reason = "its runtime copies no arrays between the host and its device"
        advice = "pass arrays of a library that allocates on the device"
        raise NotProvided(kernel="a copy", action=action, target=self.name, reason=reason, advice=advice)


class HostMemory(RuntimeAdapter):
    """Facts of plain host memory for launches that are already callable (tests, the reference meaning)."""

    name = "host"

    def load(self, artefact: Any) -> Callable[..., object]:
        """Return ``artefact``, which must be callable."""
        loaded: Callable[..., object] = artefact
        return loaded

    def synchronize(self) -> None:
        """Host calls are finished when they return."""
