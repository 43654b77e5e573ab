"""A report as one page of HTML that loads nothing: annotated source, pictures, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tile_core.layout.base import LayoutMap
from tile_core.layout.draw import to_svg
from tile_core.reports.annotations import Note, notes_of
from tile_core.reports.block import BlockFacts
from tile_core.reports.facts import Facts
from tile_core.reports.html import as_html
from tile_core.reports.parts import Section, parts_of, pipelined
from tile_core.reports.pictures import memory, timeline
from tile_core.reports.timeline import USE, timeline_of
from tile_core.simt.pipelining.schedule import Schedule
from tile_runtime import markup
from tile_runtime.traces import short_name

_ROWS, _COLUMNS = 16, 32
"""Elements of a layout that a picture shows."""
_STYLE = """\
:root { color-scheme: light dark; --fore: #1c2430; --back: #ffffff; --soft: #5c6876; --line: #d8dee6; --card: #f5f7fa;
  --ours: #3f6fd8; --flight: #9db8ef; --copy: #d9882b; --wait: #c9d0d8; --sync: #7c8794; --in: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --fore: #e3e8ef; --back: #14181e; --soft: #98a4b3; --line: #303945;
  --card: #1c222a; --ours: #5b8af0; --flight: #2f4f94; --copy: #c97a22; --wait: #3a4450; --sync: #8390a0; } }
body { margin: 0 auto; padding: 1.2rem; max-width: 76rem; background: var(--back); color: var(--fore);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.4rem; }
h3 { font-size: 0.95rem; margin: 1rem 0 0.3rem; font-weight: 600; overflow-wrap: anywhere; }
p { margin: 0.3rem 0; } .soft, .minor { color: var(--soft); } .soft { font-size: 0.87rem; overflow-wrap: anywhere; }
.warning { border-left: 3px solid var(--copy); padding-left: 0.6em; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: 0.6rem; margin: 1rem 0; }
.figures div { background: var(--card); border-radius: 6px; padding: 0.5rem 0.8rem; }
.figures dt { color: var(--soft); font-size: 0.8rem; } .figures dd { margin: 0; font-weight: 600; }
.figures small { font-weight: 400; color: var(--soft); display: block; }
.wide { overflow-x: auto; }
.source { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; font-size: 0.82rem; }
.source > div { display: grid; grid-template-columns: 3rem minmax(0, 1.15fr) minmax(0, 1fr); gap: 0 0.8rem;
  padding: 1px 0.6rem 1px 0; }
.source > .noted { background: var(--card); } .source > .file { display: block; padding-left: 0.8rem; }
.source pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px/1.5 ui-monospace, monospace;
  padding-left: var(--hang); text-indent: calc(0ch - var(--hang)); }
.source .number { color: var(--soft); text-align: right; font: 12.5px/1.5 ui-monospace, monospace; }
.source p { margin: 0; overflow-wrap: anywhere; } .source b { color: var(--ours); font-weight: 600; }
.source details { color: var(--soft); } summary { cursor: pointer; }
@media (max-width: 52rem) { body { padding: 0.8rem; } .source > div { grid-template-columns: 2.4rem minmax(0, 1fr); }
  .source .notes { grid-column: 2; } }
svg { display: block; } svg text { fill: var(--fore); font-family: system-ui, sans-serif; }
svg .minor { fill: var(--soft); font-size: 11px; } svg .in { fill: var(--in); font-size: 11px; font-weight: 600; }
svg .lane { stroke: var(--line); } .use { fill: var(--ours); } .flight { fill: var(--flight); }
.copy { fill: var(--copy); } .wait { fill: var(--wait); } .sync { fill: var(--sync); }
svg .wait + .in, svg .sync + .in { fill: var(--fore); }
svg .buffer { fill: var(--flight); stroke: var(--ours); }
.key { display: inline-block; width: 0.9em; height: 0.9em; border-radius: 2px; margin: 0 0.35em 0 0.9em;
  vertical-align: -0.1em; } .key.use { background: var(--ours); margin-left: 0; }
