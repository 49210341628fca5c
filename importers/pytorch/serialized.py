"""The program of a `.pt2` archive, made safe before PyTorch builds it. PyTorch evaluates the text of symbolic sizes,
looks operators up among all attributes of `torch`, imports the modules that a structure names, and generates Python
from the names in a graph. So only parts that are known to be data get through: sizes are the numbers that they had when
the program was exported, operators are those of PyTorch's dispatcher, names are identifiers, and everything else is
left out."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from keyword import iskeyword

import torch
from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram

from trivium.importers.common import place, refuse
from trivium.importers.pytorch.archive import Contents, Json
from trivium.importers.pytorch.context import rule
from trivium.importers.pytorch.sizes import SIZE_OPS, Sizes
from trivium.importers.pytorch.structure import leaf_names
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.location import Location

MODES = ("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast")
"""Regions of another mode, which PyTorch's own decompositions inline."""

REFUSED = frozenset(
    {
        # these access things outside the program
        *("aten.from_file.default", "aten.from_file.out", "aten._print.default"),
        # these make as many tensors as a number says
        *("aten.hsplit.int", "aten.vsplit.int", "aten.dsplit.int", "aten.tensor_split.tensor_indices_or_sections"),
    }
)
"""Operators of the dispatcher that do more than compute."""

logger = logging.getLogger(__name__)

_FRAME = re.compile(r'File "(?P<file>[^"\n]{1,4096})", line (?P<line>\d{1,9}), in (?P<function>[\w<>.]{1,256})')
_MODULE = r"[\w.]{1,999},[\w.]{0,999},[\w.]{1,999}"
_MODULES = re.compile(f"{_MODULE}(;{_MODULE}){{0,99}}")


def exported_program(contents: Contents) -> tuple[ExportedProgram, list[str]]:
    """The program of an archive, and the names of the user's outputs."""
    try:
        checked, names = _checked(contents.program)
        program = _dict_to_dataclass(schema.ExportedProgram, checked)
        return ExportedProgramDeserializer().deserialize(program, dict(contents.state), dict(contents.constants)), names
    except Error:
        raise
    except Exception as error:  # various types: the contents of a file can surprise PyTorch anywhere
        raise Error(f"the program is damaged: {type(error).__name__}: {error}") from error


def _checked(program: Json) -> tuple[Json, list[str]]:
    major = program["schema_version"]["major"]
    if major != schema.SCHEMA_VERSION[0]:
        raise Error(f"the program has version {major} of torch.export's schema, expected {schema.SCHEMA_VERSION[0]}")
    module = program["graph_module"]
    refused = [found for found in _calls(module["graph"]) if not _is_known(found[0])]
    if refused:
        refuse(refused, during="importing 'main'")
    if program.get("range_constraints"):
        logger.warning("the program's dynamic sizes are fixed to those of its export; `trust` keeps them dynamic")
    graph = _Graph(module["graph"])
    signature = _signature(module["signature"], graph)
    inputs = _input_names(signature["input_specs"])
    outputs = sum("user_output" in spec for spec in signature["output_specs"])
    out_spec = module["module_call_graph"][0]["signature"]["out_spec"]
    names = leaf_names(out_spec, module.get("treespec_namedtuple_fields") or {}, outputs)
    checked = {
        "graph_module": {
            "graph": graph.checked,
            "signature": signature,
            "module_call_graph": [{"fqn": "", "signature": _flat_call(inputs, outputs)}],
        },
        "opset_version": {},
        "range_constraints": {},
        "schema_version": {"major": major, "minor": schema.SCHEMA_VERSION[1]},
        "verifiers": [dialect for dialect in program.get("verifiers", ()) if dialect in ("TRAINING", "ATEN")],
        "guards_code": [],
    }
    return checked, names


