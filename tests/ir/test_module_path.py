"""The submodule of a model that an op comes from: it is part of the op's location, in memory, in text and in
artifacts."""

from pathlib import Path

import pytest

import trivium
from trivium.ir.location import UNKNOWN, FileLocation, FusedLocation, NameLocation
from trivium.ir.module_path import in_module, module_path

PLACE = NameLocation("aten.relu.default", FileLocation("model.py", 41))


def test_a_location_has_the_path_that_it_was_given() -> None:
    assert module_path(in_module(PLACE, "encoder.layer.0")) == "encoder.layer.0"
    assert module_path(FusedLocation((PLACE, in_module(PLACE, "head")))) == "head"
    assert module_path(in_module(in_module(PLACE, "inner"), "outer")) == "outer"


def test_the_whole_model_has_no_path() -> None:
    assert in_module(PLACE, "") is PLACE
    assert module_path(PLACE) == module_path(UNKNOWN) == ""
    assert module_path(FusedLocation((PLACE,), "other metadata")) == ""


def test_the_description_is_that_of_the_place() -> None:
    assert in_module(PLACE, "encoder").describe() == PLACE.describe()


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_files_keep_it(tmp_path: Path, suffix: str) -> None:
    module = trivium.parse("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")
    module.main.location = in_module(PLACE, 'a "strange" path')
    module.save(tmp_path / f"program{suffix}")
    assert module_path(trivium.load(tmp_path / f"program{suffix}").main.location) == 'a "strange" path'
