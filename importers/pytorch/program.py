"""From a PyTorch program to a module: an exported program with its parameters, or one FX graph of aten ops."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import sympy
import torch
from torch import fx
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.node import Argument, Target
from torch.utils import _pytree as pytree

from trivium.importers.common import require_regular, role
from trivium.importers.extents import Extent, Size
from trivium.importers.pytorch.aliases import inputs_among, is_on_meta, views_among
from trivium.importers.pytorch.archive import read_contents
from trivium.importers.pytorch.bounds import Bounds, Shape
from trivium.importers.pytorch.capture import describing
from trivium.importers.pytorch.context import Context, Meta, Number, Operand, Randomness
from trivium.importers.pytorch.decompositions import export_decompositions
from trivium.importers.pytorch.graph import convert_graph, location_of, outputs_of, require_rules, target_name
from trivium.importers.pytorch.outputs import ImportedGraph, InputIndex, OnMeta, OpenNumbers, ResultIndex, SizeIndex
from trivium.importers.pytorch.serialized import exported_program
from trivium.importers.pytorch.symbols import Symbols, has_symbols, symbolic
from trivium.ir.attributes import Dictionary
from trivium.ir.core import Block, Region, Value
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.func import FuncReturn, Function, Module
from trivium.ir.stack import with_stack
from trivium.ir.types import I64, FunctionType, TensorType

Constant = torch.Tensor | Number | str | None
"""A placeholder's value that becomes part of the program."""

PARAMETERS = ("constants", "arguments")


@with_stack
def import_module(
    model: torch.nn.Module | ExportedProgram,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    parameters: str = "constants",
    shapes: Mapping[str, Shape] | None = None,
) -> Module:
    """Returns the program of a module at example arguments, or of an exported program.

    Dynamic sizes of an exported program stay dynamic in the module, unless arguments are given; `shapes` maps inputs to
    shapes that fix some or all of them.

    Arguments are in the order of the exported graph: parameters and buffers first, if they are `arguments` or are
    updated, then the user's inputs, flattened; last the state of the random generator, if the program draws. Results
    are the updated buffers and inputs, then the user's outputs, then that state. The attributes hold roles and
    names."""
    _require_kind(parameters)
    with _without_noise():
        program = model if isinstance(model, ExportedProgram) else _exported(model, args, kwargs)
    return _Program(_decomposed(program, "the program"), args, kwargs, shapes=shapes).to_module(parameters)


def _decomposed(program: ExportedProgram, what: str | Path) -> ExportedProgram:
    """Returns the program with the ops that have no rule expressed in terms of others."""
    given = _open_sizes(program)
    try:
        with _without_noise(), describing():
            decomposed = program.run_decompositions(export_decompositions())
    except Exception as error:  # various types: PyTorch traces the program again
        raise Error(f"torch.export cannot decompose {what}: {type(error).__name__}: {error}") from error
    if fixed := [name for name in given if name not in _open_sizes(decomposed)]:
        message = f"{what} has ops that are decomposed only for static sizes, and has dynamic sizes: {', '.join(fixed)}"
        raise UnsupportedOpError(f"{message}; expected a program that is exported with numbers there")
    return decomposed


def _open_sizes(program: ExportedProgram) -> list[str]:
    """Returns the names of the inputs' dimensions whose sizes are open. PyTorch forgets them once it has decided by the
    number that a size had in the example."""
    metas = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return [
        f"dimension {dimension} of {name}"
        for name, meta in metas.items()
        if isinstance(meta, torch.Tensor)
        for dimension, extent in enumerate(meta.shape)
        if symbolic(extent) is not None
    ]


def _require_kind(parameters: str) -> None:
    if parameters not in PARAMETERS:
        raise Error(f"parameters has {parameters!r}, expected one of {', '.join(map(repr, PARAMETERS))}")


