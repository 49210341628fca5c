"""The reference page of ops: the signature, description and facts of each op from the declarations in `ir/ops`, and its
constraints from the tests that violate them."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from docs.examples import example
from tests.ir.ops.constraints import Broken, broken
from tests.ir.ops.laxer import accepted
from tests.ir.ops.test_constraints import labels_of
from trivium.ir import ops  # noqa: F401  (declares the ops)
from trivium.ir.declare import OPS, REQUIRED, Field, Op

HEAD = """\
# Ops

Every op of the language, from its declaration in `ir/ops`. Operands come first in a signature, then
attributes and regions; those after `*` have a default and are passed by name. The types of results follow from the
operands unless `result` is in the signature. Each example was run; comments show the inputs and the results.

Constraints have the labels of the [StableHLO specification](https://openxla.org/stablehlo/spec): C1, C2, ... where it
numbers them, I and O for the types in its tables of inputs and outputs. The kind says what is needed to check a
constraint: the op alone (type), the module (symbol), the numbers of replicas and partitions (configuration), or the
values of operands (run time). `verify` checks the first three kinds, and the interpreter the last; if an operand is a
constant, `verify` checks that as well. For each constraint, the table shows the error of a program that violates it.
Files load even if they violate constraints. MLIR does not check those marked *: it accepts the program in the example.

<!-- Written by `python -m docs.generate`; do not edit. -->
"""


def ops_page() -> str:
    """Returns the whole page, family by family."""
    families = {module: sys.modules[module] for module in sorted({cls.__module__ for cls in language()})}
    sections = [HEAD]
    for name, module in families.items():
        short = name.rpartition(".")[2]
        path = name.removeprefix("trivium.").replace(".", "/")
        sections.append(f"## {short}\n\n{joined(module.__doc__)} Declared in `{path}.py`.\n")
        constraints = constraints_of(inspect.getsource(module))
        members = [cls for cls in language() if cls.__module__ == name]
        sections += [section(cls, constraints.get(cls.__name__, ())) for cls in members]
    return "\n".join(sections)


def language() -> list[type[Op]]:
    """Returns the ops of StableHLO and CHLO, in order of declaration."""
    return [cls for cls in OPS.values() if cls.__module__.startswith(("trivium.ir.ops.", "trivium.ir.terminators"))]


def section(cls: type[Op], constraints: tuple[str, ...]) -> str:
    """Returns the section about one op."""
    facts = [trait.value for trait in sorted(cls.TRAITS, key=lambda trait: trait.value)]
    lines = [f"### {cls.NAME}", f"```python\n{signature(cls)}\n```", joined(cls.__doc__), fields(cls)]
    lines.append(example(cls))
    if constraints:
        rows = [row(cls, label) for label in constraints]
        lines.append("\n".join(["| constraint | kind | example of a violation |", "|---|---|---|", *rows]))
    if facts:
        lines.append(f"Facts: {', '.join(facts)}.")
    return "\n\n".join(line for line in lines if line) + "\n"


def row(cls: type[Op], label: str) -> str:
    """Returns the row of one constraint: its label, its kinds, and an example of its error."""
    examples = examples_of().get((cls, label)) or siblings(cls, label)
    kinds = dict.fromkeys(case.kind.value for case in examples)
    laxer = accepted().get((cls, label))
    message = laxer.message if laxer else min((case.message for case in examples), key=len)
    return f"| {label}{'*' if laxer else ''} | {', '.join(kinds)} | {escaped(message)} |"


@cache
def examples_of() -> dict[tuple[type[Op], str], list[Broken]]:
    """Returns the violations in the tests, by op and label."""
    found: dict[tuple[type[Op], str], list[Broken]] = defaultdict(list)
    for case in broken():
        found[type(case.op), case.label].append(case)
    return dict(found)


def siblings(cls: type[Op], label: str) -> list[Broken]:
    """Returns the violations in the tests for another op of the same family."""
    families = [base for base in cls.__mro__[1:] if issubclass(base, Op) and base is not Op]
    for family in families:
        for (op, other), examples in examples_of().items():
            if other == label and issubclass(op, family):
                return examples
    raise LookupError(f"no test violates {label} of {cls.NAME} or of its family")


def escaped(message: str) -> str:
    """Escapes a message for a cell of a table."""
    return message.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


def signature(cls: type[Op]) -> str:
    """Returns `Iota(iota_dimension, result) -> result`: how the op is built, and its results."""
    required = [field for field in inputs(cls) if field.default is REQUIRED]
    optional = [field for field in inputs(cls) if field.default is not REQUIRED]
    stated = [] if cls.INFER is not None else [field.name for field in cls.RESULTS]
    words = [field.name for field in required]
    words += ["*"] if optional or stated else []
    words += [f"{field.name}={default(field)}" for field in optional] + stated
    results = ", ".join(f"*{field.name}" if field.arity == "*" else field.name for field in cls.RESULTS)
    return f"{cls.__name__}({', '.join(words)}){f' -> {results}' if results else ''}"


def inputs(cls: type[Op]) -> list[Field]:
    """Returns operands, attributes and regions."""
    return [*cls.OPERANDS, *cls.ATTRIBUTES, *cls.REGIONS]


def fields(cls: type[Op]) -> str:
    """Describes the attributes with their types, and the operands and regions that are lists."""
    words = {"*": "any number of", "?": "at most one of", "": ""}
    lists = [f"{words[field.arity]} `{field.name}`" for field in (*cls.OPERANDS, *cls.REGIONS) if field.arity]
    attributes = [f"`{field.name}` ({field.codec.what})" for field in cls.ATTRIBUTES]
    parts = []
    if lists:
        parts.append(f"Takes {', '.join(lists)}.")
    if attributes:
        parts.append(f"Attributes: {', '.join(attributes)}.")
    return " ".join(parts)


def default(field: Field) -> str:
    """Formats a default as in Python."""
    plain = field.default is None or isinstance(field.default, bool | int | float | str | tuple)
    return repr(field.default) if plain else str(field.default)


def joined(text: str | None) -> str:
    """Joins a docstring into one paragraph."""
    return " ".join(inspect.cleandoc(text or "").split())


def constraints_of(source: str) -> dict[str, tuple[str, ...]]:
    """Returns the labels of constraints of each class in a file: those in its source, including its bases in the same
    file, and those that the tests violate, which may come from other files."""
    tree = ast.parse(source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    tested: dict[str, set[str]] = defaultdict(set)
    for cls, label in examples_of():
        tested[cls.__name__].add(label)

    def labels(name: str) -> set[str]:
        node = classes[name]
        return labels_of(node, functions).union(tested[name], *(labels(base) for base in bases(node)))

    def bases(node: ast.ClassDef) -> Iterator[str]:
        return (base.id for base in node.bases if isinstance(base, ast.Name) and base.id in classes)

    return {name: tuple(sorted(labels(name), key=order_of)) for name in classes}


def order_of(label: str) -> tuple[int, int]:
    """The sort key of labels: inputs, outputs, then constraints, by number."""
    return "IOC".index(label[0]), int(label[1:])
