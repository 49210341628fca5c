"""The data of a page: every op appears once, and every item names its origin."""

from pathlib import Path

import pytest

import trivium
from tests.page.programs import LOOP, located
from trivium.ir.func import Module
from trivium.page import Page, page_of
from trivium.page.data import Stage
from trivium.page.source import source_stage
from trivium.page.tags import ops_of

STAGES = ["source", "program", "graph", "launches", "kernels", "llvm", "asm"]


@pytest.fixture(scope="module")
def page() -> Page:
    return page_of(located(), "model", "cpu")


def stage(page: Page, name: str) -> Stage:
    found = page.stage(name)
    assert found is not None
    return found


def labels(found: Stage, numbers: list[int]) -> list[str]:
    return [found.items[number].label for number in numbers]


def test_a_page_has_every_stage(page: Page) -> None:
    assert [found.name for found in page.stages] == STAGES
    assert page.facts["ops"] == "12"


@pytest.mark.parametrize("module", [located(), trivium.parse(LOOP)], ids=["layers", "loop"])
def test_every_op_appears_once(module: Module) -> None:
    found = stage(page_of(module), "program")
    ops = ops_of([module.main])
    assert [item.label for item in found.items] == [
        *(op.NAME.rpartition(".")[2] for op in ops),
        *(argument.name_hint for argument in module.main.arguments),
    ]
    shown = [owner for owner in found.owners if owner >= 0]
    assert len(set(shown)) == len(shown)
    assert all(found.lines[line].strip() for line in range(len(found.lines)))


def test_lines_are_those_of_the_program() -> None:
    module = located()
    found = stage(page_of(module), "program")
    assert "\n".join(found.lines) == str(module).rstrip("\n")


def test_origins_and_operands_are_items(page: Page) -> None:
    for before, after in zip(page.stages, page.stages[1:], strict=False):
        for item in after.items:
            assert all(0 <= number < len(before.items) for number in item.origins)
            assert all(0 <= number < len(after.items) for number in item.operands)
        assert all(-1 <= owner < len(after.items) for owner in after.owners)
        assert len(after.lines) == len(after.owners)


def test_every_launch_came_from_ops(page: Page) -> None:
    launches = stage(page, "launches")
    assert launches.items
    assert all(item.origins for item in launches.items if item.kind == "launch")
    computed = {number for item in launches.items for number in item.origins}
    expected = {i for i, op in enumerate(stage(page, "graph").items) if op.kind == "op" and not op.hidden}
    assert expected <= computed


def test_every_kernel_has_launches_and_code(page: Page) -> None:
    kernels, llvm, asm = (stage(page, name) for name in ("kernels", "llvm", "asm"))
    assert all(item.origins for item in kernels.items)
    assert {number for item in llvm.items for number in item.origins} == set(range(len(kernels.items)))
    assert {number for item in asm.items for number in item.origins} == set(range(len(llvm.items)))


def test_an_op_is_followed_to_its_instructions(page: Page) -> None:
    """The second product and what depends on it, from the source line to the function."""
    program, graph, launches = (stage(page, name) for name in ("program", "graph", "launches"))
    tanh = next(i for i, item in enumerate(program.items) if item.label == "tanh")
    assert labels(stage(page, "source"), program.items[tanh].origins) == ["model.py:6"]
    became = next(i for i, item in enumerate(graph.items) if tanh in item.origins)
    assert graph.items[became].label == "tanh"
    (launch,) = [item for item in launches.items if became in item.origins]
    assert "tanh" in launch.label


def test_equal_layers_are_distinguished() -> None:
    """Two ops of the same line, which locations alone would not distinguish."""
    module = located()
    tanh, exponential = (op for op in module.main.body.walk() if op.NAME.endswith(("tanh", "exponential")))
    exponential.location = tanh.location
    page = page_of(module, device="cpu", machine_code=False)
    graph, program = stage(page, "graph"), stage(page, "program")
    for label in ("tanh", "exponential"):
        (item,) = [item for item in graph.items if item.label == label]
        assert labels(program, item.origins) == [label]