.key.flight { background: var(--flight); } .key.copy { background: var(--copy); } .key.wait { background: var(--wait); }
.key.sync { background: var(--sync); }
.layout svg text { font-family: monospace; } .layout svg rect + text { fill: #1c2430; }
"""


def page_of(launches: Sequence[Facts]) -> str:
    """Return the page of a program's launches."""
    title = f"{', '.join(dict.fromkeys(f.kernel for f in launches))} for {launches[0].target}"
    parts = [_source(launches), *(part for facts in launches for part in _launch(facts, len(launches) > 1))]
    tables = markup.section("every table of the report", as_html(launches), is_open=False)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(map(_summary, launches))}{''.join(parts)}"
        f"<h2>Tables</h2>\n{tables}</body>\n</html>\n"
    )


def _summary(facts: Facts) -> str:
    """Return the first lines of the report, and its main figures."""
    found = []
    for part in parts_of(facts):
        if isinstance(part, Section):
            break
        if part[0] and part[1] != "bold" and part[0] != str(facts.estimate):
            found.append(f'<p class="{"warning" if part[1] else "soft"}">{escape(part[0])}</p>\n')
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>"
        for name, value, more in _figures(facts)
    )
    return f'<dl class="figures">{cards}</dl>\n{"".join(found)}'


def _figures(facts: Facts) -> Iterator[tuple[str, str, str]]:
    yield "launch", f"{' x '.join(facts.grid) or 1} blocks", f"of {' x '.join(map(str, facts.threads)) or 1} threads"
    if facts.shared_bytes:
        yield "shared memory of a block", f"{facts.shared_bytes:,} bytes", f"of {facts.shared_limit:,}"
    if "registers" in facts.built:
        spilled = int(facts.built.get("spill_bytes", 0))
        yield "registers of a thread", f"{facts.built['registers']}", f"{spilled:,} bytes spilled"
    if facts.estimate is not None and facts.estimate.microseconds is not None:
        time, _, limit = str(facts.estimate).partition(": ")
        yield "time", time, limit


def _source(launches: Sequence[Facts]) -> str:
    """Return the lines of the program with the decisions about each."""
    lines = dict.fromkeys(line for facts in launches for line in facts.source)
    if not lines:
        return _missing("Source", "the file of the kernel is not available")
    notes: dict[str, list[Note]] = {}
    for facts in launches:
        for location, found in notes_of(facts, facts.kernel if len(launches) > 1 else "").items():
            notes.setdefault(location, []).extend(found)
    rows: list[str] = []
    file, common = "", min((_indent(line.text) for line in lines if line.text.strip()), default=0)
    for line in lines:
        own, _, number = line.location.rpartition(":")
        if own != file:
            file = own
            rows.append(f'<div class="file soft">{escape(short_name(file))}</div>')
        beside = "".join(map(_note, dict.fromkeys(notes.get(line.location, ()))))
        rows.append(
            f'<div class="{"noted" if beside else "plain"}"><span class="number">{number}</span>'
            f'<pre style="--hang: {_indent(line.text) - common + 4}ch">{escape(line.text[common:])}</pre>'
            f'<div class="notes">{beside}</div></div>'
        )
    return f'<h2>Source</h2>\n<div class="source">\n{chr(10).join(rows)}\n</div>\n'


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _note(note: Note) -> str:
    name = f"<b>{escape(note.name)}</b> " if note.name else ""
    if not note.more:
        return f"<p>{name}{escape(note.text)}</p>"
    more = "".join(f"<p>{escape(text)}</p>" for text in note.more)
    return f"<details><summary>{name}{escape(note.text)}</summary>{more}</details>"


def _launch(facts: Facts, is_named: bool) -> Iterator[str]:
    """Yield the pictures of a launch; a sentence for each that there is not."""
    if is_named:
        yield f"<h2>Launch {escape(facts.kernel)}</h2>\n"
    estimate = facts.estimate
    if estimate is not None and estimate.microseconds is None:
        yield _missing("Limit", str(estimate))
    if facts.block is None or facts.block.drawn is None:
        yield _missing("Schedule, shared memory, registers, layouts", "this target has no blocks of threads")
        return
    yield _schedules(facts.block, facts.block.drawn.schedules)
    yield _memory(facts, facts.block)
    yield _registers(facts, facts.block)
    yield _layouts(facts.block)


