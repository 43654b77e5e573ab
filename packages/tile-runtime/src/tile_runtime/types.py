"""Names of arrays and arguments for annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
"""A NumPy array, or one of NumPy's scalars where an array has rank 0."""

Argument: TypeAlias = Any
"""What a kernel is called with: an array of any library, a number, or a pointer."""

Torch: TypeAlias = Any
"""The module ``torch``."""

TorchTensor: TypeAlias = Any
"""A tensor of torch."""

DTypeLike: TypeAlias = Any
"""An element type by any of its names: ``T.float16``, text, or a type of NumPy, ml_dtypes or torch."""
