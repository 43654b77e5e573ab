"""Checks of MSL source: by rules, which `tile_metal.lint` has, and by clang."""

from metal_lint.clang import clang, clcpp_findings
from tile_metal.lint import Finding, lint

__all__ = ["Finding", "clang", "clcpp_findings", "lint"]
