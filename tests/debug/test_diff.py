"""Comparison of two programs: which ops are equal, which differ, and where their values diverge."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trivium
from tests.page.programs import data_of, stages_of
from trivium.cli import main
from trivium.debug import arguments_of
from trivium.debug.diff import ADDED, ALIKE, EQUAL, REMOVED, Comparison
from trivium.page.diff import _fold, diff_page

FIRST = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.add %x, %y : tensor<4xf32>
  %b = stablehlo.multiply %x, %y : tensor<4xf32>
  %c = stablehlo.tanh %a : tensor<4xf32>
  %d = stablehlo.subtract %c, %b : tensor<4xf32>
  return %d : tensor<4xf32>
}
"""
RENAMED = FIRST.replace("%a", "%first").replace("%x", "%input")
CHANGED = FIRST.replace("tanh", "sine")

LONG = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.add %x, %y : tensor<4xf32>
  %b = stablehlo.tanh %a : tensor<4xf32>
  %c = stablehlo.sine %b : tensor<4xf32>
  %d = stablehlo.negate %c : tensor<4xf32>
  %e = stablehlo.cosine %d : tensor<4xf32>
  %f = stablehlo.abs %e : tensor<4xf32>
  %g = stablehlo.exponential %f : tensor<4xf32>
  return %g : tensor<4xf32>
}
"""


def compared(first: str, second: str) -> Comparison:
    return Comparison(trivium.parse(first), trivium.parse(second))


def test_names_do_not_count_as_differences() -> None:
    assert compared(FIRST, RENAMED).counts == {EQUAL: 5, ALIKE: 0, REMOVED: 0, ADDED: 0}
    assert list(compared(FIRST, RENAMED).lines()) == ["  ... 5 equal ops"]


def test_ops_that_depend_on_a_difference_are_alike() -> None:
    comparison = compared(FIRST, CHANGED)
    assert comparison.counts == {EQUAL: 2, ALIKE: 2, REMOVED: 1, ADDED: 1}
    text = [line.split(" : ")[0] for line in comparison.lines()]
    assert [line[0] for line in text] == [" ", " ", "-", "+", "~", "~"]
    assert "tanh" in text[2]
    assert "sine" in text[3]


def test_exchanged_operands_are_a_difference() -> None:
    second = FIRST.replace("subtract %c, %b", "subtract %b, %c")
    assert compared(FIRST, second).counts == {EQUAL: 3, ALIKE: 2, REMOVED: 0, ADDED: 0}


def test_constants_differ_by_their_elements() -> None:
    text = "func.func @main() -> tensor<100xf32> {{ %c = stablehlo.constant dense<{}> : tensor<100xf32> return %c : tensor<100xf32> }}"  # noqa: E501
    assert compared(text.format("1.0"), text.format("1.0")).counts[EQUAL] == 2
    assert compared(text.format("1.0"), text.format("2.0")).counts[EQUAL] == 0


def test_the_first_numbers_that_differ_are_named() -> None:
    comparison = compared(FIRST, FIRST.replace("subtract %c, %b", "subtract %b, %c"))
    found = comparison.numbers(arguments_of(comparison.before.main))
    assert found is not None
    assert found[0].after is not None
    assert found[0].after.NAME == "stablehlo.subtract"
    same = compared(FIRST, RENAMED)
    assert same.numbers(arguments_of(same.before.main)) is None


def test_the_page_links_what_is_equal() -> None:
    page = diff_page(compared(FIRST, CHANGED), ("first", "second"))
    before, after = page.stages
    origins = {item.label: item.origins for item in after.items if item.kind == "op"}
    assert [before.items[number].label for number in origins["multiply"]] == ["multiply"]
    assert origins["sine"] == []
    (sine,) = [item for item in after.items if item.label == "sine"]
    assert sine.facts["difference"] == "only in the second one"
    assert any(line.startswith("+ ") and "sine" in line for line in after.lines)


def test_equal_programs_are_folded_on_the_page() -> None:
    page = diff_page(compared(FIRST, RENAMED), ("first", "second"))
    assert page.stages[0].lines == ["  ⋯ 9 lines (equal)"]


def test_the_page_has_the_numbers_that_differ() -> None:
    comparison = compared(FIRST, FIRST.replace("subtract %c, %b", "subtract %b, %c"))
    page = diff_page(comparison, ("first", "second"), arguments_of(comparison.before.main))
    for stage in page.stages:
        told = {item.label: item.facts["numbers"] for item in stage.items if "numbers" in item.facts}
        assert list(told) == ["subtract", "return"]
        assert " in the first program, " in told["subtract"]
    (line,) = [line for line in page.stages[1].lines if "subtract" in line]
    assert "4 of 4 elements differ" in line
    assert page.facts["ops whose numbers differ"] == "2"


def test_alike_ops_whose_numbers_agree_are_folded_on_the_page() -> None:
    """Adding the other way around changes no number, so nothing of it is left to look at."""
    comparison = compared(LONG, LONG.replace("add %x, %y", "add %y, %x"))
    arguments = arguments_of(comparison.before.main)
    alike = comparison.counts[ALIKE]
    plain, page = (diff_page(comparison, ("first", "second"), given) for given in (None, arguments))
    assert sum(line.startswith("~ ") for line in plain.stages[1].lines) == alike == 8
    assert page.facts["ops whose numbers differ"] == "0"
    assert page.facts["alike ops whose numbers agree"] == "8"
    assert page.stages[1].lines == ["  ⋯ 12 lines (equal, or their numbers agree)"]
    told = {item.label: item.facts.get("difference", "") for item in page.stages[1].items}
    assert told["sine"] == "the same op, on other operands; its numbers agree"
    wrong = diff_page(compared(LONG, LONG.replace("add %x, %y", "add %y, %y")), ("first", "second"), arguments)
    assert sum(line.startswith("~ ") for line in wrong.stages[1].lines) == alike


def test_the_page_of_one_program_has_the_passes(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(FIRST.replace("subtract %c, %b", "add %c, %c").replace("tanh %a", "tanh %x"))
    result = CliRunner().invoke(main, ["diff", str(tmp_path / "a.mlir"), "--html", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    data = data_of((tmp_path / "page.html").read_text())
    assert [stage["name"] for stage in data["stages"]] == ["program", "after"]
    passes, program = data["passes"], data["stages"][0]
    assert [run["name"] for run in passes["passes"]][-1] == "dce"
    removed = [i for i, died in enumerate(passes["died"]) if died >= 0 and "multiply" in passes["lines"][i]]
    assert [program["items"][n]["label"] for i in removed for n in passes["origins"][i]] == ["multiply"]


@pytest.mark.parametrize(
    ("second", "says"),
    [(RENAMED, "5 equal, 0 alike (~), 0 removed (-), 0 added (+)\nThe results agree.\n"), (CHANGED, "first numbers")],
)
def test_the_command_line(tmp_path: Path, second: str, says: str) -> None:
    (tmp_path / "a.mlir").write_text(FIRST)
    (tmp_path / "b.mlir").write_text(second)
    words = [str(tmp_path / name) for name in ("a.mlir", "b.mlir")]
    result = CliRunner().invoke(main, ["diff", *words, "--random"])
    assert says in result.output
    assert "equal" in CliRunner().invoke(main, ["diff", words[0]]).output
    CliRunner().invoke(main, ["diff", *words, "--html", str(tmp_path / "page.html")])
    assert stages_of((tmp_path / "page.html").read_text()) == ["before", "after"]


def test_numbers_of_programs_with_other_arguments_are_not_compared(tmp_path: Path) -> None:
    kinds = {"a": "1x3x8x8", "b": "1x8x8x3"}
    for name, shape in kinds.items():
        kind = f"tensor<{shape}xf32>"
        (tmp_path / f"{name}.mlir").write_text(f"func.func @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}")
    result = CliRunner().invoke(main, ["diff", str(tmp_path / "a.mlir"), str(tmp_path / "b.mlir"), "--random"])
    said = str(result.exception) + result.output
    assert "argument 0 of the programs is tensor<1x3x8x8xf32> and tensor<1x8x8x3xf32>" in said
    assert "export one of the models with a transpose before it" in said


def test_numbers_are_compared_for_the_inputs_given(tmp_path: Path) -> None:
    """Sine and tanh are equal at 0."""
    (tmp_path / "a.mlir").write_text(FIRST)
    (tmp_path / "b.mlir").write_text(CHANGED)

    def run(*arrays: np.ndarray) -> str:
        files = [tmp_path / f"{index}.npy" for index in range(len(arrays))]
        for file, array in zip(files, arrays, strict=True):
            np.save(file, array)
        words = [word for file in files for word in ("--input", str(file))]
        return CliRunner().invoke(main, ["diff", *(str(tmp_path / f"{name}.mlir") for name in "ab"), *words]).output

    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert run(zeros, zeros).endswith("The results agree.\n")
    assert "The first numbers that differ: -0.09" in run(ones, ones)
    assert "has 1 --input files, expected 2" in run(ones)
    assert "argument 1 of main has shape (3,), expected (4,)" in run(ones, ones[:3])


def test_a_fold_of_one_line() -> None:
    assert [_fold(count, "equal") for count in (1, 2)] == ["  ⋯ 1 line (equal)", "  ⋯ 2 lines (equal)"]
