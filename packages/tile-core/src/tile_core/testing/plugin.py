"""The pytest plugin: options, one session per run, a summary per op.

It is inactive unless a test uses ``tile_kit``: it only adds options.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tile_core.testing.case import Case
    from tile_core.testing.run import Session

KINDS = ("right", "compiled", "refused", "skipped", "wrong")
_OUTCOME = "tile_outcome"
_RUNTIME = "one of its runtimes, the first by default; text or build: generate or build source code, and launch nothing"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the conformance kit."""
    group = parser.getgroup("tile", "tile conformance kit (pytest --pyargs tile_core.testing)")
    group.addoption("--tile-backend", default="cpu", metavar="TARGET", help="target to test, for example cpu")
    group.addoption("--tile-runtime", default=None, metavar="NAME", help=_RUNTIME)
    group.addoption(
        "--tile-part",
        default=None,
        metavar="K/N",
        help="only the K-th of N parts of the kit; each has kernels of every op",
    )
    asked = "an option of the target's backend; may be repeated"
    group.addoption("--tile-option", action="append", metavar="NAME=VALUE", help=asked)
    group.addoption("--tile-seed", type=int, default=0, metavar="N", help="seed of all random data")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Announce the cases to the session: cases of one kernel share its compilation."""
    cases = [case for case in map(_case_of, session.items) if case is not None]
    if cases:
        session.config.stash[_SELECTED] = cases


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of other parts (``--tile-part``)."""
    part = config.getoption("tile_part")
    if part is None:
        return
    kept = _in_part([case for case in map(_case_of, items) if case is not None], part)
    chosen = [item for item in items if (case := _case_of(item)) is None or (case.unit.op, case.unit.name) in kept]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _in_part(cases: list[Case], part: str) -> set[tuple[str, str]]:
    """Return the kernels of a part: each N-th of every op, at least one.

    All parts together are the whole suite.
    """
    number, _, count = part.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--tile-part {part}: expected K/N with 1 <= K <= N, for example 1/8")
    by_op: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        if case.unit.name not in by_op[case.unit.op]:
            by_op[case.unit.op].append(case.unit.name)
    kept = set()
    for op, names in by_op.items():
        mine = names[int(number) - 1 :: int(count)] or names[int(number) % len(names) :][:1]
        kept |= {(op, name) for name in mine}
    return kept


@pytest.fixture(scope="session")
def tile_kit(request: pytest.FixtureRequest) -> Session:
    """The target and runtime that the options name."""
    from tile_core.pairs import pairs
    from tile_core.testing.run import Session

    config = request.config
    options = pairs("--tile-option", config.getoption("tile_option"), "numerics=strict") or None
    facts = [config.getoption(f"tile_{name}") for name in ("backend", "runtime", "seed")]
    target, runtime, seed = facts
    kit = Session(target, runtime, seed, options=options)
    kit.select(config.stash.get(_SELECTED, []))  # type: ignore[arg-type]
    return kit


def check(kit: Session, case: Case, item: pytest.Item) -> None:
    """Run a case and make its outcome the test's.

    Parameters
    ----------
    kit
        The session.
    case
        The case.
    item
        The test: its properties, which a JUnit report shows, get target, runtime, op, outcome and the reason of a
        refusal.
    """
    __tracebackhide__ = True
    outcome = kit.run(case)
    where = [("tile_target", kit.asked), ("tile_runtime", kit.runtime or "its first runtime")]
    item.user_properties += [*where, ("tile_op", case.unit.op), (_OUTCOME, outcome.kind)]
    if outcome.kind == "skipped":
        pytest.skip(outcome.detail)
    if outcome.kind == "refused":
        item.user_properties.append(("tile_refusal", outcome.detail))
    if outcome.kind == "wrong":
        name = f"tile_core.testing.test_conformance::test_case[{case.id}]"
        runtime = f" --tile-runtime {kit.runtime}" if kit.runtime else ""
        options = f"--tile-backend {kit.target.text}{runtime} --tile-seed {kit.seed}"
        options += "".join(f" --tile-option {name}={value}" for name, value in (kit.options or {}).items())
        pytest.fail(f"{outcome.detail}\nagain: pytest --pyargs '{name}' {options}", pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count a case; with several processes, in the one that reports."""
    properties = dict(report.user_properties)
    kind = properties.get(_OUTCOME)
    if kind is not None and report.when == "call":
        _counts[str(properties["tile_op"])][str(kind)] += 1


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the counts of right, refused, skipped and wrong parts per op.

    Without launches, compiled parts are counted instead of right ones.
    """
    if not _counts:
        return
    target, runtime = config.getoption("tile_backend"), config.getoption("tile_runtime") or "its first runtime"
    write = terminalreporter.write_line
    terminalreporter.section(f"tile conformance: {target}, {runtime}, seed {config.getoption('tile_seed')}")
    width = max(len("all ops"), *map(len, _counts))
    total = sum(_counts.values(), Counter())
    kinds = [kind for kind in KINDS if kind != "compiled" or total[kind]]
    write(f"{'op':<{width}} " + "".join(f"{k:>9}" for k in kinds))
    for op in sorted(_counts):
        write(f"{op:<{width}} " + "".join(f"{_counts[op][k] or '-':>9}" for k in kinds))
    write(f"{'all ops':<{width}} " + "".join(f"{total[k] or '-':>9}" for k in kinds))


def pytest_unconfigure() -> None:
    """Forget the counts: tests of the kit run several sessions in one process."""
    _counts.clear()


def _case_of(item: pytest.Item) -> Case | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("tile_case") if callspec is not None else None


_SELECTED = pytest.StashKey[list[Any]]()
_counts: dict[str, Counter[str]] = defaultdict(Counter)
