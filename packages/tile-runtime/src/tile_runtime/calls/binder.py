"""Bind the arguments of a call to a launch.

The first call of a form is checked fully, further ones by a function specialised for the form.

Arrays of other libraries in host memory take the forms of NumPy's arrays of the same memory, once a call with arrays of
these types was checked; elsewhere they have no form and are always checked fully. So is a call that fails a check of
its form's function, so that every refusal has its full text.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

from tile_runtime.abi.adapter import AdapterFacts, HostMemory
from tile_runtime.abi.signature import Signature
from tile_runtime.calls import checks
from tile_runtime.calls.aliases import Aliases, host_aliases
from tile_runtime.calls.arguments import arrange, check_signature, defect, only_catalogue
from tile_runtime.calls.form import Bound, Form, FormKeys, form_of
from tile_runtime.calls.profiling import ranged, torch_record
from tile_runtime.calls.specialise import Call, Link, by_key, telling
from tile_runtime.calls.wide import WideVersion
from tile_runtime.errors.base import InternalError, TileError
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.errors.setup import RuntimeBroken
from tile_runtime.types import Argument

_MOST_FORMS = 4096
_MOST_ORDERED = 4
_SEEN_OFTEN = 64
_NO_RECORD = contextlib.nullcontext()


class Binder:
    """Checks the arguments of calls of one kernel and launches it.

    Parameters
    ----------
    signature
        The kernel's signature.
    launch
        The result of ``RuntimeAdapter.load``.
    adapter
        The adapter that loaded it; host memory by default.
    hidden
        Symbols whose values the launch takes after the parameters. By default none if it is ``"packed"``, which reads
        them off the shapes, and all symbols of the signature if it takes ``"pointers"``.
    wide
        The version for arrays that 32-bit offsets do not reach; without one they are refused.

    Raises
    ------
    UnsolvableSymbol, BadOutIdx
        The signature can never be called.
    """

    def __init__(
        self,
        signature: Signature,
        launch: Callable[..., object],
        adapter: AdapterFacts | None = None,
        hidden: Sequence[str] | None = None,
        wide: WideVersion | None = None,
    ) -> None:
        self.signature = signature if wide is None else dataclasses.replace(signature, symbolic_bits=64)
        self.launch = ranged(launch, signature.name)
        self._wide = wide
        self.adapter: AdapterFacts = adapter or HostMemory()
        self._packed = self.adapter.convention == "packed"
        self.hidden = tuple(hidden if hidden is not None else () if self._packed else signature.symbols)
        self.forms: dict[tuple[object, ...], Call] = {}
        """The function of each form that was seen, by its key."""
        self._keys = FormKeys(self.signature)
        self._ordered: tuple[tuple[Form, Link], ...] = ()
        self._crowded = False
        self.call: Call = self.call_by_key
        """Makes a call, given its arguments by position as one tuple: tries the forms seen last, then all others."""
        self._others: Call = self.call_by_key
        # Outputs are arrays of the arguments' library, and some are renewed by launches: see ``AdapterFacts``.
        plain = all(p.kind != "tensor" or p.storage == p.dtype for p in signature.params)
        self._shares = self._packed and plain and not signature.out_idx and not getattr(self.adapter, "renews", ())
        self._aliases: dict[tuple[type, ...], Aliases | None] = {}
        check_signature(signature)

    def __call__(self, *args: Argument, **kwargs: Argument) -> Argument:
        """Check, allocate the outputs of ``out_idx``, launch, and return them."""
        return self.call(self._arranged(args, kwargs) if kwargs else args)

    def call_by_key(self, args: tuple[Argument, ...]) -> Argument:
        """Make a call by the function of its form; check a new form fully."""
        parts = self._keys.parts
        try:
            call = self.forms[tuple([parts[type(a)](a) for a in args])]
        except (KeyError, AttributeError, RuntimeError):
            call = self._call_unknown
        return call(args)

    def _call_unknown(self, args: tuple[Argument, ...]) -> Argument:
        """Make a call of an unknown form, and learn the types of its arguments."""
        result = self.call_checked(args)
        types = tuple(map(type, args))
        if self._shares and types not in self._aliases:
            # NumPy takes capsules as they are, of immutable arrays too: a call with these types was checked.
            self._aliases[types] = found = host_aliases(self.signature, types)
            if found is not None:
                self._others = self._call_aliased
                self._try_ordered()
        return result

    def _call_aliased(self, args: tuple[Argument, ...]) -> Argument:
        """Make a call by the form of NumPy aliases of its arrays."""
        aliases = self._aliases.get(tuple(map(type, args)))
        shared = None if aliases is None else aliases(args)
        if shared is None:
            return self.call_by_key(args)
        parts = self._keys.parts
        call = self.forms.get(tuple([parts[type(a)](a) for a in shared]))
        if call is not None:
            return call(shared)
        result = self.call_checked(args)
        with contextlib.suppress(TileError):  # such as strides that only the other library has
            self._checked(shared)
        return result

    def call_checked(self, args: tuple[Argument, ...]) -> Argument:
        """Make a call after the full checks."""
        bound = self.bind(*args)
        self.launch_bound(bound)
        return bound.result

    def bind(self, *args: Argument, **kwargs: Argument) -> Bound:
        """Check the arguments fully and allocate the outputs; launches nothing.

        Raises
        ------
        LaunchError
            K4xx, for everything that is wrong with the arguments.
        """
        args = self._arranged(args, kwargs)
        with only_catalogue("the checks of a call", self.signature.where):
            return self._checked(args).bind(args)

    def launch_bound(self, bound: Bound) -> None:
        """Launch with checked arguments, by the adapter's convention."""
        launch, record = self._launch_of(bound), torch_record(self.signature.name)
        try:
            with _NO_RECORD if record is None else record():
                if self._packed:
                    launch(*bound.values)
                else:
                    launch(bound.values, bound.location)
        except TileError:
            raise
        except Exception as error:
            raise self._wrong(error) from error

    def _launch_of(self, call: Form | Bound) -> Callable[..., object]:
        """Return the launch whose offsets reach all elements of a call's arrays."""
        if not call.wide or self._wide is None:
            return self.launch
        return ranged(self._wide.load(None), self.signature.name)

    def _arranged(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> tuple[Argument, ...]:
        with only_catalogue("the checks of a call", self.signature.where):
            return arrange(self.signature, args, kwargs)

    def _checked(self, args: tuple[Argument, ...]) -> Form:
        """Return the form of a call that passes all checks, and keep it."""
        signature = self.signature
        values = dict(zip(signature.inputs, args, strict=True))
        arrays = checks.check_arrays(signature, self.adapter, values)
        scalars: dict[int, Argument] = {}
        for i, value in values.items():
            param = signature.params[i]
            if param.kind == "scalar":
                scalars[i] = checks.check_scalar(signature, param, value)
            elif param.kind == "pointer" and i not in arrays:
                scalars[i] = checks.check_pointer(signature, param, value)
        symbols = checks.solve_symbols(signature, arrays, scalars)
        checks.check_overlap(signature, arrays)
        form = form_of(signature, self.adapter, self.hidden, args, arrays, symbols)
        if form.wide and self._wide is not None:
            self._wide.check(symbols)
        key = self._keys.learn(args) if form.repeatable else None
        if key is not None and key not in self.forms:
            if len(self.forms) >= _MOST_FORMS:
                self.forms.pop(next(iter(self.forms)), None)
            # Functions are made when a form is seen again.
            self.forms[key] = functools.partial(self._specialise, key)
        return form

    def _specialise(self, key: tuple[object, ...], args: tuple[Argument, ...]) -> Argument:
        """Make the second call of a form, and the functions for those that follow."""
        args = self._arranged(args, {})
        with only_catalogue("the checks of a call", self.signature.where):
            form = self._checked(args)
            bound = form.bind(args)
        self.launch_bound(bound)
        if form.repeatable:
            record = torch_record(self.signature.name)
            link = by_key(form, self._launch_of(form), self._wrong, packed=self._packed, record=record)
            call = link(self.call_checked)
            self.forms[key] = call if self._packed else self._counted(form, call)
            self._try_first(form, args, bound.values)
        return bound.result

    def _counted(self, form: Form, call: Call) -> Call:
        """Return the function of a displaced form, which competes again once called often."""
        count = 0

        def counted(args: tuple[Argument, ...]) -> Argument:
            nonlocal count
            result = call(args)
            count += 1
            if count % _SEEN_OFTEN == 0:
                self._try_first(form, args, form.bind(args).values)
            return result

        return counted

    def _try_first(self, form: Form, args: tuple[Argument, ...], values: Sequence[Argument]) -> None:
        """Try calls of a form before all others.

        A packed launch is so short that many trials cost more than a key lookup: then no form is tried.
        """
        ordered = self._ordered
        if self._packed and len(ordered) == _MOST_ORDERED:
            self._crowded = True
            self._try_ordered()
            return
        # Torch's modes are not part of a key but distinguish forms, so that one form may need two functions.
        if sum(known is form for known, _ in ordered) > 1:
            return
        record, launch = torch_record(self.signature.name), self._launch_of(form)
        link = telling(form, args, values, launch, self._wrong, packed=self._packed, record=record)
        if link is not None:
            self._ordered = (*ordered[1 - _MOST_ORDERED :], (form, link))
            self._try_ordered()

    def _try_ordered(self) -> None:
        call: Call = self._others
        for _, one in () if self._crowded else self._ordered:
            call = one(call)
        self.call = call

    def _wrong(self, error: Exception) -> TileError:
        """Return the error for an exception of a launch: invalid arguments have already been refused."""
        passed_on(error)
        found = defect("launch", error, self.signature.where, self.signature.name)
        if isinstance(found, InternalError) and not type(self.adapter).__module__.startswith(
            ("tile_core.", "tile_runtime.")
        ):
            reason = f"a launch raised {type(error).__name__}: {error}"
            return RuntimeBroken(name=self.adapter.name, reason=reason, where=self.signature.where)
        return found