def _flat_call(inputs: Sequence[str], outputs: int) -> Json:
    """Returns a signature of flat inputs and outputs: PyTorch never gets the user's structure."""
    given = _node("builtins.tuple", "null", [_LEAF] * len(inputs))
    return {
        "inputs": [],
        "outputs": [],
        "in_spec": _dumped(_node("builtins.tuple", "null", [given, _node("builtins.dict", "[]", [])])),
        "out_spec": _dumped(_node("builtins.tuple", "null", [_LEAF] * outputs)),
        "forward_arg_names": list(inputs),
    }


def _node(kind: str | None, context: str | None, children: Sequence[Json]) -> Json:
    """Returns a node of a structure, as PyTorch writes it."""
    return {"type": kind, "context": context, "children_spec": list(children)}


_LEAF = _node(None, None, ())


def _dumped(structure: Json) -> str:
    return json.dumps([1, structure])


def _input_names(specifications: Sequence[Json]) -> list[str]:
    """Returns the names of the arguments that the user passes, each once."""
    names: dict[str, None] = {}
    for spec in specifications:
        if "constant_input" in spec:
            name = spec["constant_input"]["name"]
        elif "as_tensor" in spec.get("user_input", {}).get("arg", {}):
            name = spec["user_input"]["arg"]["as_tensor"]["name"]
        elif "user_input" in spec:
            name = ""
        else:
            continue
        names[name if name and name not in names else f"arg{len(names)}"] = None
    return list(names)


# Operators


def _calls(graph: Json) -> Iterator[tuple[str, Location]]:
    """Yields the operators of a graph and those inside it, by the names of rules, with the user's lines."""
    for node in graph["nodes"]:
        name = str(node["target"]).removeprefix("torch.ops.")
        frames = list(_FRAME.finditer(str(node["metadata"].get("stack_trace", ""))))
        file, line, function = frames[-1].groups() if frames else ("", "0", "")
        yield name, place(name, file, int(line), function)
        for entry in node["inputs"]:
            if "as_graph" in entry["arg"]:
                yield from _calls(entry["arg"]["as_graph"]["graph"])


def _is_known(name: str) -> bool:
    """Whether an operator computes with tensors and sizes, and does nothing else."""
    if name in SIZE_OPS or name in MODES:
        return True
    if name.startswith("higher_order."):
        return name in rule and isinstance(_found(name), HigherOrderOperator)
    op = _found(name) if name.startswith(("aten.", "prims.")) or name in rule else None
    # Others are TorchScript's own, which read and write files and raise.
    return isinstance(op, OpOverload) and name not in REFUSED and torch._C._dispatch_has_kernel(op.name())


def _found(name: str) -> object:
    """Returns the operator of a name; `None` if there is none."""
    found: object = torch.ops
    for part in name.split("."):
        if not part.isidentifier():
            return None
        try:
            found = getattr(found, part)
        except (AttributeError, RuntimeError):
            return None
    return found


# Graphs