@contextmanager
def _without_noise() -> Iterator[None]:
    """Suppresses PyTorch's warnings about its own code: a deprecated class that it uses, and weights that its LSTM
    packs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*_flat_weights.* were assigned during export", category=UserWarning)
        yield


def import_file(path: str | Path, parameters: str = "constants", trust: bool = False) -> Module:
    """Returns the program of a file that `torch.export.save` wrote (`.pt2`), read as data. With `trust`, PyTorch loads
    it, which runs any pickles in the file."""
    _require_kind(parameters)
    require_regular(path)
    if not zipfile.is_zipfile(path):  # for which PyTorch would log more than an error
        raise Error(f"torch.export cannot read {path}: it is not a zip archive, or is damaged")
    if trust:
        return _import_trusted(path, parameters)
    program, names = exported_program(read_contents(path))
    return _Program(_decomposed(program, path), (), None, names).to_module(parameters)


def _import_trusted(path: str | Path, parameters: str) -> Module:
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch.export raises exceptions of various types
        raise Error(f"torch.export cannot read {path}: {error}") from error
    return import_module(program, parameters=parameters)


def _exported(model: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object] | None) -> ExportedProgram:
    if not isinstance(model, torch.nn.Module):
        raise Error(
            f"the model is a {type(model).__name__}, expected an nn.Module, a GraphModule or an ExportedProgram"
        )
    try:
        return torch.export.export(model, tuple(args), dict(kwargs or {}), strict=False)
    except Exception as error:  # torch.export raises exceptions of various types
        raise Error(f"torch.export cannot capture {type(model).__name__}: {error}") from error


class _Program:
    """An exported program, with the description of each placeholder and output in its signature."""

    def __init__(
        self,
        program: ExportedProgram,
        args: Sequence[object],
        kwargs: Mapping[str, object] | None,
        output_names: Sequence[str] | None = None,
        shapes: Mapping[str, Shape] | None = None,
    ):
        self.program = program
        self.output_names = output_names
        self.shapes = shapes or {}
        self.graph = program.graph
        self.placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.inputs = dict(zip(self.placeholders, program.graph_signature.input_specs, strict=True))
        self.args, self.kwargs = args, kwargs

    def to_module(self, parameters: str) -> Module:
        updated = {spec.target for spec in self.program.graph_signature.output_specs if spec.target}
        constants: dict[fx.Node, Constant] = {}
        roles: dict[fx.Node, Dictionary] = {}
        for node, spec in self.inputs.items():
            kind, name = spec.kind, spec.target or node.name
            if kind is InputKind.TOKEN:
                constants[node] = torch.empty(0)
            elif isinstance(spec.arg, ConstantArgument):
                constants[node] = spec.arg.value
            elif kind is InputKind.USER_INPUT:
                roles[node] = role("input", node.name)
            elif not isinstance(spec.arg, TensorArgument):
                raise Error(
                    f"input {name} of the program is a {type(spec.arg).__name__}, expected a tensor or a number"
                )
            elif kind is InputKind.CONSTANT_TENSOR or (parameters == "constants" and name not in updated):
                constants[node] = self._tensor(name)
            else:
                roles[node] = role("parameter" if kind is InputKind.PARAMETER else "buffer", name)
        metas, bounds, symbols = self._metas(), None, None
        if metas is None and not self._is_static():
            bounds = self._bounds()
            symbols = bounds.pinned(self.shapes)
        return build_module(
            *(self.program.graph_module, constants, roles, self._result_roles(), metas, self._outputs()),
            bounds=bounds,
            symbols=symbols,
        ).module

    def _tensor(self, name: str) -> torch.Tensor:
        found = self.program.state_dict.get(name)
        found = self.program.constants[name] if found is None else found
        assert isinstance(found, torch.Tensor), f"{name} is a {type(found).__name__}"
        return found

    def _outputs(self) -> list[fx.Node | Number | None]:
        """Returns what the graph returns, without the tokens that order effects, such as the checks of factorizations:
        ops are converted in the order of the graph."""
        specs = self.program.graph_signature.output_specs
        pairs = zip(outputs_of(self.graph), specs, strict=True)
        return [output for output, spec in pairs if spec.kind is not OutputKind.TOKEN]

    def _result_roles(self) -> list[Dictionary]:
        signature = [x for x in self.program.graph_signature.output_specs if x.kind is not OutputKind.TOKEN]
        user = iter(self.output_names or _paths(cast(pytree.TreeSpec, self.program.call_spec.out_spec)))
        roles = []
        for spec in signature:
            target = spec.target or ""
            if spec.kind is OutputKind.USER_OUTPUT:
                roles.append(role("output", next(user)))
            elif spec.kind is OutputKind.BUFFER_MUTATION:
                roles.append(role("buffer", target))
            elif spec.kind in (OutputKind.USER_INPUT_MUTATION, OutputKind.PARAMETER_MUTATION):
                roles.append(role("input" if "INPUT" in spec.kind.name else "parameter", target))
            else:
                raise Error(
                    f"output {spec.target} of the program has the kind {spec.kind.name}, expected a user's output"
                )
        return roles

    def _metas(self) -> Mapping[fx.Node, Meta] | None:
        """Returns the values of the graph at the arguments, or at the shapes that the caller gives, if its own have
        symbolic sizes; `None` if sizes stay dynamic."""
        if _has_metas(self.graph):
            self._bounds().pinned(self.shapes)
            return None
        values = [node.meta.get("val") for node in self.placeholders]
        if not self._is_static():
            given = self._given()
            if given is None:
                return None
            kinds = [spec.kind for spec in self.inputs.values()]
            values = [next(given) if k is InputKind.USER_INPUT else x for k, x in zip(kinds, values, strict=True)]
        return propagate(self.program.graph_module, values)

    def _given(self) -> Iterator[object] | None:
        """Returns the user's inputs, if no size of them is open: the arguments, or tensors of the shapes."""
        bounds, nodes = self._bounds(), self._user_inputs()
        if self.args or self.kwargs:
            given = pytree.tree_leaves((tuple(self.args), dict(self.kwargs or {})))
            pairs = zip(nodes, given, strict=True)
            bounds.require(bounds.pinned({node.name: x.shape for node, x in pairs if isinstance(x, torch.Tensor)}))
            return iter(given)
        symbols = bounds.pinned(self.shapes)
        metas = [node.meta["val"] for node in nodes]
        kinds = [symbols.type_of(x) if isinstance(x, torch.Tensor) else None for x in metas]
        if not all(kind is None or kind.is_static for kind in kinds):
            return None
        bounds.require(symbols)
        with FakeTensorMode():
            pairs = zip(metas, kinds, strict=True)
            made = [x if k is None else torch.empty(k.static_shape, dtype=x.dtype) for x, k in pairs]
        return iter(made)

    def _user_inputs(self) -> list[fx.Node]:
        return [node for node, spec in self.inputs.items() if spec.kind is InputKind.USER_INPUT]

    def _bounds(self) -> Bounds:
        return Bounds(self.program, {node: node.name for node in self._user_inputs() if "val" in node.meta})

    def _is_static(self) -> bool:
        return not any(has_symbols(node.meta.get("val")) for node in self.placeholders)


