"""Cases of the conformance kit for the name that this package adds to ``T``."""

from tile_core.testing.case import one, output, refused, tensor
from tile_core.testing.data import numbers, values


def units(target):
    doubled = one(
        "sample", "twice",
        [tensor("A", "int32", 70), output("B", "int32", 70)],
        "for i in T.Parallel(70):\n    B[i] = T.sample_twice(A[i])",
        lambda d: values(d["A"], "int32") * 2,
        {"": lambda rng: {"A": numbers(rng, (70,), "int32")}},
        threads=min(128, target.capabilities.max_threads),
    )  # fmt: skip
    return [doubled, refused("sample", "illegal-count", "x = T.sample_twice(1, 2)", "K126")]
