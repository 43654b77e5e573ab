# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""Functions that accept keywords of TileLang, and hints."""

from typing import Any

def annotate_compile_flags(*args: Any, **keywords: Any) -> None:
    """flags of a vendor's compiler; options of the target have names of their own"""

def annotate_consumer_reg_alloc(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def annotate_min_blocks_per_sm(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def annotate_pass_configs(*args: Any, **keywords: Any) -> None:
    """notes for another compiler's passes"""

def annotate_producer_reg_dealloc(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def annotate_restrict_buffers(*args: Any, **keywords: Any) -> None:
    """whether arrays overlap is checked at every call"""

def annotate_ws_schedule(*args: Any, **keywords: Any) -> None:
    """tile chooses the roles of warps; results do not depend on them"""

def deallocate_tmem(*args: Any, **keywords: Any) -> None:
    """columns of tensor memory are freed at the end of the block"""

def dec_max_nreg(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def disable_warp_group_reg_alloc(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def func_attr(*args: Any, **keywords: Any) -> None:
    """notes for another compiler's passes"""

def inc_max_nreg(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def no_set_max_nreg(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def pdl_sync(*args: Any, **keywords: Any) -> None:
    """launches are in order: one that follows another in a stream sees all that it wrote"""

def pdl_trigger(*args: Any, **keywords: Any) -> None:
    """launches are in order: the next one may not begin earlier than tile lets it"""

def set_max_nreg(*args: Any, **keywords: Any) -> None:
    """the target's compiler distributes registers; results do not depend on it"""

def tcgen05_after_thread_sync(*args: Any, **keywords: Any) -> None:
    """fences between products and threads are placed by tile"""

def tcgen05_before_thread_sync(*args: Any, **keywords: Any) -> None:
    """fences between products and threads are placed by tile"""

def wait_wgmma(*args: Any, **keywords: Any) -> None:
    """products have finished where their results are read"""