class _Graph:
    """A graph in which every name is an identifier and every size a number. Arithmetic on sizes is done here, within 64
    bits, and its nodes are absent from the `checked` ones."""

    def __init__(self, graph: Json):
        tensors = {_name(name): _meta(meta) for name, meta in graph["tensor_values"].items()}
        self.tensors = tensors
        self.sizes = Sizes(tensors, graph)
        inputs = [self.argument(entry) for entry in graph["inputs"]]
        nodes = [checked for node in graph["nodes"] for checked in self._nodes(node)]
        self.checked: Json = {
            "inputs": inputs,
            "outputs": [self.argument(entry) for entry in graph["outputs"]],
            "nodes": nodes,
            "tensor_values": tensors,
            "sym_int_values": {},
            "sym_bool_values": {},
            "sym_float_values": {},
            "custom_obj_values": {},
            "is_single_tensor_return": graph.get("is_single_tensor_return", False),
        }

    def _nodes(self, node: Json) -> list[Json]:
        """Returns the replacement of a node."""
        target = node["target"].removeprefix("torch.ops.")
        if target in SIZE_OPS:
            self.sizes.evaluate(target, node)
            return []
        checked = self._node(node)
        return [*self._held(target, checked), checked] if target in SPLITS else [checked]

    def _held(self, target: str, node: Json) -> list[Json]:
        """Checks a split, which makes as many tensors as its operand has space for, whatever the file says about them.
        So the file must have exactly that many, and a view before the split holds the operand to the sizes that the
        file states."""
        given = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        source = given["self"]["as_tensor"]["name"]
        meta = self.tensors[source]
        sizes = [entry["as_int"] for entry in meta["sizes"]]
        parts, dimension = (given.get(name, {}).get("as_int", 0) for name in (SPLITS[target], "dim"))
        expected = _count_of(target, sizes[dimension], parts)
        count = sum(len(entry.get("as_tensors", (0,))) for entry in node["outputs"])
        if count != expected:
            raise Error(f"the program is damaged: {target} of {sizes} has {count} results, expected {expected}")
        held = f"{source}_held_{len(self.tensors)}"
        self.tensors[held] = meta
        next(entry for entry in node["inputs"] if entry["name"] == "self")["arg"] = {"as_tensor": {"name": held}}
        size = {"name": "size", "arg": {"as_ints": sizes}, "kind": 1}
        source = {"name": "self", "arg": {"as_tensor": {"name": source}}, "kind": 1}
        outputs = [{"as_tensor": {"name": held}}]
        view = {"target": "torch.ops.aten.view.default", "inputs": [source, size], "outputs": outputs, "name": held}
        return [{**node, **view}]

    def _node(self, node: Json) -> Json:
        name = node.get("name")
        return {
            "target": node["target"],
            "inputs": [
                {
                    "name": _name(entry["name"]) if entry["name"] else "",
                    "arg": self.argument(entry["arg"]),
                    "kind": entry.get("kind"),
                }
                for entry in node["inputs"]
            ],
            "outputs": [self._result(entry) for entry in node["outputs"]],
            "metadata": _metadata(node["metadata"]),
            "is_hop_single_tensor_return": node.get("is_hop_single_tensor_return"),
            "name": _name(name) if name else None,
        }

    def _result(self, entry: Json) -> Json:
        ((kind, value),) = entry.items()
        if kind not in ("as_tensor", "as_tensors", "as_none"):
            raise UnsupportedOpError(f"a number ({value}) that depends on elements of a tensor is not supported")
        return self.argument(entry)

    def argument(self, entry: Json) -> Json:
        """Returns an argument of a kind that contains only tensors, numbers, words and graphs."""
        ((kind, value),) = entry.items()
        if kind in _AS_IT_IS:
            return entry
        if kind in ("as_tensor", "as_optional_tensor"):
            return {kind: self._tensor(value)}
        if kind in ("as_tensors", "as_optional_tensors"):
            return {kind: [self._tensor(x) for x in value]}
        if kind == "as_nested_tensors":
            return {kind: [[self._tensor(x) for x in inner] for inner in value]}
        if kind == "as_device":
            return {kind: {"type": "cpu", "index": None}}
        if kind == "as_graph":
            return {kind: {"name": _name(value["name"]), "graph": _Graph(value["graph"]).checked}}
        if kind in _NUMBERS:
            return self.sizes.argument(kind, value)
        raise UnsupportedOpError(f"an argument is a {kind.removeprefix('as_')}, expected tensors, numbers and words")

    def _tensor(self, value: Json) -> Json:
        if set(value) == {"as_tensor"}:
            return {"as_tensor": self._tensor(value["as_tensor"])}
        return value if set(value) == {"as_none"} else {"name": _name(value["name"])}


