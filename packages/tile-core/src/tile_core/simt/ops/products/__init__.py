"""The frame of products on matrix instructions: what every target that has such instructions shares.

A backend states its instructions (``instruction.py``) and where lanes hold their operands, and how it reads an operand
into registers; the plan of a call, the accumulators and the shape of the lowering are here.
"""
