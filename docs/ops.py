"""The reference page of ops: for each its signature, what it does and its facts, read off the declarations in `ir/ops`,
and its constraints, read off the tests that break them."""

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

Every op of the language, from its declaration in [`ir/ops`](../../ir/ops). Operands come first in a signature, then
attributes and regions; those behind `*` have a default and are given by name. The types of results follow from the
operands unless `result` stands in the signature. Each example was run: comments tell what goes in and what comes out.

Constraints carry the labels of the [StableHLO specification](https://openxla.org/stablehlo/spec): C1, C2, ... where it
numbers them, I and O for the types of its tables of inputs and outputs. The kind tells what is needed to see whether
one holds: the op alone (type), the module (symbol), the numbers of replicas and partitions (configuration), or the
values of operands (run time). `verify` holds the first three, the interpreter the last; where an operand is a constant,
`verify` holds that too. Each constraint is shown by what an error says where it is broken. Files load whether or not
they keep to them; those marked * MLIR does not hold: it takes the program that is shown.

<!-- Written by `python -m docs.generate`; do not edit. -->
"""


def ops_page() -> str:
    """The whole page, family by family."""
    families = {module: sys.modules[module] for module in sorted({cls.__module__ for cls in language()})}
    sections = [HEAD]
    for name, module in families.items():
        short = name.rpartition(".")[2]
        path = name.removeprefix("trivium.").replace(".", "/")
        sections.append(f"## [{short}](../../{path}.py)\n\n{joined(module.__doc__)}\n")
        constraints = constraints_of(inspect.getsource(module))
        members = [cls for cls in language() if cls.__module__ == name]
        sections += [section(cls, constraints.get(cls.__name__, ())) for cls in members]
    return "\n".join(sections)


def language() -> list[type[Op]]:
    """The ops of StableHLO and CHLO, in order of declaration."""
    return [cls for cls in OPS.values() if cls.__module__.startswith(("trivium.ir.ops.", "trivium.ir.terminators"))]


def section(cls: type[Op], constraints: tuple[str, ...]) -> str:
    """What there is to say of one op."""
    facts = [trait.value for trait in sorted(cls.TRAITS, key=lambda trait: trait.value)]
    lines = [f"### {cls.NAME}", f"```python\n{signature(cls)}\n```", joined(cls.__doc__), fields(cls)]
    lines.append(example(cls))
    if constraints:
        rows = [row(cls, label) for label in constraints]
        lines.append("\n".join(["| constraint | kind | broken, for example |", "|---|---|---|", *rows]))
    if facts:
        lines.append(f"Facts: {', '.join(facts)}.")
    return "\n\n".join(line for line in lines if line) + "\n"


def row(cls: type[Op], label: str) -> str:
    """One constraint: its label, its kinds, and a message of its error."""
    examples = examples_of().get((cls, label)) or siblings(cls, label)
    kinds = dict.fromkeys(case.kind.value for case in examples)
    laxer = accepted().get((cls, label))
    message = laxer.message if laxer else min((case.message for case in examples), key=len)
    return f"| {label}{'*' if laxer else ''} | {', '.join(kinds)} | {escaped(message)} |"


@cache
def examples_of() -> dict[tuple[type[Op], str], list[Broken]]:
    """What the tests break, by op and label."""
    found: dict[tuple[type[Op], str], list[Broken]] = defaultdict(list)
    for case in broken():
        found[type(case.op), case.label].append(case)
    return dict(found)


def siblings(cls: type[Op], label: str) -> list[Broken]:
    """What the tests break of an op of the same family."""
    families = [base for base in cls.__mro__[1:] if issubclass(base, Op) and base is not Op]
    for family in families:
        for (op, other), examples in examples_of().items():
            if other == label and issubclass(op, family):
                return examples
    raise LookupError(f"no test breaks {label} of {cls.NAME}, nor of its family")


def escaped(message: str) -> str:
    """A message in a cell of a table."""
    return message.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


def signature(cls: type[Op]) -> str:
    """`Iota(iota_dimension, result) -> result`: how the op is built, and what it gives."""
    required = [field for field in inputs(cls) if field.default is REQUIRED]
    optional = [field for field in inputs(cls) if field.default is not REQUIRED]
    stated = [] if cls.INFER is not None else [field.name for field in cls.RESULTS]
    words = [field.name for field in required]
    words += ["*"] if optional or stated else []
    words += [f"{field.name}={default(field)}" for field in optional] + stated
    results = ", ".join(f"*{field.name}" if field.arity == "*" else field.name for field in cls.RESULTS)
    return f"{cls.__name__}({', '.join(words)}){f' -> {results}' if results else ''}"


def inputs(cls: type[Op]) -> list[Field]:
    """Operands, attributes and regions."""
    return [*cls.OPERANDS, *cls.ATTRIBUTES, *cls.REGIONS]


def fields(cls: type[Op]) -> str:
    """The attributes with what they hold, and the operands and regions that come in lists."""
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
    """A default as Python writes it."""
    plain = field.default is None or isinstance(field.default, bool | int | float | str | tuple)
    return repr(field.default) if plain else str(field.default)


def joined(text: str | None) -> str:
    """A docstring as one paragraph."""
    return " ".join(inspect.cleandoc(text or "").split())


def constraints_of(source: str) -> dict[str, tuple[str, ...]]:
    """The labels of constraints of each class of a file: those in its source, its bases in the same file included, and
    those that the tests break, which may come from other files."""
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
    """Inputs, outputs, then constraints, by number."""
    return "IOC".index(label[0]), int(label[1:])
