"""A whole backend whose text is Python and whose binary is that text with a header: for tests of what is kept.

Everything that it does is counted. Importing it imports no TVM.
"""

import dataclasses
import re
from collections import Counter

from tile_core.abi.adapter import Built, RuntimeAdapter
from tile_core.errors.base import SetupError
from tile_core.manifest import BackendManifest
from tile_core.target import Capabilities, Target, split_target

COUNTS = Counter()
VERSIONS = {"toolchain": "toy compiler 1", "fingerprint": "toy backend 1"}
MAGIC = b"TOY\0"
LESS = {4: 2, 2: 1}  # what the next more general text assumes lengths to be a multiple of


class Toolless(SetupError):
    code = "S998"
    template = "there is no toy compiler"


@dataclasses.dataclass(frozen=True)
class Options:
    level: int = 1
    tools: bool = True


class TextAdapter(RuntimeAdapter):
    name = "toy"

    def toolchain(self):
        if VERSIONS["toolchain"] is None:
            raise Toolless
        return VERSIONS["toolchain"]

    def build(self, artefact):
        COUNTS["build"] += 1
        self.toolchain()
        return Built(
            "toy", "toybin", MAGIC + artefact.text.encode(), artefact.facts.attributes["arch"], {"registers": 7}
        )

    def refuses(self, built):
        return "" if built.arch in ("", "old", "any") else f"its device is no {built.arch}"

    def load(self, artefact):
        first = self._one(artefact)

        def launch(*values):
            # What the text assumes: lengths that are a multiple of 4.
            if len(values[0]) % artefact.facts.attributes["multiple"]:
                COUNTS["general"] += 1
                return self.load(artefact.general())(*values)
            return first(*values)

        return launch

    def _one(self, artefact):
        COUNTS["load"] += 1
        data = self.binary_of(artefact).data
        assert data.startswith(MAGIC)
        names = {}
        exec(data[len(MAGIC) :].decode(), names)
        return names[artefact.facts.entry]

    def synchronize(self):
        pass


def make_text(plan, ctx, multiple):
    """One line that computes what the plan's first product says."""
    from tile_core.abi.kernel_text import KernelText, LaunchFacts, LineMap, ParamFact

    COUNTS[f"text {multiple}"] += 1
    program = plan.program
    factor = re.search(r"T\.float32\(([-\d.]+)\)", program.script())[1]
    params = tuple(
        ParamFact(p.name, "pointer", p.dtype, "read" if i == 0 else "write") for i, p in enumerate(program.params)
    )
    a, b = (p.name for p in program.params)
    head = f"# multiple {multiple}, level {ctx.options.level}"
    text = f"{head}\ndef {program.name}({a}, {b}):\n    {b}[...] = {a} * {factor}\n"
    facts = LaunchFacts(
        program.name, params, (1, 1, 1), (1, 1, 1), attributes={"arch": ctx.target.arch, "multiple": multiple},
        line_map=LineMap(((2, program.where),)), where=program.where,
    )  # fmt: skip
    less = LESS.get(multiple)
    return KernelText(text, facts, None if less is None else lambda: make_text(plan, ctx, less))


def finish(plan, ctx):
    COUNTS["passes"] += 1
    text = make_text(plan, ctx, 4)
    return plan.replace(lowered=text, source=text.text)


def tile_backend():
    return BackendManifest("toy", ">=1,<2", ("toy",), VERSIONS["fingerprint"], Options)


def tile_target(text):
    parts = split_target(text)
    return Target(str(parts), "toy", "toy", Capabilities(), parts.arch, parts.options)


def tile_lowerings(target):
    from tile_core.ops.registry import OPS
    from tile_core.passes.lower_ops import MeaningVariant

    return tuple(MeaningVariant("toy", op) for op in OPS)


def tile_language():
    return {}


def tile_pipeline(target, spine):
    from tile_core.passes.spine import Pass

    return spine.then(Pass("finish", finish, "the end"))


def tile_runtimes(target):
    return (TextAdapter(),)


def tile_emulation(target):
    return None