def _schedules(block: BlockFacts, schedules: Sequence[Schedule | None]) -> str:
    found = []
    for loop, schedule in zip(block.loops, schedules, strict=True):
        if schedule is None:
            found.append(_missing(f"Loop {loop.name} has no slots", pipelined(loop)))
            continue
        drawn, trips = timeline_of(schedule).iterations, schedule.trips
        of = "a number that depends on the launch" if trips is None else f"{trips}"
        found.append(
            f"<h3>Loop {escape(loop.name)}, line {loop.location.rpartition(':')[2]}: {schedule.stages} stages</h3>\n"
            f'<p class="soft">Drawn are the first {drawn} iterations, numbered in the bars, of {of}. The order of '
            f"steps and waits is that of the compiled schedule. Widths are not times: a step has 1, a use {USE}.</p>\n"
            f"{timeline(schedule)}{_LEGEND}"
            + markup.section("its steps in words", markup.code("\n".join(loop.schedule)), is_open=False)
        )
    if not found:
        return _missing("Schedule", "the kernel has no pipelined loop")
    return f"<h2>Schedule</h2>\n{''.join(found)}"


_LEGEND = (
    '<p class="soft"><span class="key use"></span>computing on a slot<span class="key flight"></span>asynchronous '
    'products in flight<span class="key copy"></span>copy issued; slot filling until a role has waited for it'
    '<span class="key wait"></span>waiting<span class="key sync"></span>barrier</p>\n'
)


def _memory(facts: Facts, block: BlockFacts) -> str:
    if not block.shared:
        return _missing("Shared memory", "the kernel uses none")
    ranges = sorted((b.offset, b.offset + b.bytes) for b in block.shared)
    used, end = 0, 0
    for first, last in ranges:
        used, end = used + max(0, last - max(first, end)), max(end, last)
    total, beyond = sum(b.bytes for b in block.shared), facts.shared_bytes - end
    parts = [f"{len(block.shared)} buffers of {total:,} bytes"]
    parts += [f"less {total - used:,} bytes that several of them use at different times"] if total > used else []
    parts += [f"{end - used:,} bytes of alignment"] if end > used else []
    parts += [f"{beyond:,} bytes reserved beyond them"] if beyond else []
    text = f"{', '.join(parts)}: {facts.shared_bytes:,} of {facts.shared_limit:,} bytes."
    more = "Offsets downwards; to the right the lines of a thread's program, in the order of the compiled code."
    return f'<h2>Shared memory over time</h2>\n<p>{text}</p>\n<p class="soft">{more}</p>\n{memory(block)}'


def _registers(facts: Facts, block: BlockFacts) -> str:
    held = sorted((f for f in block.fragments if not f.recomputed), key=lambda f: (-f.registers, f.name))
    built = [f"{name.replace('_', ' ')} {value:,}" for name, value in facts.built.items() if isinstance(value, int)]
    if not held and not built:
        return _missing("Registers", "the kernel has no fragments, and its binary was not built here")
    binary = "The binary was not built here, so its registers are unknown."
    if built:
        binary = f"Of the binary: {', '.join(built)}."
    rows = [
        markup.Span(f.name, 0, f.registers, f"{f.registers} elements of {f.dtype} in each of {f.threads} threads")
        for f in held
    ]
    end = max((row.high for row in rows), default=0)
    bars = markup.spans(rows, end, f"{end:,.0f} elements of a thread") if rows else ""
    return f"<h2>Registers</h2>\n<p>{escape(binary)}</p>\n{bars}"


def _layouts(block: BlockFacts) -> str:
    assert block.drawn is not None
    if not block.drawn.layouts:
        return _missing("Layouts", "all tiles are row-major")
    equal: dict[str, tuple[LayoutMap, list[str]]] = {}
    for name, layout in block.drawn.layouts.items():
        equal.setdefault(f"{layout!r} {layout.shape}", (layout, []))[1].append(name)
    found: list[str] = []
    for layout, names in equal.values():
        shape, note = " x ".join(map(str, layout.shape)), f", {layout.note}" * bool(layout.note)
        picture = f'<div class="wide layout">{to_svg(layout, _ROWS, _COLUMNS)}</div>\n'
        found.append(markup.section(f"{', '.join(names)}: {shape}{note}", picture, is_open=not found))
    what = f"The first {_ROWS} rows and {_COLUMNS} columns: index in memory, or thread:register. "
    return f'<h2>Layouts</h2>\n<p class="soft">{what}A colour is a line of memory, or a thread.</p>\n{"".join(found)}'


def _missing(what: str, why: str) -> str:
    return f'<p class="soft"><b>{escape(what)}:</b> {escape(why)}.</p>\n'
