"""Multicast products in clusters, under the emulator and the assembler."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from ..emit.nvrtc import assemble
from .multicast import CLUSTERS

pytestmark = pytest.mark.sweep(8)


class TestClusters(ZooTests):
    zoo = CLUSTERS


@pytest.mark.parametrize("name", [e.name for e in CLUSTERS.entries])
def test_the_assembler_serialises_no_product(name):
    text = CLUSTERS.text_of(name).text
    assert "__cluster_dims__(" in text
    assert "multicast_cluster(&" in text
    assert "(C7" not in assemble(text, "sm_90a")
