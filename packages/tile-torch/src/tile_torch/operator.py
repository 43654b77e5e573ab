"""``op``: a program, or a function that launches several, as an operator of ``torch.library``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad, profiler

from tile_core.errors import TileError
from tile_core.ir.program import Program
from tile_runtime.errors.operators import BadOperatorName, NoTargetOf
from tile_runtime.torch_op import KEYS, schema_of
from tile_torch import batching, schema
from tile_torch.autograd import Backward, Formula, Rule, Setup, recorded, refusing, save_tensors, transformed
from tile_torch.errors import LostInPlace, NoFake, ShardedArgument, TransformRefused
from tile_torch.launching import TARGETS, Options, TorchKernel

_LIBRARIES: dict[str, Any] = {}  # an operator exists as long as its library does

_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_is_compiling = torch.compiler.is_compiling
_transforming = torch._C._are_functorch_transforms_active
_recording = torch.is_grad_enabled
_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._is_torch_function_mode_enabled
_tracing = torch._C._get_tracing_state


def op(
    name: str,
    program: Program | Callable[..., Any],
    *,
    out: Sequence[str] | None = None,
    mutates: Sequence[str] = (),
    fake: Callable[..., Any] | None = None,
    batch: str | None = None,
    autocast: torch.dtype | None = None,
    options: Options | None = None,
) -> TorchOperator:
    """Register an operator of torch, and return a function that calls it.

    Parameters
    ----------
    name
        ``"namespace::name"``. A second definition replaces the first, so that a cell of a notebook may run again.
    program
        The result of ``@T.prim_func``; or a function of tensors and numbers, with annotations, that launches kernels
        made by `tile_torch.kernel`, other operators, and operations of torch.
    out
        For a program: names of the parameters that a call allocates and returns; by default all that it only writes.
        Other parameters that it writes are declared as written in place.
    mutates
        For a function: names of the tensors that it writes in place.
    fake
        For a function: returns empty tensors of the results' shapes; by default the function itself, on fake tensors.
    batch
        For a program: the symbol of its rows, if each row of a result depends on the same row of its tensors only.
        ``torch.vmap`` then folds a batch into the rows; otherwise it launches once for each example.
    autocast
        The type that floating-point tensors are converted to where autocast is enabled; by default none is.
    options
        For a program: options of targets by their kind, as ``{"cuda": {"numerics": "fast"}}``.

    Returns
    -------
    TorchOperator
        Call it with tensors.

    Raises
    ------
    BadOperatorName, NoSchema, BadResults, BadBatch, NoPointers
        The operator cannot be defined.
    """
    qualified = schema.check_name(name)
    if isinstance(program, Program) or not callable(program):
        kernel = TorchKernel(program, out, options)
        text, launch, shapes = schema_of(kernel.signature), kernel.launch, kernel.fake
    else:
        kernel, launch, shapes = None, program, fake or program
        text = schema.of_function(name, program, mutates)
    return TorchOperator(qualified, text, launch, shapes, kernel, batch, autocast)


class TorchOperator:
    """An operator of torch, made by `op`; call it with tensors.

    Attributes
    ----------
    name
        ``"namespace::name"``.
    default
        Torch's own object, ``torch.ops.namespace.name.default``: it takes the dispatcher at each call. A call of the
        operator goes directly to the kernel where nothing else has to see it.
    kernel
        The program as a function of tensors; ``None`` if the operator was made of a function.
    """

    def __init__(
        self,
        name: tuple[str, str],
        text: str,
        launch: Callable[..., Any],
        fake: Callable[..., Any],
        kernel: TorchKernel | None,
        batch: str | None,
        autocast: torch.dtype | None,
    ) -> None:
        self.name = "::".join(name)
        self.kernel = kernel
        self._leading = frozenset[int]() if batch is None else batching.check_batch(self.name, kernel, batch)
        library, self.default = _defined(*name, text)
        schema_ = self.default._schema
        self._written = tuple(n for n, a in enumerate(schema_.arguments) if a.is_write)
        self._names = tuple(a.name for a in schema_.arguments)
        self._launch = self._writing(launch) if self._written else launch
        self._autocast = autocast
        self._rule: Rule | None = None
        for key in KEYS:
            library.impl(name[1], self._dispatched, key)
        torch.library.register_fake(self.name, self._faking(fake), lib=library)
        torch.library.register_vmap(
            self.name, lambda info, dims, *args: self._batched(self.default, info, dims, *args), lib=library
        )
        if autocast is not None:
            for device in filter(_has_autocast, TARGETS):
                torch.library.register_autocast(self.name, device, autocast, lib=library)
        self._formula = refusing(self.name)
        # A launch that writes in place refuses to lose gradients.
        self._recorded = self._launch if self._written else recorded(self._launch, lambda: self._formula)
        self._transformed = transformed(self.default, lambda: self._formula, self._batched)
        if self._written:
            library.impl(name[1], self._below_autograd, "Autograd", with_keyset=True)
        else:
            torch.library.register_autograd(
                self.name,
                lambda ctx, *gradients: self._formula.backward(ctx, *gradients),
                setup_context=lambda ctx, inputs, output: self._formula.setup(ctx, inputs, output),
                lib=library,
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator; the checks are those of ``tile.Kernel``."""
        if kwargs or _is_compiling():
            return self.default(*args, **kwargs)
        if self._autocast is not None or _transforming() or forward_ad._current_level >= 0:
            return self._indirect(args)
        graded = False
        for value in args:
            kind = type(value)
            if kind is _Tensor or kind is _Parameter:
                if value.requires_grad:
                    graded = True
            elif kind is not int and kind is not float and kind is not bool:
                return self._indirect(args)
        if _modes() or _function_modes() or profiler._is_profiler_enabled or _tracing() is not None:
            return self.default(*args)
        if graded and _recording():
            return self._recorded(*args)
        try:
            return self._launch(*args)
        except NoTargetOf:
            return self.default(*args)  # such as a tensor without memory, of device "meta"

    def register_backward(self, backward: Backward, *, setup_context: Setup | None = None) -> None:
        """Set the gradient, as ``torch.library.register_autograd`` does.

        Parameters
        ----------
        backward
            ``backward(ctx, *gradients)`` returns a gradient or ``None`` for each argument. Gradients may have any
            strides: ``g.contiguous()`` makes one fit. It is batched and compiled if it calls operators only.
        setup_context
            ``setup_context(ctx, inputs, output)`` keeps what it needs; by default all tensor arguments.

        Raises
        ------
        TransformRefused
            The operator writes in place.
        """
        if self._written:
            raise self._refused("a gradient", "it writes tensors in place", "return the results instead")
        self._formula = Formula(backward, setup_context or save_tensors)

    def register_vmap(self, rule: Rule) -> None:
        """Set the rule of ``torch.vmap``.

        Parameters
        ----------
        rule
            ``rule(info, dims, *args)`` returns batched results and the positions of their batch axes, as in
            ``torch.library.register_vmap``.
        """
        self._rule = rule

    @property
    def schema(self) -> str:
        """Its schema, as torch prints it."""
        return str(self.default._schema)

    def __repr__(self) -> str:
        return f"<tile_torch.TorchOperator {self.schema}>"

    # Other ways of a call

    def _indirect(self, args: tuple[Any, ...]) -> Any:
        """Make a call that is transformed, converted, or of other values than plain tensors."""
        for number, value in enumerate(args):
            if type(value).__name__ == "DTensor":
                raise ShardedArgument(operator=self.name, number=number)
        if self._autocast is not None:
            args = tuple(self._converted(value) for value in args)
        if not _transforming():
            return self.default(*args)
        if self._written:
            raise self._refused("torch.func", "it writes tensors in place", "return the results instead")
        return self._transformed(*args)

    def _dispatched(self, *args: Any) -> Any:
        """Launch for torch's dispatcher, which passes on tensors with tangents as if they had none."""
        if forward_ad._current_level >= 0 and any(map(_has_tangent, args)):
            raise self._refused("forward-mode differentiation", "it has no rule for it", "take gradients by backward()")
        return self._launch(*args)

    def _converted(self, value: Any) -> Any:
        if not isinstance(value, _Tensor) or not value.is_floating_point():
            return value
        return value.to(self._autocast) if torch.is_autocast_enabled(value.device.type) else value

    def _writing(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        """Return a launch that counts as a change of the tensors that it writes."""
        written = self._written

        def launch_and_count(*args: Any) -> Any:
            graded = [n for n, a in enumerate(args) if isinstance(a, _Tensor) and a.requires_grad]
            if graded and _recording():
                names = self._names
                raise LostInPlace(operator=self.name, name=names[written[0]], graded=names[graded[0]])
            result = launch(*args)
            torch.autograd.graph.increment_version([args[n] for n in written])
            return result

        return launch_and_count

    def _below_autograd(self, keys: Any, *args: Any) -> Any:
        """Pass on a call that writes in place, unless a gradient would be lost."""
        graded = [n for n, a in enumerate(args) if isinstance(a, _Tensor) and a.requires_grad]
        if graded and _recording():
            names = self._names
            raise LostInPlace(operator=self.name, name=names[self._written[0]], graded=names[graded[0]])
        with torch._C._AutoDispatchBelowAutograd():
            return self.default.redispatch(keys & torch._C._after_autograd_keyset, *args)

    def _faking(self, fake: Callable[..., Any]) -> Callable[..., Any]:
        """Return the implementation for fake tensors, whose failures name the operator."""

        def shapes(*args: Any) -> Any:
            try:
                return fake(*args)
            except TileError as error:
                if self.kernel is not None or error.code != "K425":  # which refuses tensors without memory
                    raise
                function = getattr(fake, "__name__", "the function")
                raise NoFake(operator=self.name, function=function, reason=error.message) from error

        return shapes

    def _batched(self, apply: Callable[..., Any], info: Any, dims: tuple[int | None, ...], *args: Any) -> Any:
        """Apply the rule of ``torch.vmap``."""
        if self._written:
            raise self._refused("torch.vmap", "it writes tensors in place", "return the results instead")
        if self._rule is not None:
            return self._rule(info, dims, *args)
        batched = {n for n, axis in enumerate(dims) if axis is not None}
        if self._leading and batched <= self._leading and info.batch_size:
            return batching.fold(apply, self._leading, info.batch_size, dims, args)
        return batching.loop(apply, info.batch_size, dims, args)

    def _refused(self, transform: str, reason: str, advice: str) -> TransformRefused:
        return TransformRefused(operator=self.name, transform=transform, reason=reason, advice=advice)


def _has_autocast(device: str) -> bool:
    # Builds without MPS may refuse a policy for it.
    return torch.amp.is_autocast_available(device) and (device != "mps" or torch.backends.mps.is_built())


def _has_tangent(value: Any) -> bool:
    return isinstance(value, _Tensor) and forward_ad.unpack_dual(value).tangent is not None


def _defined(namespace: str, name: str, text: str) -> tuple[Any, Any]:
    """Define an operator, after removing one of that name; return its library and torch's object."""
    qualified = f"{namespace}::{name}"
    if qualified in _LIBRARIES:
        # Its destruction unregisters the operator, and its deletion clears what torch has cached of the schema.
        _LIBRARIES.pop(qualified)._destroy()
    elif name in dir(getattr(torch.ops, namespace)) or torch._C._dispatch_has_kernel(qualified):
        reason = "another library has defined it"
        raise BadOperatorName(function="tile_torch.op", name=qualified, reason=reason, near=f"{name}_tile")
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(name + text, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
    _LIBRARIES[qualified] = library
    return library, getattr(getattr(torch.ops, namespace), name).default
