"""The one argument that travels through all stages.

Each stage is a pure function of a frozen ``Context`` and its input: nothing after this queries a device, an environment
variable or a plugin again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tile_core.manifest import BackendManifest
from tile_core.records import dataclass
from tile_core.target import Capabilities, Target
from tile_runtime.knobs import Knobs

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Context:
    """Everything that a stage may depend on other than its input.

    Parameters
    ----------
    target
        What to compile for.
    backend
        Manifest of the backend that owns the target.
    options
        An instance of that backend's options type, or ``None`` if it has none.
    knobs
        The process's settings when the compilation began.
    """

    target: Target
    backend: BackendManifest
    options: Any = None
    knobs: Knobs = dataclasses.field(default_factory=Knobs)

    @property
    def capabilities(self) -> Capabilities:
        """The target's capabilities."""
        return self.target.capabilities