def _paths(spec: pytree.TreeSpec) -> list[str]:
    """Returns the names of a structure's leaves, as one would write them after it: `['logits']`, `[0]`."""
    tree = pytree.tree_unflatten(range(spec.num_leaves), spec)
    return [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]


def import_graph(
    module: fx.GraphModule,
    inputs: Sequence[Constant],
    is_visible: Callable[[int], bool] = lambda index: False,
    frozen: Collection[int] = (),
    checks_values: bool = False,
    kept: Collection[int] = (),
    free: Mapping[sympy.Symbol, int | None] = MappingProxyType({}),
) -> ImportedGraph:
    """Returns the program of a functional graph of aten ops, as AOTAutograd makes them, at inputs of concrete
    sizes. With `free`, symbols stay open: the program takes the values of those that have no number there as arguments,
    after the tensors. Other numbers among the inputs become part of the program, and so do the `frozen` ones, by index.
    Of the outputs that are `is_visible`, those that share memory are described as views of one result; of the others,
    those that are one of the inputs `kept`, which do not change before the outputs are used, as views of that. With
    `checks_values`, further results tell of indices that are out of range, and of integers divided by zero."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    constants = {
        node: given.detach().clone() if isinstance(given, torch.Tensor) else given
        for index, (node, given) in enumerate(zip(placeholders, inputs, strict=True))
        if index in frozen or not isinstance(given, torch.Tensor) or is_on_meta(given)
    }
    roles = {node: role("input", node.name) for node in placeholders if node not in constants}
    if free:
        constants = {node: given for node, given in constants.items() if symbolic(_meta(node, None)) is None}
    metas = None if free or _has_metas(module.graph) else propagate(module, inputs)
    outputs = outputs_of(module.graph)
    views = views_among(module.graph, outputs, lambda node: _meta(node, metas), is_visible)
    passed = inputs_among(module.graph, outputs, lambda node: _meta(node, metas), kept)
    views |= {index: view for index, view in passed.items() if not is_visible(index)}
    numbers = OpenNumbers(views.values())
    bases = list(dict.fromkeys(view.base for view in views.values() if view.base.op != "placeholder"))
    nowhere = {index: OnMeta.like(meta) for index, node in enumerate(outputs) if is_on_meta(meta := _meta(node, metas))}
    returned = [None if index in {*views, *nowhere} else node for index, node in enumerate(outputs)] + bases
    built = build_module(
        *(module, constants, roles, None, metas, returned, True),
        checks_values=checks_values,
        further=numbers.evaluate,
        symbols=Symbols({symbol: number for symbol, number in free.items() if number is not None}),
        free=[symbol for symbol, number in free.items() if number is None],
    )
    places: dict[fx.Node, ResultIndex | InputIndex] = {
        base: output
        for base, output in zip(bases, built.outputs[len(outputs) : len(returned)], strict=True)
        if isinstance(output, ResultIndex)
    }
    found = built.outputs[len(returned) :]
    places.update((node, InputIndex(index)) for index, node in enumerate(placeholders))
    described = {index: numbers.described(places[view.base], view, found) for index, view in views.items()} | nowhere
    shown = enumerate(built.outputs[: len(outputs)])
    return replace(built, outputs=tuple(described.get(index, output) for index, output in shown))


def build_module(
    module: fx.GraphModule,
    constants: Mapping[fx.Node, Constant],
    roles: Mapping[fx.Node, Dictionary],
    result_roles: Sequence[Dictionary] | None,
    metas: Mapping[fx.Node, Meta] | None,
    outputs: Sequence[fx.Node | Number | None] | None = None,
    checked: bool = False,
    bounds: Bounds | None = None,
    symbols: Symbols | None = None,
    checks_values: bool = False,
    further: Callable[[Context], list[Extent]] = lambda emit: [],
    free: Sequence[sympy.Symbol] = (),
) -> ImportedGraph:
    """Returns a module whose `main` is a graph. Placeholders with a role are its arguments, all others `constants`, or
    follow from the symbols `free`, whose values are further arguments. `metas` replaces the nodes' own `meta["val"]`,
    `outputs` the results of the graph; after them, there are `further` numbers. If it is `checked`, more results tell
    of failures."""
    graph = module.graph
    block = Block()
    emit = Context(block)
    emit.randomness = Randomness(block)
    emit.checks = [] if checked else None
    emit.symbols = symbols or emit.symbols
    emit.checks_values = checks_values
    values = _placeholders(emit, graph, constants, roles, metas, free)
    if bounds is not None:
        bounds.declare(emit, {node: value for node, value in values.items() if isinstance(value, Value)})
    returned = [*convert_graph(module, emit, values, metas, outputs), *further(emit)]
    sizes = {index for index, value in enumerate(returned) if isinstance(value, Size)}
    returned = [value.value if isinstance(value, Size) else value for value in returned]
    results = [value for value in returned if isinstance(value, Value)]
    entries = result_roles or [role("output", f"[{index}]") for index in range(len(returned))]
    attributes = [entry for entry, value in zip(entries, returned, strict=True) if isinstance(value, Value)]
    arguments = [*roles.values(), *(role("input", str(symbol)) for symbol in free)]
    checks = {len(results) + index: check for index, check in enumerate(emit.checks or ())}
    attributes += [role("output", "check") for _ in checks]
    results += [check.value for check in checks.values()]
    if draws := emit.randomness.draws:
        arguments.append(role("state", "random"))
        attributes.append(role("state", "random"))
        results.append(emit.randomness.state)
    emit.add(FuncReturn(results))
    kind = FunctionType(tuple(argument.type for argument in block.arguments), tuple(value.type for value in results))
    main = Function("main", kind, Region([block]), arg_attrs=arguments, res_attrs=attributes)
    counter = iter(range(len(results)))
    found = tuple(
        (SizeIndex if index in sizes else ResultIndex)(next(counter)) if isinstance(value, Value) else value
        for index, value in enumerate(returned)
    )
    places = [index for index, node in enumerate(graph.find_nodes(op="placeholder")) if node in roles]
    shown = [_meta(node, metas) for node in outputs_of(graph)]
    verified = {index: check.verify for index, check in checks.items()}
    return ImportedGraph(Module.build(functions=[main]), tuple(places), found, tuple(shown), draws, verified)


def _placeholders(
    emit: Context,
    graph: fx.Graph,
    constants: Mapping[fx.Node, Constant],
    roles: Mapping[fx.Node, Dictionary],
    metas: Mapping[fx.Node, Meta] | None,
    free: Sequence[sympy.Symbol],
) -> dict[fx.Node, Operand]:
    """Returns what placeholders are: arguments, which this adds, or constants; or they follow from symbols, whose
    values become further arguments."""
    values: dict[fx.Node, Operand] = {}
    placeholders = graph.find_nodes(op="placeholder")
    for node in placeholders:
        if node in roles:
            values[node] = emit.block.add_argument(_type_of(node, metas, emit.symbols), node.name)
        elif node in constants:
            constant = constants[node]
            if is_on_meta(constant):  # it has no elements that anything could read
                kind = _type_of(node, metas, emit.symbols)
                values[node] = emit.full(kind.static_shape, 0, kind.element_type)
            else:
                is_tensor = isinstance(constant, torch.Tensor)
                values[node] = emit.constant(constant, node.name) if is_tensor else constant
    for symbol in free:
        argument = emit.block.add_argument(TensorType((), I64), str(symbol))
        # Numbers among the inputs are symbols, too, which may be negative.
        emit.symbols.values[symbol] = Size(emit, argument, is_extent=bool(symbol.is_nonnegative))
    for node in placeholders if free else ():
        if node not in values:
            values[node] = emit.symbols.extent(emit, cast(torch.SymInt, node.meta["val"]))
    return values


def _type_of(node: fx.Node, metas: Mapping[fx.Node, Meta] | None, symbols: Symbols) -> TensorType:
    meta = _meta(node, metas)
    if not isinstance(meta, torch.Tensor):
        raise Error(f"input {node.name} of the program is a {type(meta).__name__}, expected a tensor")
    return symbols.type_of(meta)


def _meta(given: fx.Node | Number | None, metas: Mapping[fx.Node, Meta] | None) -> Meta:
    if not isinstance(given, fx.Node):
        return given
    return given.meta.get("val") if metas is None else metas[given]


def _has_metas(graph: fx.Graph) -> bool:
    """Whether a graph has a description of its nodes in which no size is symbolic."""
    nodes = [node for node in graph.nodes if node.op in ("placeholder", "call_function")]
    return all("val" in node.meta and not has_symbols(node.meta["val"]) for node in nodes)


def propagate(module: fx.GraphModule, inputs: Sequence[object]) -> dict[fx.Node, Meta]:
    """Returns a description of every node of a graph, with fake tensors, at inputs of concrete sizes."""
    # Sizes that depend on the elements of tensors are symbols.
    environment = ShapeEnv(allow_dynamic_output_shape_ops=True)
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=environment, static_shapes=True)

    def faked(given: object) -> object:
        if not isinstance(given, torch.Tensor):
            return given
        if not isinstance(given, FakeTensor):
            return mode.from_tensor(given, static_shapes=True)
        with mode:
            return torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=given.device)

    require_rules(module.graph)
    recorder = _Recorder(module)
    with torch.no_grad(), describing(), mode:
        recorder.run(*map(faked, inputs))
    return recorder.found


class _Recorder(fx.Interpreter):
    """Runs a graph and keeps the result of each node."""

    def __init__(self, module: fx.GraphModule):
        super().__init__(module)
        self.found: dict[fx.Node, Meta] = {}

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Meta:
        # A graph's own results may have another memory layout than when it was traced, which had allowed a view.
        reshape = target is torch.ops.aten.view.default
        return super().call_function(torch.ops.aten.reshape.default if reshape else target, args, kwargs)

    def run_node(self, n: fx.Node) -> Meta:
        try:
            self.found[n] = result = super().run_node(n)
        except (DynamicOutputShapeException, DataDependentOutputException) as error:
            reason = Unsupported(target_name(n), reason="its result has a shape that depends on elements of tensors")
            where = location_of(n).describe()
            raise UnsupportedOpError("1 op has no rule:", [reason], inside=n.format_node(), source=where) from error
        except Exception as error:  # various types: the shape propagation of each op may raise anything
            name, place = target_name(n), location_of(n).describe()
            raise Error(f"PyTorch cannot infer the result of {name} before it runs: {error}", source=place) from error
        return result
