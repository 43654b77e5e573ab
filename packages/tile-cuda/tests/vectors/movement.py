"""Matrices in shared memory, asynchronous copies, shuffles, votes."""

from itertools import product

import numpy as np

from .table import LANES, Expected, Vector, assembly, vector_operand

LANE = np.arange(LANES)
ADDRESS = "(unsigned)__cvta_generic_to_shared(smem + x[0] * 16)"
PATTERN = 0x7B7B7B7B


def vectors() -> list[Vector]:
    """All of them."""
    matrices = [
        make(n, trans) for n, trans in product((1, 2, 4), (False, True)) for make in (load_matrix, store_matrix)
    ]
    copies = [copy(16, "cg"), *(copy(n, "ca") for n in (4, 8, 16)), *(copy_zero(n) for n in (4, 8, 16))]
    shuffles = [shuffle(mode) for mode in ("idx", "up", "down", "bfly")]
    votes = [vote(how) for how in ("all", "any", "uni", "ballot")]
    return [*matrices, move_matrix(), *copies, *shuffles, *votes]


def load_matrix(n: int, trans: bool) -> Vector:
    opcode = f"ldmatrix.sync.aligned.m8n8.x{n}{'.trans' if trans else ''}.shared.b16"
    fill = "for (int i = 0; i < 8; i++) ((unsigned*)smem)[threadIdx.x * 8 + i] = x[1 + i]; __syncthreads(); "
    body = fill + assembly(f"{opcode} {vector_operand(0, n)}, [%{n}];", "r" * n, "", f'"r"({ADDRESS})')

    def cases(rng):
        return [np.concatenate([_slots(rng), _random(rng, 8)], axis=1) for _ in range(3)]

    def oracle(x, _):
        memory = np.ascontiguousarray(x[:, 1:]).view(np.uint16).reshape(64, 8)
        matrices = memory[x[: 8 * n, 0]].reshape(n, 8, 8)
        return Expected(_fragments(matrices, trans))

    return Vector(f"ldmatrix_x{n}{'_trans' * trans}", opcode, "matrix", body, 9, n, cases, oracle)


def store_matrix(n: int, trans: bool) -> Vector:
    opcode = f"stmatrix.sync.aligned.m8n8.x{n}{'.trans' if trans else ''}.shared.b16"
    fill = f"for (int i = 0; i < 8; i++) ((unsigned*)smem)[threadIdx.x * 8 + i] = {PATTERN}u; __syncthreads(); "
    operands = "{" + ",".join(f"%{1 + i}" for i in range(n)) + "}"
    given = ", ".join([f'"r"({ADDRESS})', *(f'"r"(x[{1 + i}])' for i in range(n))])
    store = f'asm volatile("{opcode} [%0], {operands};" : : {given} : "memory"); __syncthreads(); '
    body = fill + store + "for (int i = 0; i < 8; i++) y[i] = ((unsigned*)smem)[threadIdx.x * 8 + i];"

    def cases(rng):
        return [np.concatenate([_slots(rng), _random(rng, n)], axis=1) for _ in range(3)]

    def oracle(x, _):
        memory = np.full((64, 8), PATTERN & 0xFFFF, np.uint16)
        halves = np.ascontiguousarray(x[:, 1:]).view(np.uint16).reshape(LANES, n, 2)
        for m in range(n):
            matrix = halves[:, m].reshape(8, 8)
            memory[x[8 * m : 8 * m + 8, 0]] = matrix.T if trans else matrix
        return Expected(np.ascontiguousarray(memory).view(np.uint32).reshape(LANES, 8))

    return Vector(f"stmatrix_x{n}{'_trans' * trans}", opcode, "matrix", body, 1 + n, 8, cases, oracle)


def move_matrix() -> Vector:
    opcode = "movmatrix.sync.aligned.m8n8.trans.b16"

    def oracle(x, _):
        return Expected(_fragments(np.ascontiguousarray(x).view(np.uint16).reshape(1, 8, 8), True))

    body = assembly(f"{opcode} %0, %1;", "r", "r")
    return Vector("movmatrix", opcode, "matrix", body, 1, 1, lambda rng: [_random(rng, 1) for _ in range(3)], oracle)


def _slots(rng):
    return rng.permutation(64)[:LANES].astype(np.uint32)[:, None]


def _random(rng, n):
    return rng.integers(0, 2**32, (LANES, n), dtype=np.uint32)


def _fragments(matrices: np.ndarray, trans: bool) -> np.ndarray:
    parts = [np.ascontiguousarray(m.T if trans else m).reshape(LANES, 2) for m in matrices]
    return np.concatenate([np.ascontiguousarray(p).view(np.uint32) for p in parts], axis=1)


# ------------------------------------------------------------------------------------------------------- copies

FILL = f"for (int i = 0; i < 4; i++) ((unsigned*)smem)[threadIdx.x * 4 + i] = {PATTERN}u; __syncthreads(); "
TO = "(unsigned)__cvta_generic_to_shared(smem + (threadIdx.x ^ 5) * 16)"
DONE = "for (int i = 0; i < 4; i++) y[i] = ((unsigned*)smem)[(threadIdx.x ^ 5) * 4 + i];"