def _count_of(target: str, size: int, parts: int) -> int:
    """Returns how many tensors a split of a dimension makes."""
    if target == "aten.unbind.int":
        return size
    if parts < 1:
        raise Error(f"the program is damaged: {target} into {parts}")
    if SPLITS[target] == "sections":
        return parts
    each = parts if SPLITS[target] == "split_size" else -(-size // parts)
    return -(-size // each) if size else max(parts if SPLITS[target] == "chunks" else 1, 1)


SPLITS = {
    "aten.unbind.int": "",
    **dict.fromkeys(("aten.split.Tensor", "aten.unsafe_split.Tensor"), "split_size"),
    **dict.fromkeys(("aten.chunk.default", "aten.unsafe_chunk.default"), "chunks"),
    "aten.tensor_split.sections": "sections",
}
"""Ops that make as many tensors as a dimension has space for, and the argument that determines how it is divided."""

_AS_IT_IS = frozenset(
    f"as_{kind}"
    for kind in (
        *("none", "int", "ints", "float", "floats", "string", "strings", "bool", "bools", "complex"),
        *("scalar_type", "memory_format", "layout", "int_lists", "float_lists"),
    )
)
_NUMBERS = frozenset(f"as_sym_{kind}" for kind in ("int", "ints", "float", "floats", "bool", "bools"))


def _meta(meta: Json) -> Json:
    """Returns the description of a tensor, on the CPU, with sizes that are numbers."""
    number = Sizes.number
    return {
        "dtype": meta["dtype"],
        "sizes": [{"as_int": number(size)} for size in meta["sizes"]],
        "requires_grad": bool(meta["requires_grad"]),
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": number(stride)} for stride in meta["strides"]],
        "storage_offset": {"as_int": 0},
        "layout": meta["layout"],
    }


def _metadata(metadata: Json) -> dict[str, str]:
    """Returns the user's lines and the submodules from a node's metadata."""
    frames = _FRAME.finditer(str(metadata.get("stack_trace", "")))
    kept = {"stack_trace": "\n".join(frame.group() for frame in frames)}
    modules = str(metadata.get("nn_module_stack", ""))
    return {**kept, "nn_module_stack": modules} if _MODULES.fullmatch(modules) else kept


def _name(name: object) -> str:
    """Returns a name that may appear in the Python that PyTorch generates."""
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise Error(f"the program is damaged: it has the name {name!r}, expected an identifier")
    return name


# The signature


def _signature(signature: Json, graph: _Graph) -> Json:
    return {
        "input_specs": [_specification(spec, graph) for spec in signature["input_specs"]],
        "output_specs": [_specification(spec, graph) for spec in signature["output_specs"]],
    }


def _specification(spec: Json, graph: _Graph) -> Json:
    ((kind, given),) = spec.items()
    if kind in ("user_input", "user_output"):
        return {kind: {"arg": graph.argument(given["arg"])}}
    if kind == "constant_input":
        return {kind: {"name": _name(given["name"]) if given["name"] else "", "value": graph.argument(given["value"])}}
    if kind not in _LIFTED:
        raise UnsupportedOpError(f"the program has a {kind}, expected inputs, outputs, parameters and buffers")
    names = {field: value for field, value in given.items() if field.endswith("_name")}
    checked = {field: _path(value) for field, value in names.items()}
    if "user_input_name" in names:
        checked["user_input_name"] = _name(names["user_input_name"])
    more = {"persistent": bool(given["persistent"])} if kind == "buffer" else {}
    return {kind: {"arg": {"name": _name(given["arg"]["name"])}, **checked, **more}}


_LIFTED = ("parameter", "buffer", "tensor_constant", "buffer_mutation", "parameter_mutation", "user_input_mutation")


def _path(path: object) -> str:
    """Returns the name of a parameter or buffer, as PyTorch would write it into the Python that it generates."""
    if isinstance(path, str) and all(map(_is_plain, path.split("."))):
        return path
    raise Error(f"the program is damaged: it has the parameter {path!r}, expected names joined by dots")


def _is_plain(part: str) -> bool:
    return bool(part) and part.isprintable() and not set(part) & set("\"'\\") and part[:2] != "__"
