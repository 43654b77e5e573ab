"""The plugin contract: every hook of a backend, in the order of compilation.

A backend is a distribution with an entry point of the group ``tile.backends``::

    [project.entry-points."tile.backends"]
    sample = "tile_sample.plugin"

The entry point's name is the backend's name and the target kind for which it is queried first; its value is a module
(or object) whose functions named ``tile_*`` implement the hooks below. Rules that hold for all of them:

* An implementation may take fewer arguments than the hook has, by name. New arguments never break a backend.
* A function named ``tile_*`` that is not a hook below is refused by name when the backend is loaded.
* Each hook is called on one backend at a time and returns one answer; no backend sees another's.
* Importing the backend's module must be cheap and must work on every machine: no driver, device or toolchain is
  touched by the import, by ``tile_backend``, ``tile_target`` (of a text with an architecture), ``tile_language``,
  ``tile_lowerings``, ``tile_pipeline`` or ``tile_emulation``.
* An error of the catalogue (``TileError``) that a hook raises reaches the user unchanged. Anything else is a defect of
  the backend and reaches the user as ``HookFailed``, naming backend and hook, with the original as its cause. An answer
  of another type than stated is ``HookReturned``.
* All answers are immutable values; the core may keep them for the life of the process.

An *add-on* adds variants and names for a target kind that another backend owns. Its entry point is named
``<kind>.<name>``, its manifest owns no target kinds, and it implements only ``tile_backend``, ``tile_lowerings`` and
``tile_language``. It is loaded whenever a target of that kind is compiled for.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from tile_core.lowering.tilings import TilingModel
    from tile_core.lowering.variant import Variant
    from tile_core.manifest import BackendManifest
    from tile_core.target import Target

PROJECT = "tile"
PREFIX = "tile_"

hookspec = pluggy.HookspecMarker(PROJECT)


# --- loading ----------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_backend() -> BackendManifest:
    """Return the backend's manifest. Mandatory.

    Called once, right after the module is imported and before any other hook. No other hook is called if the manifest's
    ``api`` does not contain the core's ``API_VERSION``.

    Returns
    -------
    BackendManifest
        Its name equals the entry point's name. ``None`` is not allowed.

    Raises
    ------
    Exception
        Any error marks the backend as broken: ``BackendBroken`` is raised, with the error as its cause, when it is
        requested. Other backends and ``import tile_core`` are not affected.
    """


# --- targets ----------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_target(text: str) -> Target | None:
    """Return the target that ``text`` names. Mandatory, except for an add-on.

    Called when a text whose kind is one of the manifest's ``target_kinds`` is first used, on any machine: the answer
    depends only on the text, so that code for every target can be generated everywhere. The one exception is a kind
    without an architecture: it may mean this machine's device, and must have an answer on a machine that has none.

    Parameters
    ----------
    text
        ``kind``, ``kind:arch`` or ``kind:arch,key=value``; ``tile_core.target.split_target`` takes it apart.

    Returns
    -------
    Target or None
        A target whose ``backend`` is this backend and whose ``text`` gives an equal target again. ``None`` if the text
        belongs to another backend; the core then queries the others that own the kind, and exactly one may accept.
        Each ``key=value`` that is understood is in the target's ``options``; the core refuses a text with others.

    Raises
    ------
    UnsupportedError
        One of your own, naming the nearest legal architecture, if the kind is yours but the rest is invalid.
    """


@hookspec(firstresult=True)
def tile_detect() -> Target | None:
    """Return the target of this machine's best device. Optional.

    Called only for ``target="auto"``, at most once per process; backends in the order of their names, the built-in one
    last, until one answers.

    Returns
    -------
    Target or None
        ``None`` if the machine has no such device, driver or library.

    Raises
    ------
    Exception
        Any error is shown as a warning and counts as ``None``: a broken driver must not disable other backends.
    """


# --- the language -----------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_language() -> Mapping[str, str]:
    """Return the names that this package adds to ``T``, as lazy references. Optional.

    Called once, when a kernel uses a name of ``T`` that the core does not have (then possibly of all backends), and for
    listings.

    Returns
    -------
    Mapping[str, str]
        From the public name to ``"module:attribute"``, which is imported when the name is used. ``{}`` if nothing is
        added; ``None`` is not allowed. A name that two backends add is ``DuplicateName`` when it is used; a name of the
        core is never requested here.
    """


# --- compiling --------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_lowerings(target: Target) -> Sequence[Variant]:
    """Return the lowering variants for a target. Mandatory to compile.

    Called once per target: the target's owner first, then each add-on of its kind in the order of names.

    Parameters
    ----------
    target
        The target, with its capabilities.

    Returns
    -------
    Sequence[Variant]
        In any order; ``()`` if there are none. Names are unique per target and priorities per op and target; the core
        raises ``DuplicateVariant`` or ``AmbiguousPriority`` otherwise. ``None`` is not allowed.
    """


@hookspec(firstresult=True)
def tile_pipeline(target: Target, spine: Any) -> Any:
    """Return the passes for a target: the core's spine, insertions and tail. Mandatory.

    Called once per compilation, of the target's owner only.

    Parameters
    ----------
    target
        The target.
    spine
        The core's passes as a value with named insertion points. It is never changed.

    Returns
    -------
    Any
        A value of the same type, made by the methods of ``spine``; ``spine`` itself if the backend adds nothing.
        ``None`` is not allowed.
    """


@hookspec(firstresult=True)
def tile_tilings(target: Target) -> TilingModel | None:
    """Return the model that proposes tile shapes of products and estimates their time. Optional.

    Called by ``tile.tilings``, of the target's owner only. No device is touched.

    Parameters
    ----------
    target
        The target.

    Returns
    -------
    TilingModel or None
        See ``tile_core.lowering.tilings``. Without one, ``tile.tilings`` returns a factory's defaults. The core drops
        proposed tile shapes that the target's passes refuse.
    """


# --- running ----------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_runtimes(target: Target) -> Sequence[Any]:
    """Return the runtime adapters for a target in the order of preference. Optional.

    Called when a kernel is to be built or launched on this machine, of the target's owner only. Making an adapter
    touches no device; the first available one is used.

    Parameters
    ----------
    target
        The target.

    Returns
    -------
    Sequence[Any]
        The adapters; ``()`` if the backend only produces text, which makes a launch a ``SetupError``. ``None`` is not
        allowed.
    """


@hookspec(firstresult=True)
def tile_emulation(target: Target) -> Any:
    """Return the model with which emitted text is executed without the device. Optional.

    Called when the emulator runs a kernel of this target.

    Parameters
    ----------
    target
        The target.

    Returns
    -------
    Dialect or None
        A ``tile_core.emit.dialect.Dialect``, or ``None`` if the text cannot be emulated. What the
        backend's pipeline leaves as ``lowered`` is then a ``tile_core.abi.kernel_text.KernelText``.
    """


# --- testing ----------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def tile_strategies(target: Target) -> Mapping[str, str]:
    """Return programs for the fuzzer that use the names of ``tile_language``. Optional.

    Called when a target is fuzzed, of the target's owner only. The module is imported then: it may import Hypothesis.

    Parameters
    ----------
    target
        The target.

    Returns
    -------
    Mapping[str, str]
        From a strategy's name, words with hyphens, to ``"module:attribute"``: a Hypothesis strategy of
        ``tile_core.testing.case.Unit``. ``{}`` if there are none; ``None`` is not allowed. A name of the core's
        strategies hides it.
    """


@hookspec(firstresult=True)
def tile_cases(target: Target) -> Mapping[str, str]:
    """Return cases for the conformance kit that use the names of ``tile_language``. Optional.

    Called when the kit collects its cases for a target, of the target's owner only. The modules are imported then. What
    the core's tables say of ops holds for these cases as well: see ``tile_core.testing.case.Unit``.

    Parameters
    ----------
    target
        The target.

    Returns
    -------
    Mapping[str, str]
        From a table's name, words with hyphens, to ``"module:attribute"``: a function from the target to a sequence of
        ``tile_core.testing.case.Unit``, whose pairs of op and name no other unit has. ``{}`` if there are none;
        ``None`` is not allowed.
    """
