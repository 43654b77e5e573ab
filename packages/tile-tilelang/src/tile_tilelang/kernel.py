"""``JITKernel``: a kernel of tile with the host calls of TileLang."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tile_core.compiler import compile as compile_program
from tile_core.ir.program import Program
from tile_core.runtime.kernel import Kernel
from tile_tilelang.errors import BadCall, NotOnHost
from tile_tilelang.host import runtime, target_of
from tile_tilelang.params import KernelParam, params_of
from tile_tilelang.profiler import Profiler
from tile_tilelang.supply import TensorSupplyType, of_script

#: Attributes of TileLang's kernels -> what to write instead.
_INSTEAD = {
    "get_host_source": "there is no host program: the runtime checks arguments and launches; print kernel.source",
    "export_library": "write kernel.export(path), and tile_core.load(path) in the other process",
    "get_ptx": "give kernel.get_kernel_source() to the vendor's compiler",
    "show_ptx": "give kernel.get_kernel_source() to the vendor's compiler",
    "export_ptx": "give kernel.get_kernel_source() to the vendor's compiler",
    "get_sass": "give kernel.get_kernel_source() to the vendor's compiler",
    "show_sass": "give kernel.get_kernel_source() to the vendor's compiler",
    "export_sass": "give kernel.get_kernel_source() to the vendor's compiler",
    "export_sources": "write kernel.get_kernel_source() to a file",
    "rt_module": "call the kernel, or write kernel.export(path)",
    "rt_mod": "call the kernel, or write kernel.export(path)",
    "artifact": "kernel.source is the text, kernel.signature the parameters",
    "torch_function": "call the kernel itself",
}

#: While `tile_tilelang.running.compiled` collects them: the kernels that were made, each once.
made: list[list[Kernel]] = []


class JITKernel:
    """A compiled kernel: callable with arrays, with its text and a profiler.

    Whatever a ``tile_core.Kernel`` has is here too: ``explain()``, ``verify()``, ``bench()``, ``export()``, ``source``.

    Parameters
    ----------
    func, out_idx, **hints
        A kernel of tile, or a program with its target; other keywords are hints.

    Attributes
    ----------
    kernel
        The kernel of tile.
    config, latency, ref_latency
        Of a tuned kernel: the configuration that won, its milliseconds, and those of the reference; else ``None``.
    """

    def __init__(self, func: Kernel | Program, out_idx: Any = None, **hints: Any) -> None:
        self.kernel: Kernel = _compiled(func, out_idx, **hints) if isinstance(func, Program) else func
        self.config: dict[str, Any] | None = None
        self.latency: float | None = None
        self.ref_latency: float | None = None
        for collected in made:
            if not any(self.kernel is k for k in collected):
                collected.append(self.kernel)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Launch; the outputs of ``out_idx`` are allocated and returned."""
        found = self.kernel(*map(detached, args), **{k: detached(v) for k, v in keywords.items()})
        return of_script(found, (*args, *keywords.values()))

    def __getattr__(self, name: str) -> Any:
        if name in _INSTEAD:
            raise NotOnHost(name=f"kernel.{name}", instead=_INSTEAD[name])
        return getattr(self.__dict__["kernel"], name)

    def __repr__(self) -> str:
        return repr(self.kernel)

    @property
    def prim_func(self) -> Any:
        """The traced program."""
        return self.kernel.program

    @property
    def params(self) -> list[KernelParam]:
        """The parameters, each with ``name``, ``shape`` and ``dtype``."""
        return params_of(self.kernel.signature)

    @property
    def out_idx(self) -> list[int]:
        """Positions of the parameters that a call allocates."""
        return list(self.kernel.signature.results)

    @property
    def kernel_source(self) -> str:
        """The text of the device's kernel."""
        return self.kernel.source

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the text of the device's kernel; there is no text of the host."""
        return self.kernel.source

    def show_source(self, which: str = "kernel") -> None:
        """Print the text of the device's kernel.

        Raises
        ------
        NotOnHost
            For the text of the host's side.
        """
        if which == "host":
            self.get_host_source()
        if which not in ("kernel", "both"):
            expected, instead = '"kernel"', "leave it out"
            raise BadCall(function="show_source", name="which", found=repr(which), expected=expected, instead=instead)
        print(self.kernel.source)

    def get_host_source(self) -> NoReturn:
        """Refuse: no text is generated for the host."""
        raise NotOnHost(name="kernel.get_host_source", instead=_INSTEAD["get_host_source"])

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """Return a profiler that checks this kernel against a reference and times it.

        Inputs are random.
        """
        return Profiler(self.kernel, tensor_supply_type)

    def run_once(self, inputs: Sequence[Any] | None = None) -> Any:
        """Launch once with these inputs, by default random ones."""
        return self.get_profiler().run_once(inputs)


def _compiled(program: Program, out_idx: Any, **hints: Any) -> Kernel:
    chosen: Any = target_of(hints.get("target", "auto"))
    return compile_program(program, target=chosen, out_idx=out_idx, runtime=runtime())


def detached(value: Any) -> Any:
    """Return a tensor outside of automatic differentiation: gradients are the script's own concern."""
    return value.detach() if getattr(value, "requires_grad", False) else value