def test_a_loop_is_a_group_of_its_body() -> None:
    found = stage(page_of(trivium.parse(LOOP), device="cpu"), "program")
    (loop,) = [number for number, group in enumerate(found.groups) if group.name.startswith("while")]
    inside = {item.label for item in found.items if item.group == loop}
    assert inside >= {"while", "compare", "add", "sine"}
    sine = next(item for item in found.items if item.label == "sine")
    assert labels(found, sine.operands) == ["while"]


def test_steps_have_their_lines() -> None:
    found = stage(page_of(trivium.parse(LOOP), device="cpu"), "launches")
    for number, item in enumerate(found.items):
        text = found.lines[found.owners.index(number)].strip()
        assert text.startswith({"launch": f"launch @{item.label}("}.get(item.kind, item.label))


def test_constants_are_summaries(page: Page) -> None:
    (bias,) = [item.constant for item in stage(page, "program").items if item.constant is not None]
    assert (bias.shape, bias.low, bias.high, bias.nonfinite) == ([16], 1.0, 15.0, 1)
    assert sum(bias.counts) == 15


def test_dynamic_programs_end_with_the_program() -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { %0 = stablehlo.tanh %x : tensor<?xf32> return %0 : tensor<?xf32> }"  # noqa: E501
    found = page_of(trivium.parse(text), device="cpu")
    assert [made.name for made in found.stages] == STAGES[:2]
    assert "dynamic" in stage(found, "program").note


def test_the_program_itself_does_not_change() -> None:
    module = located()
    locations = [op.location for op in module.walk()]
    page_of(module, device="cpu", machine_code=False)
    assert [op.location for op in module.walk()] == locations


def test_source_is_read_around_the_lines_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("".join(f"line{n} = {n}\n" for n in range(1, 41)))
    found = stage(page_of(located(str(file))), "source")
    text = "\n".join(found.lines)
    assert "line7 = 7" in text
    assert "line30 = 30" not in text
    assert found.owners[next(i for i, line in enumerate(found.lines) if "line7 =" in line)] == 6


def test_files_of_the_working_folder_have_short_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.py").write_text("line = 1\n" * 40)
    module = located(str(tmp_path / "model.py"))
    assert stage(page_of(module), "source").lines[0] == str(tmp_path / "model.py")
    monkeypatch.chdir(tmp_path)
    found = stage(page_of(module), "source")
    assert found.lines[0] == found.items[0].path == "model.py"
    assert "line = 1" in found.lines[1]


def test_files_other_than_python_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret\n" * 20)
    found, _ = source_stage(place for op in located(str(secret)).main.body.walk() for place in _files(op))
    assert found.items
    assert "a secret" not in "\n".join(found.lines)


def _files(op):
    from trivium.ir.location import file_locations

    return file_locations(op.location)


def test_lines_of_kernels_compute_ops(page: Page) -> None:
    graph, kernels = stage(page, "graph"), stage(page, "kernels")
    found = {
        line.split(" = ")[1].split()[0]: ops
        for line, ops in zip(kernels.lines, kernels.computes, strict=True)
        if "%" in line and " = " in line
    }
    assert labels(graph, found["tanh"]) == ["tanh"]
    assert labels(graph, found["reduction"]) in (["dot_general"], ["reduce"])


def test_machine_code_names_lines_of_kernels(page: Page) -> None:
    kernels = stage(page, "kernels")
    for name, tanh in (("llvm", "fma"), ("asm", "vfmadd")):
        found = stage(page, name)
        assert len(found.places) == len(found.lines)
        from_tanh = [
            line
            for line, place in zip(found.lines, found.places, strict=True)
            if place >= 0 and "= tanh" in kernels.lines[place]
        ]
        assert any(tanh in line for line in from_tanh)
        assert not any("!dbg" in line or "\t.loc" in line for line in found.lines)


def test_what_surrounds_a_sum_is_not_the_sum() -> None:
    text = """func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
          : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
      return %0 : tensor<64xf32>
    }"""
    page = page_of(trivium.parse(text), device="cpu")
    kernels, llvm = stage(page, "kernels"), stage(page, "llvm")
    lines = zip(llvm.lines, llvm.places, llvm.owners, strict=True)
    ends = [place for line, place, owner in lines if "ret void" in line and llvm.items[owner].origins]
    assert ends
    assert all("parallel" in kernels.lines[place] for place in ends)
