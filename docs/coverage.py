"""The page of coverage: each op of the language with the support for it, each importer with its rules, and the known
gaps. It is generated from the tables of rules and from the tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from docs.ops import language, order_of
from tests.ir.ops.laxer import accepted
from tests.ir.ops.records import collect
from tests.ir.ops.specification import CONSTRAINTS
from trivium.compiler.lowering import rules
from trivium.compiler.passes.decompose import DECOMPOSITIONS
from trivium.importers.common import Rules
from trivium.ir.bytecode.portable import first_version
from trivium.ir.declare import Op
from trivium.ir.text.assembly import form_of

HEAD = """\
# What is covered

Every op of the language can be read and written as text, and is verified. The columns say whether its text has a
pretty form (all have the generic one), whether the reference interpreter evaluates it, the first version of StableHLO
whose artifacts can contain it (CHLO's ops as composites), how it is compiled, and how many records test it against an
oracle, interpreted and compiled.

<!-- Written by `python -m docs.generate`; do not edit. -->
"""

COMPILED = {
    "fused": rules.ELEMENT,
    "as indexing": rules.INDEXING,
    "own kernel": rules.KERNEL,
    "steps": rules.STEP,
    "decomposed": DECOMPOSITIONS.patterns,
}
"""How an op is compiled, and the table that decides it: fused into kernels element by element; as different indices of
its operand; as a separate kernel; as steps of the program between kernels; decomposed into other ops."""

GONE = {
    *("stablehlo.composite", "stablehlo.return", "stablehlo.optimization_barrier"),
    *("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"),
}
"""Ops that a pass removes or replaces before kernels are built."""

IMPORTERS = {"PyTorch": "pytorch", "TensorFlow": "tensorflow", "JAX": "jax", "ONNX": "onnx"}

TESTS = Path(__file__).parent.parent / "tests"


def coverage_page() -> str:
    """Returns the whole page."""
    return "\n".join([HEAD, *ops_table(), *missing_ops(), *laxer_constraints(), *importer_tables(), *known_gaps()])


# The language


def ops_table() -> Iterator[str]:
    counts: dict[type[Op], int] = defaultdict(int)
    for record in collect():
        counts[record.op] += 1
    ops = sorted(language(), key=lambda cls: cls.NAME)
    count = sum(how_compiled(cls) != "" for cls in ops)
    yield f"## The language: {len(ops)} ops, {count} of them compiled\n"
    yield "| op | text | evaluated | artifacts | compiled | records |"
    yield "|---|---|---|---|---|---:|"
    for cls in ops:
        text = "pretty" if form_of(cls) is not None else "generic"
        evaluated = "yes" if hasattr(cls, "EVALUATE") else ""
        since, compiled = first_version(cls), how_compiled(cls)
        yield f"| `{cls.NAME}` | {text} | {evaluated} | {since} | {compiled} | {counts[cls] or ''} |"
    yield ""


def how_compiled(cls: type[Op]) -> str:
    """Returns the word for the table that contains the op; empty if none does."""
    found = [word for word, table in COMPILED.items() if cls in table]
    return found[0] if found else "removed before kernels" if cls.NAME in GONE else ""


def missing_ops() -> Iterator[str]:
    have = {cls.NAME for cls in language()}
    missing = [f"`{name}`" for name in CONSTRAINTS if f"stablehlo.{name}" not in have]
    yield f"Ops of the specification that are missing: {', '.join(missing) or 'none'}.\n"


def laxer_constraints() -> Iterator[str]:
    """Yields the constraints of the specification and the declarations that MLIR's verifier does not check."""
    found: dict[str, list[str]] = defaultdict(list)
    for cls, label in accepted():
        found[cls.NAME].append(label)
    yield f"## Where MLIR is less strict: {sum(map(len, found.values()))} constraints\n"
    yield "Programs that violate these constraints load, because MLIR accepts them too; `verify` refuses them. The"
    yield "[reference](reference/ops.md) shows the error of such a program for each.\n"
    yield from (f"- `{name}`: {', '.join(sorted(found[name], key=order_of))}" for name in sorted(found))
    yield ""


# The importers


def importer_tables() -> Iterator[str]:
    for framework, package in IMPORTERS.items():
        import_module(f"trivium.importers.{package}")
        table: Rules = import_module(f"trivium.importers.{package}.context").rule
        yield f"## {framework}: {len(table)} ops with a rule\n"
        families: dict[str, list[str]] = defaultdict(list)
        for name in table:
            rule = table.find(name)
            assert rule is not None
            families[rule.__module__.rpartition(".")[2]].append(name)
        for family in sorted(families):
            names = ", ".join(f"`{name}`" for name in families[family])
            yield f"- [{family}](../importers/{package}/{family}.py): {names}"
        yield ""


# The gaps


def known_gaps() -> Iterator[str]:
    yield "## Known gaps\n"
    gaps = [gap for path in sorted(TESTS.rglob("*.py")) for gap in expected_failures(path)]
    if gaps:
        yield "Tests that are expected to fail, each with its reason:\n"
        yield from (f"- {gap}" for gap in gaps)
    else:
        yield "No test is expected to fail."
    yield ""


def expected_failures(path: Path) -> Iterator[str]:
    """Yields the reasons of all `xfail` marks in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "xfail":
            reasons = [keyword.value for keyword in node.keywords if keyword.arg == "reason"] or node.args[:1]
            for reason in reasons:
                yield f"{ast.literal_eval(reason)} ([{path.name}](../{path.relative_to(TESTS.parent)}))"
