"""The test machine, which executes the output of SIMT passes before code emission.

``tile_core.reference`` gives a program as it was traced its meaning. Between there and a text lie forms of it that no
device executes: tile ops beside asynchronous copies, the code of one thread with shuffles, wide accesses, barriers and
instructions of a target. ``Machine`` executes all of these over NumPy, and refuses what hardware does not do reliably:
an access outside a buffer or a misaligned one, a barrier or a shuffle that a part of the threads reaches, a slot
that is read before its copy has arrived, and with ``races`` two threads that touch one element in one step.

``run`` takes all threads through the statements side by side; ``scatter`` interleaves them between barriers at random.
The semantics of a target's instruction is a function supplied by its backend's tests. Of production code the machine
takes how the IR is read, and the meaning of tile ops as loops.
"""

from machine.address import Address
from machine.threads import Machine
from machine.values import element_of, numpy_type

__all__ = ["Address", "Machine", "element_of", "numpy_type"]