def copy(size: int, cache: str) -> Vector:
    opcode = f"cp.async.{cache}.shared.global"
    body = (
        f'{FILL}asm volatile("{opcode} [%0], [%1], %2;" : : "r"({TO}), "l"(x), "n"({size}) : "memory"); '
        'asm volatile("cp.async.commit_group;" : : : "memory"); '
        f'asm volatile("cp.async.wait_group %0;" : : "n"(0) : "memory"); {DONE}'
    )
    return Vector(f"cp_async_{cache}_{size}", opcode, "copy", body, 4, 4, lambda rng: [_random(rng, 4)],
                  lambda x, _: Expected(_copied(x, size, np.full(LANES, size))))  # fmt: skip


def copy_zero(size: int) -> Vector:
    opcode = f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global"
    body = (
        f'{FILL}asm volatile("{opcode} [%0], [%1], {size}, %2;" : : "r"({TO}), "l"(x), "r"(x[4]) : "memory"); '
        f'asm volatile("cp.async.wait_all;" : : : "memory"); {DONE}'
    )

    def cases(rng):
        valid = rng.integers(0, size, LANES, endpoint=True).astype(np.uint32)
        valid[:2] = 0, size
        rest = np.zeros((LANES, 3), np.uint32)
        return [np.concatenate([_random(rng, 4), valid[:, None], rest], axis=1)]

    return Vector(f"cp_async_zero_{size}", opcode, "copy", body, 8, 4, cases,
                  lambda x, _: Expected(_copied(x, size, x[:, 4])))  # fmt: skip


def _copied(x, size, valid):
    data = np.ascontiguousarray(x[:, :4]).view(np.uint8).reshape(LANES, 16)
    out = np.full((LANES, 16), PATTERN & 0xFF, np.uint8)
    for lane in range(LANES):
        out[lane, :size] = 0
        out[lane, : int(valid[lane])] = data[lane, : int(valid[lane])]
    return out.view(np.uint32)


# ------------------------------------------------------------------------------------------------ shuffles, votes


def shuffle(mode: str) -> Vector:
    opcode = f"shfl.sync.{mode}.b32"
    template = f"{{ .reg .pred p; {opcode} %0|p, %2, %3, %4, %5; selp.u32 %1, 1, 0, p; }}"
    body = f"if (x[3] >> threadIdx.x & 1) {{ {assembly(template, 'rr', 'rrrr')} }} else y[0] = y[1] = 0;"

    def cases(rng):
        drawn = []
        for width, mask in ((32, 2**32 - 1), (8, 2**32 - 1), (2, 2**32 - 1), (16, 0xFFFF0000), (4, 0x0F00F0F0)):
            by = rng.integers(0, 64 if mask == 2**32 - 1 else width, LANES)
            control = np.full(LANES, (32 - width) << 8 | (0 if mode == "up" else 31))
            drawn.append(_columns(rng.integers(0, 2**32, LANES), by, control, np.full(LANES, mask)))
        bounds = np.full(LANES, 9 if mode != "up" else 3)
        drawn.append(
            _columns(rng.integers(0, 2**32, LANES), rng.integers(0, 32, LANES), bounds, np.full(LANES, 2**32 - 1))
        )
        return drawn

    def oracle(x, _):
        value, by, control, mask = (x[:, i].astype(np.int64) for i in range(4))
        by, bound, segment = by & 31, control & 31, control >> 8 & 31
        first = LANE & segment
        last = first | (bound & ~segment)
        source = {"idx": first | (by & ~segment), "up": LANE - by, "down": LANE + by, "bfly": LANE ^ by}[mode]
        inside = source >= last if mode == "up" else source <= last
        takes = np.where(inside, source, LANE)
        part = (mask >> LANE & 1).astype(bool)
        out = np.stack([np.where(part, value[takes], 0), np.where(part, inside, 0)], axis=1)
        return Expected(out.astype(np.uint32))

    return Vector(f"shfl_{mode}", opcode, "warp", body, 4, 2, cases, oracle)


def vote(how: str) -> Vector:
    opcode = f"vote.sync.{how}.{'b32' if how == 'ballot' else 'pred'}"
    test = "setp.ne.u32 p, %1, 0;"
    if how == "ballot":
        template = f"{{ .reg .pred p; {test} {opcode} %0, p, %2; }}"
    else:
        template = f"{{ .reg .pred p, q; {test} {opcode} q, p, %2; selp.u32 %0, 1, 0, q; }}"
    body = f"if (x[1] >> threadIdx.x & 1) {{ {assembly(template, 'r', 'rr')} }} else y[0] = 7;"

    def cases(rng):
        drawn = []
        for share in (0.0, 0.5, 0.97, 1.0):
            for mask in (2**32 - 1, int(rng.integers(1, 2**32))):
                drawn.append(_columns(rng.random(LANES) < share, np.full(LANES, mask)))
        return drawn

    def oracle(x, _):
        part = (x[:, 1] >> LANE.astype(np.uint32) & 1).astype(bool)
        yes = part & (x[:, 0] != 0)
        ballot = int((yes.astype(np.uint64) << LANE.astype(np.uint64)).sum())
        every, none = yes.sum() == part.sum(), not yes.any()
        answer = {"all": int(every), "any": int(not none), "uni": int(every or none), "ballot": ballot}[how]
        return Expected(np.where(part, answer, 7).astype(np.uint32)[:, None])

    return Vector(f"vote_{how}", opcode, "warp", body, 2, 1, cases, oracle)


def _columns(*columns):
    return np.stack([np.asarray(c).astype(np.uint32) for c in columns], axis=1)
