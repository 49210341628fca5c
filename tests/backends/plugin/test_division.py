"""Programs for several devices, as hosts describe them: how devices hold arguments and results, and what JAX reads of
this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import trivium
from trivium.backends.artifact import to_bytes
from trivium.backends.cpu.client import cpu_client
from trivium.backends.plugin.division import Divided, Division, divide, fill_pieces
from trivium.backends.plugin.shardings import tiles_of
from trivium.backends.plugin.structures import CompileReply
from trivium.backends.table.client import PluginClient
from trivium.backends.table.discovery import load_plugin
from trivium.backends.table.plugin import Refusal, address_of
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import CompileError, Error
from trivium.ir.text import parse
from trivium.ir.types import F32, tensor

MESHES = {
    "line": '<["x"=2]>',
    "grid": '<["x"=2, "y"=2]>',
}


def text(mesh: str, sharding: str, shape: str = "4x6") -> str:
    kind = f"tensor<{shape}xf32>"
    attribute = f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"
    return f"""sdy.mesh @mesh = {MESHES[mesh]}
    func.func @main(%x: {kind} {attribute}, %s: tensor<f32>) -> ({kind} {attribute}) {{
      return %x : {kind}
    }}"""


def divided(mesh: str, sharding: str, shape: str = "4x6") -> Divided:
    found = divide(parse(text(mesh, sharding, shape)), 1, 2 if mesh == "line" else 4)
    assert found is not None
    return found


def sharding_of(found: Divided, shape: str = "4x6") -> str:
    """Returns the sharding of the first argument."""
    extents = map(int, shape.split("x")) if shape else ()
    tiles = tiles_of(tensor(*extents, of=F32), found.program.arguments[0].part)
    assert tiles.proto() == found.division.shardings[0]
    return tiles.text()


CASES = {
    "rows": ("line", '[{"x"}, {}]', "{devices=[2,1]0,1}"),
    "columns": ("line", '[{}, {"x"}]', "{devices=[1,2]0,1}"),
    "whole": ("line", "[{}, {}]", "{replicated}"),
    "both": ("grid", '[{"x"}, {"y"}]', "{devices=[2,2]0,1,2,3}"),
    "turned": ("grid", '[{"y"}, {"x"}]', "{devices=[2,2]0,2,1,3}"),
    "copies of rows": ("grid", '[{"x"}, {}]', "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"),
    "copies across": ("grid", '[{"y"}, {}]', "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}"),
    "together": ("grid", '[{"x", "y"}, {}]', "{devices=[4,1]0,1,2,3}"),
    "terms": ("line", '[{}, {}], unreduced={"x"}', "{unreduced}"),
    "terms of copies": (
        "grid", '[{}, {}], unreduced={"y"}', "{devices=[1,1,2,2]0,1,2,3 last_tile_dims={replicated,unreduced}}"
    ),
}  # fmt: skip


def test_terms_of_a_number() -> None:
    found = divide(parse(text("grid", '[], unreduced={"y"}', "").replace("tensor<xf32>", "tensor<f32>")), 1, 4)
    assert found is not None
    assert sharding_of(found, "") == "{devices=[2,2]0,1,2,3 last_tile_dims={replicated,unreduced}}"


@pytest.mark.parametrize("name", CASES)
def test_shardings_in_the_words_of_xla(name: str) -> None:
    mesh, sharding, wanted = CASES[name]
    assert sharding_of(divided(mesh, sharding)) == wanted


def tiles(sharding: str) -> dict[int, tuple[int, ...]]:
    """Returns the tile of each device, as XLA defines shardings: the devices fill the grid in row-major order."""
    grid, _, devices = sharding.removeprefix("{devices=[").partition("]")
    counts = [int(count) for count in grid.split(",")]
    order = [int(device) for device in devices.partition(" ")[0].rstrip("}").split(",")]
    tile = np.stack(np.unravel_index(np.arange(len(order)), counts), axis=1)
    return {device: tuple(tile[place, :2].tolist()) for place, device in enumerate(order)}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "devices" in case[2] and "terms" not in name])
def test_shardings_mean_the_parts_that_devices_have(name: str) -> None:
    found = divided(*CASES[name][:2])
    part = found.program.arguments[0].part
    for device, tile in tiles(sharding_of(found)).items():
        assert part.begins[device] == tuple(np.multiply(tile, part.shape).tolist())


def test_tokens_are_arrays_without_elements() -> None:
    """Native code reads as many extents as the program's arrays have, which has arrays in place of tokens."""
    module = parse("func.func @main(%t: !stablehlo.token) -> !stablehlo.token { return %t : !stablehlo.token }")
    found = divide(module, 1, 2)
    assert found is not None
    assert [held.part.shape for held in (*found.division.arguments, *found.division.results)] == [(0,), (0,)]


