"""An agent: warps of a block that execute a translated kernel together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.analysis.phases import OF_CLUSTER, PhaseError, PhaseObject
from tile_core.simt.barrier_proof.kernel_state import Access, KernelState

#: Statements that one execution may have.
_MOST_STEPS = 50_000


class TooLong(Exception):
    """An execution has too many statements."""


class Agent:
    """Warps of one block; its methods are the statements of the translated kernel."""

    def __init__(self, state: KernelState, number: int, rank: int, kind: int, threads: list[int]) -> None:
        self.state, self.number, self.rank, self.kind, self.weight = state, number, rank, kind, len(threads)
        self.thread = threads[0]
        self.suffix = state.suffixes[number]
        self.at = ""
        self.joined: list[int] | None = None
        self.groups = state.groups[number]
        #: Registers that products in flight write, by the end of these: those of groups, and then of the open one.
        self.registers: dict[str, list[set[str]]] = {}
        self.met = self.completed = 0
        self.meets = False
        #: Registers of products that the agent has accessed since the last fence of registers; ``None`` before it.
        self.dirty: set[str] | None = None
        #: The time before the first access by threads since all threads of a warp have met; ``None`` without any.
        self.apart: int | None = None
        self.partial = False

    def lanes(self, split: int) -> Iterator[int]:
        """Yield a thread for each group of lanes that behave equally."""
        whole = self.weight
        for thread, count in self.state.classes.lanes[split][self.kind]:
            self.weight, self.partial = count, count < whole
            yield thread
        self.weight, self.partial = whole, False

    def threads(self, split: int) -> list[int]:
        """Return a thread for each group of lanes that behave equally."""
        return [thread for thread, _ in self.state.classes.lanes[split][self.kind]]

    def object(self, step: str, barrier: int, index: int, rank: int | None = None) -> PhaseObject:
        """Return an object of a barrier."""
        state = self.state
        state.steps += 1
        if state.steps > _MOST_STEPS:
            raise TooLong
        name, count = state.kernel.barriers[barrier]
        self.at = f"{step} {name}[{index}]"
        if not 0 <= index < count:
            raise PhaseError(name, f"object {index} of {count}")
        block = self.rank if rank is None else rank
        if block not in state.ranks:
            raise PhaseError(name, f"an arrival in block {block} of {len(state.ranks)}")
        return state.objects[block][state.starts[barrier] + index]

    def ready(self, obj: PhaseObject) -> PhaseObject:
        """Require that an object was initialized before."""
        made = self.state.made.get(obj.number)
        if made is None or self.state.phases.clocks[self.number][made[0]] < made[1]:
            raise PhaseError(obj.name, "it may be used before it is initialized")
        self.state.used.setdefault(obj.number, {})[self.number] = self.state.phases.clocks[self.number][self.number] + 1
        return obj

    # Barriers

    def init(self, barrier: int, index: int, arrivals: int) -> None:
        """Initialize an object."""
        obj, state = self.object("initialize", barrier, index), self.state
        if obj.number in state.made:
            raise PhaseError(obj.name, "it is initialized already")
        obj.arrivals = obj.pending = arrivals
        state.first[obj.number] = obj.phase
        state.made[obj.number] = (self.number, state.phases.event(self.number))
        state.visible.pop(obj.number, None)

    def drop(self, barrier: int, index: int) -> None:
        """Invalidate an object, which may be initialized again."""
        obj = self.ready(self.object("invalidate", barrier, index))
        if obj.pending != obj.arrivals or obj.announced or obj.delivered:
            raise PhaseError(obj.name, "it is invalidated within a phase")
        clock = self.state.phases.clocks[self.number]
        others = self.state.used.pop(obj.number).items()
        if any(clock[who] < time for who, time in others if who != self.number):
            raise PhaseError(obj.name, "it may be invalidated while it is in use")
        del self.state.made[obj.number]

    def init_fence(self) -> None:
        """Make objects that the agent has initialized visible to copies."""
        self.state.steps += 1
        time = self.state.phases.event(self.number)
        for n, made in self.state.made.items():
            if made[0] == self.number:
                self.state.visible.setdefault(n, (self.number, time))

    def counting(self, obj: PhaseObject) -> PhaseObject:
        """Require that an object is visible to asynchronous instructions."""
        made = self.state.visible.get(self.ready(obj).number)
        if made is None or self.state.phases.clocks[self.number][made[0]] < made[1]:
            raise PhaseError(obj.name, "no fence makes its initialization visible to asynchronous instructions")
        return obj

    def wait(self, barrier: int, index: int, parity: int) -> bool:
        """Wait for a phase; return whether it has ended."""
        obj = self.ready(self.object(f"wait for parity {parity} of", barrier, index))
        parity = parity + self.state.first[obj.number] % 2 if parity in (0, 1) else parity
        parity = parity % 2 if parity in (0, 1, 2) else parity
        if parity in (0, 1) and (obj.phase - 1) % 2 != parity:
            self.state.steps -= 1
            return False
        self.state.phases.wait([self.number], obj, parity)
        return True

    def arrive(self, barrier: int, index: int, rank: int | None = None) -> None:
        """Arrive once for each thread.

        Some lanes of a warp signal none of its accesses since all of its threads have met.
        """
        obj, clock = self.ready(self.object("arrive at", barrier, index, rank)), self.state.phases.clocks[self.number]
        known = clock[self.number]
        if self.partial and self.apart is not None:
            clock[self.number] = self.apart - 1  # the arrival itself is an event
        self.state.phases.arrive([self.number], obj, self.weight)
        clock[self.number] = max(clock[self.number], known + 1)
        if rank not in (None, self.rank):
            self.state.sent[rank, self.number] = self.state.phases.clocks[self.number][self.number]

    def converge(self) -> None:
        """Let the threads of each warp wait for each other."""
        self.state.steps += 1
        self.apart = None

    def expect(self, barrier: int, index: int, size: int) -> None:
        """Arrive with expected bytes."""
        obj = self.ready(self.object(f"expect {size} bytes at", barrier, index))
        self.state.phases.announce(self.number, obj, size * self.weight)
        self.state.phases.arrive([self.number], obj, self.weight)

    def announce(self, barrier: int, index: int, size: int) -> None:
        """Expect bytes."""
        obj = self.ready(self.object(f"expect {size} bytes at", barrier, index))
        self.state.phases.announce(self.number, obj, size * self.weight)

    def copy(
        self, barrier: int, index: int, size: int, buffer: str, first: int, count: int, mask: int | None = None
    ) -> None:  # fmt: skip
        """Issue copies that an object counts, in the blocks of a mask."""
        for rank in (self.rank,) if mask is None else (r for r in self.state.ranks if mask >> r & 1):
            obj = self.counting(self.object(f"copy {size} bytes to {buffer} for", barrier, index, rank))
            where = ((first, count),)
            if buffer in self.state.aliases:
                self.state.enter(self.number, rank, buffer)
            self.state.free(rank, buffer, where, obj.name)
            name = self.state.named(buffer, rank)
            if rank != self.rank:
                self.state.sent[rank, obj.number] = obj.phase + 1
            if not self.state.phases.copy(self.number, obj, size * self.weight, name, where):
                raise PhaseError(obj.name, f"a copy may write {buffer} while it is in use")

    def complete(self, barrier: int, index: int, mask: int | None = None) -> None:
        """Arrive at an object when earlier products are complete."""
        open_ = self.groups.pop("products", [])
        read = [(buffer + self.suffix, where) for group in open_ for buffer, where, _ in group]
        self.registers.pop("products", None)
        self.completed += 1
        self.state.tensor.arrive(self.number, self.completed)
        ranks = (self.rank,) if mask is None else tuple(r for r in self.state.ranks if mask >> r & 1)
        step = "arrive after products at"
        objects = [self.counting(self.object(step, barrier, index, rank)) for rank in ranks]
        self.state.phases.arrive_complete(self.number, objects, self.completed, read)
        column = self.state.phases.products + self.number
        self.state.sent |= {(rank, column): self.completed for rank in ranks if rank != self.rank}

    def sync(self, number: int, threads: int) -> bool:
        """Wait at a barrier of threads; return whether all have arrived."""
        state = self.state
        if self.joined is not None:
            done = not self.joined
            self.joined = None if done else self.joined
            self.apart = None if done else self.apart
            return done
        self.at = f"wait at barrier {number} of {threads} threads"
        state.steps += 1
        waiting = state.waiting.setdefault((self.rank, number), [])
        self.joined = [1]
        waiting.append((self.number, self.weight, self.joined))
        if sum(weight for _, weight, _ in waiting) >= threads:
            state.phases.meet([n for n, _, _ in waiting])
            for n, _, _ in waiting:
                state.joined[n] = state.phases.clocks[n][n]
            for _, _, joined in waiting:
                joined.clear()
            waiting.clear()
        return self.sync(number, threads)

    def cluster_arrive(self, relaxed: bool) -> None:
        """Arrive at the barrier of the cluster."""
        state, self.at = self.state, "arrive at the barrier of the cluster"
        state.steps += 1
        if self.meets:
            raise PhaseError(OF_CLUSTER, "a thread arrives twice without a wait")
        self.meets = True
        self.met += 1
        meeting = state.meetings.setdefault(self.met, ([], []))
        meeting[1].append(self.weight)
        if not relaxed:
            meeting[0].append(state.phases.knowledge(self.number, self.rank))

    def cluster_wait(self) -> bool:
        """Wait at the barrier of the cluster; return whether all have arrived."""
        self.at = "wait at the barrier of the cluster"
        if not self.meets:
            raise PhaseError(OF_CLUSTER, "a thread waits without an arrival")
        known, weights = self.state.meetings[self.met]
        if sum(weights) < self.state.all_threads:
            return False
        self.state.steps += 1
        self.meets = False
        self.state.phases.learn(self.number, known)
        self.state.joined[self.number] = self.state.phases.clocks[self.number][self.number]
        self.apart = None
        return True

    # Groups and accesses

    def _open(self, until: str) -> list[Access]:
        return self.groups.setdefault(until, [[]])[-1]

    def commit(self, until: str) -> None:
        """End a group."""
        self.state.steps += 1
        self.groups.setdefault(until, [[]]).append([])
        self.registers.setdefault(until, [set()]).append(set())

    def settle(self, until: str, pending: int) -> None:
        """Wait for all groups but the latest."""
        self.state.steps += 1
        self.at = f"wait for all but {pending} groups"
        groups, registers = self.groups.get(until, [[]]), self.registers.get(until, [set()])
        done = max(0, len(groups) - 1 - pending)
        for buffer, where, writes in (x for group in groups[:done] for x in group):
            name = buffer + self.suffix
            if writes:
                self.state.unfenced.setdefault((name, where), set()).add(self.number)
                self.state.filled.setdefault(name, {})[where, self.number] = self.state.phases.event(self.number)
            else:
                self.state.phases.access([self.number], name, where, False)
        self.state.require_ordered()
        self.groups[until] = groups[done:]
        self.registers[until] = registers[max(0, len(registers) - 1 - pending) :]

    def use(self, buffer: str, slot: int, size: int, into: Sequence[str], of: Sequence[str]) -> None:
        """Issue a product that reads a slot, and adds to registers, until its group ends."""
        self.state.steps += 1
        for name in (*into, *of):
            if self.dirty is None or name in self.dirty:
                self.at = f"issue a product with {name}"
                raise PhaseError(name, "no fence follows its accesses by threads")
        if into:
            self.registers.setdefault("products", [set()])[-1].update(into)
        self.at = f"read {buffer}"
        where = ((slot * size, size),)
        open_ = self._open("products")
        if (buffer, where, False) in open_:
            return
        if buffer in self.state.aliases:
            self.state.enter(self.number, self.rank, buffer)
        self.state.require_content(self.number, buffer, where)
        self.state.require_filled(self.number, buffer, where)
        self.state.require_fenced(self.number, buffer, where)
        self.state.phases.access([self.number], buffer + self.suffix, where, False)
        self.state.require_ordered()
        open_.append((buffer, where, False))

    def store(self, buffer: str, slot: int, size: int) -> None:
        """Issue a copy out of a slot that a group ends."""
        self.state.steps += 1
        self.at = f"copy from {buffer}"
        where = ((slot * size, size),)
        if buffer in self.state.aliases:
            self.state.enter(self.number, self.rank, buffer)
        self.state.require_fenced(self.number, buffer, where)
        self._open("read").append((buffer, where, False))

    def fill(self, buffer: str, slot: int, size: int) -> None:
        """Issue a copy by the thread that a group counts."""
        self.write(buffer, slot, size, "copy to")
        self._open("group").append((buffer, ((slot * size, size),), True))

    def write(self, buffer: str, slot: int, size: int, step: str = "write") -> None:
        """Write a slot by the threads themselves."""
        state, where = self.state, ((slot * size, size),)
        name = buffer + self.suffix
        self.at = f"{step} {buffer}"
        self.apart = self.clock() if self.apart is None else self.apart
        if buffer in state.aliases:
            state.enter(self.number, self.rank, buffer)
        state.free(self.rank, buffer, where, buffer)
        if buffer in state.copied:
            self.touch(buffer, slot, size)
        elif buffer in state.rings:
            state.require_free(self.number, buffer, where)
        elif state.phases.conflicts(self.number, name, where):
            raise PhaseError(buffer, "it may be written while it is in use")
        state.steps += 1
        if step == "write":
            state.unfenced.setdefault((name, where), set()).add(self.number)
            if buffer in state.rings:
                state.filled.setdefault(name, {})[where, self.number] = state.phases.event(self.number)

    def fence(self) -> None:
        """Make the agent's writes visible to the asynchronous proxy."""
        self.state.steps += 1
        time = self.state.phases.event(self.number)
        for key, agents in self.state.unfenced.items():
            if self.number in agents:
                agents.discard(self.number)
                self.state.fenced.setdefault(key, {})[self.number] = time

    def enter(self, buffer: str) -> None:
        """Access a buffer that shares bytes with others by the threads themselves."""
        self.state.steps += 1
        self.at = f"access {buffer}"
        if buffer in self.state.aliases:
            self.state.enter(self.number, self.rank, buffer)

    def read(self, buffer: str, slot: int, size: int) -> None:
        """Read a slot without an instruction of the whole warp."""
        self.apart = self.clock() if self.apart is None else self.apart
        self.touch(buffer, slot, size)

    def clock(self) -> int:
        """Return the time of the agent's latest event."""
        return self.state.phases.clocks[self.number][self.number]

    def touch(self, buffer: str, slot: int, size: int) -> None:
        """Access a slot by the threads themselves."""
        self.state.steps += 1
        self.at = f"access {buffer}"
        if buffer in self.state.aliases:
            self.state.enter(self.number, self.rank, buffer)
        where = ((slot * size, size),)
        for group in self.groups.get("group", ()):
            if (buffer, where, True) in group:
                raise PhaseError(buffer, "a thread's own copy to it may be in flight")
        if buffer in self.state.rings:
            self.state.require_filled(self.number, buffer, where)
        if buffer in self.state.copied or buffer in self.state.rings:
            self.state.phases.access([self.number], buffer + self.suffix, where, False)
            self.state.require_ordered()

    def tensor(self, first: int, count: int, writes: bool) -> None:
        """Access columns of tensor memory by the threads themselves."""
        self.state.steps += 1
        self.at = "access tensor memory"
        self.state.tensor.access(self.number, ((first, count),), writes)

    def multiply(self, first: int, count: int, writes: bool, of_pair: bool) -> None:
        """Issue a product that accesses columns of tensor memory, in both blocks of a pair."""
        self.state.steps += 1
        self.at = "issue a product in tensor memory"
        ranks = sorted({self.rank, self.rank ^ 1}) if of_pair else [self.rank]
        joined = self.state.joined[self.number]
        self.state.tensor.multiply(self.number, ranks, ((first, count),), writes, joined)

    def allocate_tensor(self) -> None:
        """Allocate tensor memory of all blocks of the cluster."""
        self.state.steps += 1
        self.at = "allocate tensor memory"
        if not self.met or self.meets:
            raise PhaseError(OF_CLUSTER, "another block may not run yet")

    def free_tensor(self, of_cluster: bool) -> None:
        """Free tensor memory after all accesses."""
        self.state.steps += 1
        self.at = "free tensor memory"
        self.state.tensor.free(self.number, of_cluster)

    def register_fence(self) -> None:
        """Order the agent's accesses to registers before products."""
        self.dirty = set()

    def operand(self, buffer: str) -> None:
        """Write registers that products read."""
        if self.dirty is not None:
            self.dirty.add(buffer)

    def register(self, buffer: str) -> None:
        """Access registers that products may still write."""
        self.operand(buffer)
        for until, groups in self.registers.items():
            if any(buffer in found for found in groups):
                self.at = f"access {buffer}"
                raise PhaseError(buffer, f"{until} in flight may still write it")
