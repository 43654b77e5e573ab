"""Send decorated functions to other processes by name, as Python sends functions."""

from __future__ import annotations

import sys
from typing import Any

from tile_core.errors.language import NotImportable


class ByName:
    """Base of decorated functions, which have ``functools.update_wrapper``'s attributes.

    A copy is the object itself. In another process it is what the name means there: nothing of it is sent, neither
    kernels nor what it closes over.
    """

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return self

    def __reduce__(self) -> str:
        """Return the name, which is all that a pickle holds.

        Raises
        ------
        NotImportable
            If another process would not find this object by it.
        """
        facts: Any = self
        module, name = str(facts.__module__), str(facts.__qualname__)
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            local = "it is defined inside of a function"
            reason = local if "<locals>" in name else f"{module}.{name} is not this object"
            raise NotImportable(name=name, reason=reason)
        return name
