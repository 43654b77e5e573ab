"""Tensor maps of a launch, made by the driver after a check of their rules."""

from __future__ import annotations

from tile_cuda_runtime.api import Driver
from tile_cuda_runtime.errors import TensorMapRefused
from tile_cuda_runtime.tensor_map import TensorMap, broken_rules
from tile_runtime.abi.descriptor import PlacedDescriptor
from tile_runtime.abi.kernel_text import LaunchFacts, ParamFact
from tile_runtime.texts.constants import LaunchConstants


def constants_of(facts: LaunchFacts, driver: Driver, ordinal: int) -> LaunchConstants:
    """Return a factory of the tensor maps of a function's launches on a device.

    Raises
    ------
    TensorMapRefused
        At a launch, for an address, extents or strides that the device's copies cannot have.
    """
    # An array without elements may have no address, and no map has its extents.
    zeros = driver.zeros(ordinal) if any(p.descriptor for p in facts.params) else 0

    def encode(param: ParamFact, placed: PlacedDescriptor) -> bytes:
        fields = TensorMap.of(placed)
        fields = fields.of_zeros(zeros) if fields.is_empty else fields
        for rule in broken_rules(fields):
            shown = {"what": rule.what, "expected": rule.expected, "found": rule.found(fields)}
            raise TensorMapRefused(
                kernel=facts.kernel, argument=placed.descriptor.source, where=facts.where, **shown
            )  # fmt: skip
        with driver.entered(ordinal):
            return driver.encode_map(fields)

    return LaunchConstants(facts, encode)
