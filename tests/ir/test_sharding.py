"""Shardings in programs, and the parts that they assign to devices."""

import pytest

from trivium.ir.attributes import OpaqueAttribute
from trivium.ir.errors import CompileError
from trivium.ir.mesh import Mesh, MeshAxis
from trivium.ir.sharding import (
    Part,
    Sharding,
    find_mesh,
    part_of,
    part_of_tiles,
    read_axes,
    read_sharding,
    read_shardings,
)

MESH = Mesh((MeshAxis("x", 2), MeshAxis("y", 4)))


def parts(text: str, shape: tuple[int, ...], mesh: Mesh = MESH, devices: int = 8) -> Part:
    return part_of(read_sharding(OpaqueAttribute(f"#sdy.sharding<@mesh, {text}>")), mesh, shape, devices)


def test_dimensions_are_divided_by_axes() -> None:
    found = parts('[{"x"}, {}]', (4, 6))
    assert found == Part((2, 6), tuple((2 * (device // 4), 0) for device in range(8)))
    both = parts('[{"y", "x"}, {}]', (8, 6))
    assert both == Part((1, 6), tuple((device % 4 * 2 + device // 4, 0) for device in range(8)))


def test_parts_of_axes() -> None:
    found = parts('[{"y":(1)2}, {"y":(2)2}]', (4, 6))
    assert found == Part((2, 3), tuple((device // 2 % 2 * 2, device % 2 * 3) for device in range(8)))


def test_parts_of_open_and_replicated_dimensions() -> None:
    assert parts('[{?}, {"x", ?}p1], replicated={"y"}', (4, 6)).shape == (4, 3)
    assert parts("[{}, {?}]", (4, 6)) == Part.whole((4, 6), 8)
    assert parts("[]", (), Mesh(())) == Part.whole((), 8)


def test_terms() -> None:
    found = parts('[{"x"}], unreduced={"y"}', (4,))
    assert found.shape == (2,)
    assert found.terms == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_several_in_one_attribute() -> None:
    text = '#sdy.sharding_per_value<[<@"my mesh", [{"x"}]>, <mesh<["a"=2], device_ids=[1, 0]>, [{"a"}]>]>'
    first, second = read_shardings(OpaqueAttribute(text))
    assert first.mesh == "my mesh"
    assert find_mesh(first, {"my mesh": MESH}) is MESH
    inlined = find_mesh(second, {})
    assert part_of(second, inlined, (2,), 2) == Part((1,), ((1,), (0,)))


def test_axes() -> None:
    assert read_axes(OpaqueAttribute('#sdy<manual_axes{"x", "y"}>')) == {"x", "y"}
    only = read_sharding(OpaqueAttribute('#sdy.sharding<@mesh, [{"x", "y"}]>')).along(frozenset({"y"}))
    assert [axis.name for axis in only.dimensions[0]] == ["y"]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("{devices=[2,2]<=[4]}", ((0, 0), (0, 3), (2, 0), (2, 3))),
        ("{devices=[2,2]<=[2,2]T(1,0)}", ((0, 0), (2, 0), (0, 3), (2, 3))),
        ("{devices=[2,2]3,2,1,0}", ((2, 3), (2, 0), (0, 3), (0, 0))),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", ((0, 0), (0, 0), (2, 0), (2, 0))),
        ("{replicated}", ((0, 0),) * 4),
    ],
)
def test_tiles(text: str, begins: tuple) -> None:
    assert part_of_tiles(text, (4, 6), 4).begins == begins


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: parts('[{"y"}, {}]', (6, 6)), "into 4 parts of unequal size"),
        (lambda: parts('[{"x"}, {}]', (4, 6), devices=4), "a mesh of 8 devices, expected 4"),
        (lambda: find_mesh(Sharding("other", ()), {"mesh": MESH}), "@other, which the module does not have"),
        (lambda: part_of_tiles("{maximal device=0}", (4,), 4), "is not supported"),
        (lambda: part_of_tiles("{devices=[4]<=[4]}", (6,), 4), "parts of equal size"),
        (lambda: part_of_tiles("{devices=[2]<=[2]}", (6,), 4), "among 4 devices"),
    ],
)
def test_errors(function, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        function()
