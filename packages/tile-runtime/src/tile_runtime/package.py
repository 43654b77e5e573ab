"""Kernels of an installed package, chosen by the shapes of a call.

`tile build-package` writes such packages.

A package has a folder ``kernels`` with artefacts and ``index.json``::

    {"format": 3, "version": "0.1.0", "kernels": {"gemm": {"fallback": "", "builds": [
        {"file": "gemm-0.tile", "target": "cpu:x86-64-v3", "backend": "cpu", "package": "", "signature": {...}}]}}}

An artefact is read when a call first needs it.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tile_runtime.abi.signature import Dim, Param, Signature, shape_text, symbols_of
from tile_runtime.calls.arguments import arrange
from tile_runtime.calls.arrays import Unreadable, facts_of
from tile_runtime.errors.artefacts import ArtefactNotRunnable, NewerArtefact, ShapeNotBuilt
from tile_runtime.files.artefact import FORMAT
from tile_runtime.files.loading import artefact_of, kernel_of, missing_backend, refusal_of
from tile_runtime.loaders import loader
from tile_runtime.records import dataclass
from tile_runtime.traces import short_traces
from tile_runtime.types import Argument

FOLDER, INDEX = "kernels", "index.json"
_NEAREST = 3

Call = Callable[..., Argument]
Shapes = tuple["tuple[int, ...] | None", ...]


def open_package(name: str, file: str) -> dict[str, Any]:
    """Return the names of a package: its kernels, and ``register_torch``.

    Parameters
    ----------
    name, file
        ``__name__`` and ``__file__`` of the package.

    Raises
    ------
    NewerArtefact
        A later version of tile wrote it.
    """
    folder = Path(file).parent / FOLDER
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    if index["format"] > FORMAT:
        raise NewerArtefact(file=name, found=index["format"], expected=FORMAT, version=index["version"])
    kernels = {kernel: PackagedKernel(name, kernel, folder, facts) for kernel, facts in index["kernels"].items()}

    def register_torch() -> None:
        """Register an operator of torch for each kernel, ``torch.ops.<package>.<kernel>``."""
        from tile_runtime.torch_op import register

        register(name.replace(".", "_"), kernels.values())

    if "torch" in sys.modules:
        register_torch()
    return {**kernels, "register_torch": register_torch}


@dataclass(frozen=True)
class Build:
    """A kernel of a package for some shapes and one target.

    Attributes
    ----------
    file
        Name of its artefact.
    target, backend, package
        The target's text, its backend, and the distribution of that.
    signature
        How it is called.
    """

    file: str
    target: str
    backend: str
    package: str
    signature: Signature

    def serves(self, shapes: Shapes) -> bool:
        """Whether its extents are those of the arrays of a call, by input."""
        params = [self.signature.params[i] for i in self.signature.inputs]
        return len(params) == len(shapes) and all(_fits(p, s) for p, s in zip(params, shapes, strict=True))

    @property
    def symbols(self) -> int:
        """The number of extents that depend on symbols."""
        dims = [dim for p in self.signature.params for dim in p.shape]
        return sum(any(True for _ in symbols_of(dim)) for dim in dims)


class PackagedKernel:
    """A kernel of a package: a call runs the build for its shapes.

    Parameters
    ----------
    package, name
        The package, and the kernel's name in it.
    folder
        Where its artefacts are.
    facts
        The kernel's part of the index.
    """

    def __init__(self, package: str, name: str, folder: Path, facts: dict[str, Any]) -> None:
        self.package, self.name, self._folder = package, name, folder
        self._fallback: str = facts["fallback"]
        builds = [Build(**{**b, "signature": Signature.from_json(b["signature"])}) for b in facts["builds"]]
        # Constant extents before symbols; targets in the order in which they were named.
        self.builds = sorted(builds, key=lambda b: b.symbols)
        self.signature = self.builds[0].signature
        self._known: dict[object, Call] = {}

    def __call__(self, *args: Argument, **kwargs: Argument) -> Argument:
        """Launch the build for the shapes of the arguments, or call the fallback.

        Raises
        ------
        ShapeNotBuilt
            There is no build for these shapes, and no fallback.
        ArtefactNotRunnable, MissingBackend
            No build for these shapes runs on this machine.
        LaunchError
            K4xx: an argument is refused.
        """
        if kwargs:
            args = arrange(self.signature, args, kwargs)
        key = tuple([_kind(a) for a in args])
        call = self._known.get(key)
        if call is None:
            call = self._known[key] = self._find(args)
        return call(*args)

    def build_of(self, shapes: Shapes) -> Build | None:
        """Return the first build for the shapes of a call."""
        return next((b for b in self.builds if b.serves(shapes)), None)

    def __repr__(self) -> str:
        targets = ", ".join(dict.fromkeys(b.target for b in self.builds))
        return f"<{self.package}.{self.name}: {len(self.builds)} builds for {targets}>"

    @short_traces
    def _find(self, args: Sequence[Argument]) -> Call:
        arrange(self.signature, args, {})
        shapes, device = _shapes(args)
        fitting = [b for b in self.builds if b.serves(shapes)]
        reasons = []
        for build in fitting:
            found = self._load(build, device)
            if not isinstance(found, str):
                return found
            reasons.append(f"{build.target}: {found}")
        if self._fallback:
            module, _, function = self._fallback.partition(":")
            found = getattr(importlib.import_module(module), function)
            return found
        if fitting and all(loader(b.backend, b.target) is None for b in fitting):
            raise missing_backend(self.package, fitting[0])
        if fitting:
            targets = ", ".join(dict.fromkeys(b.target for b in fitting))
            raise ArtefactNotRunnable(file=self.package, target=targets, reason="; ".join(reasons))
        raise ShapeNotBuilt(
            kernel=self.name, package=self.package, found=_texts(shapes), nearest="; ".join(self._nearest(shapes))
        )

    def _load(self, build: Build, device: int | None) -> Call | str:
        """Return a loaded build, or the reason against it."""
        adapter = loader(build.backend, build.target)
        if adapter is None:
            return f"{build.package or build.backend} is not installed"
        if device is not None and device not in adapter.devices:
            return "the arrays are on another device"
        path = self._folder / build.file
        artefact = artefact_of(path.read_bytes(), path)
        return refusal_of(artefact, adapter) or kernel_of(artefact, adapter, path)

    def _nearest(self, shapes: Shapes) -> list[str]:
        """Return the shapes of builds that are nearest to those of a call."""
        found: dict[str, float] = {}
        for build in self.builds:
            params = [build.signature.params[i] for i in build.signature.inputs]
            text = ", ".join(shape_text(p.shape) for p in params if p.kind == "tensor")
            found[text] = min(found.get(text, math.inf), _distance(params, shapes))
        return sorted(found, key=lambda text: found[text])[:_NEAREST]


def _kind(value: Argument) -> object:
    """Return a key of the arguments that one build serves."""
    try:
        return value.shape, value.dtype, getattr(value, "device", None), type(value)
    except AttributeError:
        return type(value)


def _shapes(args: Sequence[Argument]) -> tuple[Shapes, int | None]:
    """Return the shapes of arrays, and the type of their device.

    The binder of a build refuses other objects.
    """
    shapes: list[tuple[int, ...] | None] = []
    device = None
    for value in args:
        try:
            facts = facts_of(value)
        except Unreadable:
            shapes.append(None)
            continue
        shapes.append(tuple(facts.shape))
        device = facts.device[0] if device is None else device
    return tuple(shapes), device


def _fits(param: Param, shape: tuple[int, ...] | None) -> bool:
    if param.kind != "tensor" or shape is None:
        return True
    return len(shape) == len(param.shape) and all(
        not isinstance(dim, int) or size in _stored(param, dim, axis)
        for axis, (dim, size) in enumerate(zip(param.shape, shape, strict=True))
    )


def _stored(param: Param, dim: int, axis: int) -> tuple[int, ...]:
    """Return the extents of an array: in elements, or in pairs of packed ones."""
    return (dim, -(-dim // 2)) if param.packed and axis == len(param.shape) - 1 else (dim,)


def _distance(params: Sequence[Param], shapes: Shapes) -> float:
    """Return the sum of logarithms of ratios of extents: a build's to a call's."""
    total = 0.0
    for param, shape in zip(params, shapes, strict=False):
        if param.kind == "tensor" and shape is not None:
            if len(shape) != len(param.shape):
                return math.inf
            pairs: list[tuple[Dim, int]] = list(zip(param.shape, shape, strict=True))
            total += sum(abs(math.log((d + 1) / (s + 1))) for d, s in pairs if isinstance(d, int))
    return total


def _texts(shapes: Shapes) -> str:
    return ", ".join(shape_text(s) for s in shapes if s is not None)
