"""Backends: the contract (``hookspecs``), their declarations (``manifest``) and discovery (``manager``)."""
