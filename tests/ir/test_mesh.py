"""Groups of processes along the axes of a mesh: their text, the processes in each group, and programs that use them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trivium.ir.attributes import DenseElements, OpaqueAttribute, SymbolRef
from trivium.ir.equality import difference
from trivium.ir.errors import Error, ExecutionError, ParseError, VerificationError
from trivium.ir.interpreter import evaluate
from trivium.ir.mesh import AxisRef, Mesh, MeshAxis, ReplicaGroupMeshAxes, SubAxis, groups, mesh_of
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse, print_module
from trivium.ir.text.attributes import AttributeWriter
from trivium.ir.text.parser import Parser

X, Y, Z = MeshAxis("x", 2), MeshAxis("y", 3), MeshAxis("z", 4)
MESH = (
    '#stablehlo.mesh<axes=[<name = "x", size = 2>, <name = "y", size = 4>], '
    "device_ids=dense<[0, 2, 1, 3, 4, 5, 6, 7]> : tensor<8xi64>>"
)
TEXTS = {
    '#stablehlo.mesh_axis<name = "x", size = 2>': X,
    '#stablehlo.axis_ref<name = "x">': AxisRef("x"),
    '#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>': AxisRef("x", SubAxis(1, 2)),
    '#stablehlo.mesh<axes=[<name = "x", size = 2>]>': Mesh((X,)),
    MESH: Mesh((X, MeshAxis("y", 4)), DenseElements(np.int64([0, 2, 1, 3, 4, 5, 6, 7]))),
    '#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>': ReplicaGroupMeshAxes(
        SymbolRef("mesh"), (AxisRef("x"),)
    ),
    f"#stablehlo.replica_group_mesh_axes<mesh = {MESH}, axes = []>": None,
}
OTHER_SPELLINGS = {
    '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>': Mesh((X,)),
    '#stablehlo.axis_ref<sub_axis_info=(1) 2, name="x">': AxisRef("x", SubAxis(1, 2)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    value = Parser(text).attribute()
    assert TEXTS[text] is None or value == TEXTS[text]
    assert AttributeWriter().attribute(value) == text


@pytest.mark.parametrize("text", OTHER_SPELLINGS)
def test_other_spellings(text: str) -> None:
    assert Parser(text).attribute() == OTHER_SPELLINGS[text]


@pytest.mark.jax
@pytest.mark.parametrize("text", [*TEXTS, *OTHER_SPELLINGS])
def test_mlir_has_the_same_text(text: str) -> None:
    ir = pytest.importorskip("jaxlib.mlir.ir")
    from jaxlib.mlir.dialects import stablehlo

    with ir.Context() as context:
        stablehlo.register_dialect(context)
        assert str(ir.Attribute.parse(text)) == AttributeWriter().attribute(Parser(text).attribute())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "#stablehlo.replica_group_mesh_axes<mesh = @m::@n, axes = []>",
            "mesh is neither a mesh nor the symbol of one",
        ),
        (f'#stablehlo.replica_group_mesh_axes<mesh = {MESH}, axes = ["x"]>', "expected references to axes"),
        (f'#stablehlo.replica_group_mesh_axes<mesh = {MESH}, axes = [#stablehlo.axis_ref<name = "q">]>', "axis 'q'"),
        ("#stablehlo.mesh_axis<name = x, size = 2>", "'x' is not a type"),
        ('#stablehlo.mesh_axis<name = "x">', "lacks size"),
        ('#stablehlo.axis_ref<name = "x", sub_axis_info = 2>', r"has '2', expected '\('"),
        ("#stablehlo.replica_group_mesh_axes<mesh = " * 500, "nested|deep"),
    ],
)
def test_wrong_texts(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        Parser(text).attribute()


def test_groups() -> None:
    """Two devices are in the same group if their positions differ only along these axes. Within a group, the position
    along the first axis changes slowest."""
    grid = np.arange(24).reshape(2, 3, 4)
    mesh = Mesh((X, Y, Z))
    for count in range(4):
        for axes in itertools.permutations(range(3), count):
            others = [axis for axis in range(3) if axis not in axes]
            rows = groups(mesh, [AxisRef("xyz"[axis]) for axis in axes])
            assert np.sort(np.ravel(rows)).tolist() == list(range(24))
            for row in rows:
                places = [np.argwhere(grid == device)[0] for device in row]
                assert all((place[others] == places[0][others]).all() for place in places)
                along = [tuple(place[list(axes)]) for place in places]
                assert along == list(itertools.product(*[range(grid.shape[axis]) for axis in axes]))


def test_groups_along_parts_of_an_axis() -> None:
    """An axis of 12, split into parts of 3, 2 and 2, is three axes."""
    whole = Mesh((X, MeshAxis("y", 12)))
    apart = Mesh((X, MeshAxis("a", 3), MeshAxis("b", 2), MeshAxis("c", 2)))
    parts = {"a": AxisRef("y", SubAxis(1, 3)), "b": AxisRef("y", SubAxis(3, 2)), "c": AxisRef("y", SubAxis(6, 2))}
    for names in ("a", "b", "c", "ab", "ca", "bc", "cba"):
        assert groups(whole, [parts[name] for name in names]) == groups(apart, [AxisRef(name) for name in names])


def test_numbers_of_devices() -> None:
    mesh = Mesh((X, MeshAxis("y", 2)), DenseElements(np.int64([0, 2, 1, 3])))
    assert groups(mesh, [AxisRef("x")]) == ((0, 1), (2, 3))
    assert groups(Mesh((), DenseElements(np.int64([5]))), []) == ((5,),)


@pytest.mark.parametrize(
    ("mesh", "axes", "message"),
    [
        (Mesh((X,)), [AxisRef("x"), AxisRef("x")], "not a part of axis 'x'|each part of an axis once"),
        (Mesh((X,)), [AxisRef("x"), AxisRef("x", SubAxis(1, 2))], "not a part of axis 'x'|each part of an axis once"),
        (Mesh((Z,)), [AxisRef("z", SubAxis(1, 3))], r"\(1\)3 overlaps, or is not a part of axis 'z' of size 4"),
        (Mesh((Z,)), [AxisRef("z", SubAxis(0, 2))], "not a part of axis 'z'"),
        (Mesh((MeshAxis("x", 0),)), [], "axis 'x' has size 0"),
        (Mesh((MeshAxis("x", 1 << 40),)), [], "devices, expected at most"),
        (Mesh((X,), DenseElements(np.int64([0]))), [], "a mesh of 2 devices has 1 device_ids"),
        (Mesh((X,), DenseElements(np.float32([0, 1]))), [], "device_ids has type tensor<2xf32>, expected integers"),
        (Mesh((X, X)), [], "expected each name once"),
    ],
)
def test_axes_that_do_not_fit(mesh: Mesh, axes: list[AxisRef], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        groups(mesh, axes)


PROGRAM = """
module {{
{mesh}
func.func @main(%0: tensor<1xi32>) -> tensor<2xi32> {{
  %1 = "stablehlo.all_gather"(%0) {{all_gather_dim = 0 : i64, replica_groups =
    #stablehlo.replica_group_mesh_axes<mesh = {named}, axes = [#stablehlo.axis_ref<name = "x">]>}}
    : (tensor<1xi32>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}}
}}"""
INLINE = PROGRAM.format(mesh="", named='#stablehlo.mesh<axes=[<name = "x", size = 2>, <name = "y", size = 2>]>')
BY_SYMBOL = {
    "shardy": 'sdy.mesh @mesh = <["x"=2, "y"=2]>',
    "shardy with numbers": 'sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[0, 1, 2, 3]>',
    "dictionary": '"sdy.mesh"() {mesh = #sdy.mesh<[]>, sym_name = "mesh", '
    'stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}]}} : () -> ()',
    "attribute": "func.func private @mesh() attributes "
    '{stablehlo.mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>, <name = "y", size = 2>]>}',
}


@pytest.mark.parametrize(
    "text",
    [INLINE, *(PROGRAM.format(mesh=mesh, named="@mesh") for mesh in BY_SYMBOL.values())],
    ids=["inline", *BY_SYMBOL],
)
def test_programs(text: str) -> None:
    module = parse(text)
    module.verify()
    assert difference(parse(print_module(module)), module) == ""
    results = run_parallel(module, [["main"]] * 4, [[np.int32([number])] for number in range(4)])
    assert [result.tolist() for (result,) in results] == [[0, 2], [1, 3], [0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ('<["x"=2, "y"=3]>', Mesh((X, Y))),
        ('<[ "x" = 2 ], device_ids = [1, 0]>', Mesh((X,), DenseElements(np.int64([1, 0])))),
        ("<[], device_ids=[5]>", Mesh((), DenseElements(np.int64([5])))),
        ('<["x"=12345678901234567890]>', None),
        ('<["x"=2], device_ids=[12345678901234567890, 0]>', None),
        ('<["x"=2], device_ids=[0, a]>', None),
        ('<["x", "y"=2]>', None),
    ],
)
def test_meshes_of_shardy(text: str, mesh: Mesh | None) -> None:
    assert mesh_of({"mesh": OpaqueAttribute(f"#sdy.mesh{text}")}) == mesh


def test_cross_replica_sum_takes_no_axes() -> None:
    text = INLINE.replace("stablehlo.all_gather", "stablehlo.cross-replica-sum").replace(
        "all_gather_dim = 0 : i64, ", ""
    )
    with pytest.raises(ParseError, match=r"attribute replica_groups has .*expected matrix of integers"):
        parse(text)


def test_a_mesh_that_is_not_there() -> None:
    with pytest.raises(VerificationError, match="replica_groups has mesh @mesh, which the module does not have"):
        parse(PROGRAM.format(mesh="", named="@mesh")).verify()


@pytest.mark.parametrize("mesh", [mesh.replace('"x"', '"z"') for mesh in BY_SYMBOL.values()], ids=BY_SYMBOL)
def test_a_mesh_without_the_axis(mesh: str) -> None:
    with pytest.raises(VerificationError, match=r"axis 'x' is not an axis of the mesh, which has \['z', 'y'\]"):
        parse(PROGRAM.format(mesh=mesh, named="@mesh")).verify()


def test_a_mesh_without_axes() -> None:
    module = parse(PROGRAM.format(mesh="func.func private @mesh()", named="@mesh"))
    module.verify()
    with pytest.raises(ExecutionError, match="@mesh is not a mesh"):
        evaluate(module, np.int32([1]), function="main")


def test_constraints_look_into_a_mesh_that_is_given() -> None:
    text = INLINE.replace(">, axes =", ", device_ids=dense<[0, 0, 1, 2]> : tensor<4xi64>>, axes =")
    with pytest.raises(Error, match=r"\[C2\] replica_groups"):
        parse(text).verify()
