"""Backends: the contract (``hookspecs``), what they declare (``manifest``) and how they are found (``manager``)."""
