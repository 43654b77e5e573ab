"""The framework for products on matrix instructions, shared by every target that has them.

A backend declares its instructions (``instruction.py``), where lanes hold their operands, and how it loads an operand
into registers; the plan of a call, the accumulators and the structure of the lowering are here.
"""
