"""The page of what ONNX's backend tests say: written from the results, never by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tests.suites.onnx.cases import CRASHED, DRAWN, EQUAL, REFUSED, ROUGH, SUITES, WRONG

Results = Mapping[str, tuple[str, str]]
"""The kind of what became of each test, and its reason."""

OPENING = """# ONNX's own backend tests

What `python -m tests.suites.onnx --page docs/onnx.md` found, with ONNX {onnx} and ONNX Runtime {runtime}: the tests of
`onnx.backend.test` whose inputs and outputs are tensors of numbers, imported by `trivium.from_onnx`, compiled, and
compared by ONNX's own tolerances. This page is generated; it lists every test that is not equal.

- *ONNX Runtime*: tests that pass on its CPU provider; and of these, those that are equal here.
- *refused*: a named error at the import, or when the program is compiled. *wrong*: other results. *crashed*: any other
  exception, or the end of the process.
- {rough} expect results with rounding errors beyond the tolerance: it
  is larger for them.
- Of tests that expect numbers which NumPy has drawn ({drawn}), shapes and types are compared.
"""


def page(ours: Results, theirs: Results) -> str:
    """The page, in Markdown."""
    import onnx
    import onnxruntime

    opening = OPENING.format(
        onnx=onnx.__version__,
        runtime=onnxruntime.__version__,
        rough=_listed(ROUGH),
        drawn=_listed(f"{name}*" for name in DRAWN),
    )
    return "\n".join([opening, *_table(ours, theirs), "", *_failures(ours, theirs)]) + "\n"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _table(ours: Results, theirs: Results) -> Iterator[str]:
    yield "| suite | tests | equal | refused | wrong | crashed | share | ONNX Runtime | of these equal | share |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for suite in (*SUITES, "all"):
        names = [name for name in ours if suite in ("all", name.partition("/")[0])]
        kinds = Counter(ours[name][0] for name in names)
        passed = [name for name in names if theirs[name][0] == EQUAL]
        shared = sum(ours[name][0] == EQUAL for name in passed)
        others = len(names) - kinds[EQUAL] - kinds[REFUSED] - kinds[WRONG]
        counts = f"{len(names)} | {kinds[EQUAL]} | {kinds[REFUSED]} | {kinds[WRONG]} | {others}"
        share = _share(kinds[EQUAL], len(names))
        yield f"| {suite} | {counts} | {share} | {len(passed)} | {shared} | {_share(shared, len(passed))} |"


def _share(part: int, whole: int) -> str:
    # Rounded down: what is not whole is not 100 %.
    return f"{int(1000 * part / whole) / 10:.1f} %" if whole else "-"


def _failures(ours: Results, theirs: Results) -> Iterator[str]:
    yield "## What is not equal, by its reason"
    groups: dict[tuple[str, str], list[str]] = {}
    for name, (kind, reason) in ours.items():
        if kind != EQUAL:
            groups.setdefault((kind, _general(reason)), []).append(name)
    order = (WRONG, CRASHED, "hung", REFUSED)
    for (kind, reason), names in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]))):
        yield f"\n### {kind}: `{reason}` ({len(names)})\n"
        for name in sorted(names):
            yield f"- `{name}`" + (", which ONNX Runtime passes" if theirs[name][0] == EQUAL else "")


def _general(reason: str) -> str:
    """A reason without the place where it was met."""
    for end in (" in:", ", first at", " while:", " from:"):
        reason = reason.partition(end)[0]
    return reason.replace("`", "'")[:160]