def test_pieces() -> None:
    """Arguments, then results: the shape of a part, and its start for each device."""
    found = divided("grid", '[{"x"}, {"y"}]')
    reply = CompileReply()
    kept = fill_pieces(reply, found.division)
    assert kept
    held = [*found.program.arguments, *found.program.results]
    assert [each.part.shape for each in held] == [(2, 3), (), (2, 3)]
    for number, each in enumerate(held):
        piece, rank = reply.pieces[number], len(each.part.shape)
        assert piece.is_whole == each.is_whole
        assert tuple(piece.dims[:rank]) == each.part.shape
        assert piece.begins[: 4 * rank] == [begin for begins in each.part.begins for begin in begins]
    assert reply.pieces[0].begins[:8] == [0, 0, 0, 3, 2, 0, 2, 3]
    program = found.program
    flags = program.is_shared, program.exchanges, program.has_device
    assert (reply.is_shared, reply.exchanges, reply.has_device) == flags


def test_one_device_has_everything() -> None:
    assert divide(parse(text("line", '[{"x"}, {}]')), 1, 1) is None


def test_one_device_knows_its_number() -> None:
    """Also in a function that is called, as `shard_map` over a mesh of one device writes it."""
    module = parse("""
        func.func @main() -> (tensor<ui32>, tensor<ui32>) {
          %0 = func.call @own() : () -> tensor<ui32>
          %1 = stablehlo.replica_id : tensor<ui32>
          return %0, %1 : tensor<ui32>, tensor<ui32>
        }
        func.func private @own() -> tensor<ui32> {
          %0 = stablehlo.partition_id : tensor<ui32>
          return %0 : tensor<ui32>
        }""")
    assert divide(module, 1, 1) is None
    assert [int(number) for number in trivium.compile(module)()] == [0, 0]


def test_arrays_without_elements() -> None:
    """Each part of an empty array is the whole array."""
    assert sharding_of(divided("line", '[{"x"}, {}]', "0x6"), "0x6") == "{replicated}"


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(CompileError, match=r"dimension 0 of \(5, 6\) is divided into 2 parts of unequal size"):
        divided("line", '[{"x"}, {}]', "5x6")
    with pytest.raises(CompileError, match="2 replicas of 2 partitions"):
        divide(parse(text("line", '[{"x"}, {}]')), 2, 2)
    with pytest.raises(CompileError, match="a mesh of 2 devices, expected 4"):
        divide(parse(text("line", '[{"x"}, {}]')), 1, 4)


@pytest.mark.parametrize("name", CASES)
def test_divisions_are_written_and_read(name: str) -> None:
    mesh, sharding, _ = CASES[name]
    found = divided(mesh, sharding).division
    read = Division.read(found.texts())
    assert read is not None
    assert read.texts() == found.texts()
    assert [each.part.begins for each in read.arguments] == [each.part.begins for each in found.arguments]
    assert (read.replicas, read.partitions) == (1, 2 if mesh == "line" else 4)
    flags = found.is_shared, found.exchanges, found.has_device
    assert (read.is_shared, read.exchanges, read.has_device) == flags
    assert Division.read({}) is None


ADD = """func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.add %x, %x : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}"""

DIVISIONS = {
    "2 1 0 0 0 1 0 2 4 6 0 0 0 0 1 0 2 4 6 0 0 0 0": "there is no device 1",
    "1 1 0 0 0 1 0 2 4 6 0 0 1 0 2 4 6 0 0 7": "more numbers than its devices need",
    "2 1 0 0 0 1 1 2 2 6 0 0 3 0 1 0 2 4 6 0 0 0 0": "a part of an array is outside of it",
    "2 1 0 0 0 1 0 1 4 0 0 1 0 2 4 6 0 0 0 0": "arrays of other ranks",
    "2 1 0 0 1 1 0 2 4 6 0 0 0 0 1 0 2 4 6 0 0 0 0": "its devices have other arrays",
    "2 1 0 0 0 1 0 99999999999 4": "the numbers of its devices are wrong",
    "5000 1 0 0 0 0": "the numbers of its devices are wrong",
    "-2 1 0 0 0 0": "the numbers of its devices are wrong",
    "two": "the numbers of its devices are wrong",
}
"""What the native runtime says of the divisions of artifacts: only the first one is right, for two devices."""


@pytest.mark.parametrize(("division", "reason"), DIVISIONS.items())
def test_divisions_that_do_not_fit(division: str, reason: str) -> None:
    artifact = cpu_client().compile(parse(ADD), CompileOptions()).whole()
    data = to_bytes(replace(artifact, texts={**artifact.texts, "division": division}))
    client = PluginClient(load_plugin("trivium"))
    fields = {"serialized_executable": address_of(data), "serialized_executable_size": len(data)}
    with pytest.raises(Refusal, match=reason):
        client.plugin.call("Executable_DeserializeAndLoad", client=client.handle, **fields)
    read = Division.read({"division": division}) if reason.endswith("ranks") else None
    if read is not None:
        with pytest.raises(Error, match=r"have arrays of the ranks \[1, 2\], the program of \[2, 2\]"):
            read.check(artifact)
