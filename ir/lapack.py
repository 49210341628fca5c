"""Custom calls of LAPACK: the targets, such as `lapack_sgetrf_ffi`, by which JAX and XLA call its routines on a CPU.
Programs that call them run both here and there.

The target names the type (`s`, `d`, `c` or `z`) and the routine. Some routines have a different name for complex types;
we use the real name throughout (`orgqr` for `ungqr`). The layouts of a call must be column-major for matrices, as the
routines expect; our own arrays have no layout, so after that check the layouts are ignored. This module defines the
operands, attributes and results of each routine; `trivium.ir.factorizations` defines what it computes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trivium.ir import factorizations
from trivium.ir.attributes import Attribute, DenseElements, Dictionary, Integer
from trivium.ir.core import Block
from trivium.ir.custom_calls import register_custom_call, states_shapes, with_known_results
from trivium.ir.errors import Error
from trivium.ir.types import (
    F32,
    F64,
    I32,
    INDEX,
    UI8,
    ComplexType,
    ElementType,
    FloatType,
    TensorType,
    Type,
    is_complex,
    type_of,
)

if TYPE_CHECKING:
    from trivium.ir.ops.control import CustomCall

Matrix = FloatType | ComplexType
"""The element type of a call's matrices."""

Numbers = Mapping[str, int]
Extents = dict[str, int]
Shape = Sequence[int | None]

NUMBER, FLAG = "number", "flag"
"""Kinds of attributes that are not letters: a 32-bit integer, and a boolean."""

MAX_EXTENT = 2**31 - 1
"""LAPACK's integers have 32 bits."""


@dataclass(frozen=True)
class Routine:
    """A routine, for batches of matrices. Operands and results are lists such as `m n, i32 k, i32`: the names of the
    extents after the batch dimensions, preceded by the element type if it is not that of the call. `real` is the type
    of the call's real parts, and `complex` the complex type with such parts; `values` are eigenvalues, which for real
    matrices are two tensors, the real and the imaginary parts. `k` is the smaller of `m` and `n`, and `p` is one less
    than `n`. `attributes` has the letters that each attribute may have, or `NUMBER` or `FLAG`. `check` returns what is
    wrong with extents and attributes, if anything. `defaults` returns the extents that no operand determines."""

    name: str
    operands: str
    results: str
    attributes: Mapping[str, str]
    complex_name: str = ""
    check: Callable[[Extents, Numbers], str] = lambda extents, given: ""
    defaults: Callable[[Extents, Numbers], Extents] = lambda extents, given: {}
    constants: tuple[int, ...] = ()
    """Additional numbers for the native function."""
    letters: str = "sdcz"
    """The types for which the routine exists."""

    @property
    def count(self) -> int:
        return len(self.operands.split(","))

    def settings(self, numbers: Numbers) -> dict[str, int]:
        """Returns those of a call's numbers that its operands do not determine: attributes, and extents of results."""
        known = {*_names(self.operands), "k", "p"}
        return {name: numbers[name] for name in (*self.attributes, *_names(self.results)) if name not in known}


@dataclass(frozen=True)
class Call:
    """A custom call after it was checked against its routine. `numbers` are the arguments of the native function: the
    number of matrices, the extents, the attributes and the routine's constants."""

    routine: str
    numbers: dict[str, int]


def target_of(routine: str, element_type: ElementType) -> str:
    """Returns the target that calls a routine for matrices of this element type."""
    known = ROUTINES[routine]
    letter = next((letter for letter in known.letters if _LETTERS[letter] is element_type), None)
    if letter is None:
        expected = "f32, f64 or complex numbers of them" if known.letters == "sdcz" else "complex numbers of f32 or f64"
        raise Error(f"{routine} has elements of {element_type}, expected {expected}")
    return f"lapack_{letter}{known.complex_name if is_complex(element_type) and known.complex_name else routine}_ffi"


def is_target(target: str) -> bool:
    """Whether a custom call's target is a routine of this module."""
    return _routine_of(target) is not None


def is_call(op: CustomCall) -> bool:
    """Whether a custom call of one of the targets fits the routine."""
    try:
        read_call(op)
    except Error:
        return False
    return True


def read_call(op: CustomCall) -> Call:
    """Reads a custom call of one of the targets. Raises an `Error` if it does not fit the routine."""
    where = f"custom_call @{op.call_target_name}"
    routine, kind = _known(op)
    attributes = _attributes(where, op, routine)
    batch, extents = _bind_operands(where, routine, kind, op.operand_types)
    _bind(f"{where}: result", routine.results, kind, op.result_types, batch, extents)
    if wrong := routine.check(extents, attributes):
        raise Error(f"{where}: {wrong}")
    _check_layouts(where, op)
    more = {name: extents[name] for name in routine.defaults(extents, attributes)}
    own = {name: extents[name] for name in _names(routine.operands)}
    constants = {f"constant{i}": number for i, number in enumerate(routine.constants)}
    return Call(routine.name, {"batch": math.prod(batch), **own, **attributes, **more, **constants})


def call_attributes(
    routine: str, operands: Sequence[TensorType], attributes: Numbers, shapes: Sequence[Shape] | None = None
) -> dict[str, Any]:
    """Returns what a `CustomCall` needs besides its operands: target, attributes, layouts and result types. Operands
    may have unknown extents if the `shapes` of the results are given; each of them is an operand too, after the
    others."""
    known = ROUTINES[routine]
    kind = operands[_main(known)].element_type
    stated = shapes or ()
    if shapes is None:
        batch, extents = _bind_operands(routine, known, kind, operands)
        extents.update(known.defaults(extents, attributes))
        if wrong := known.check(extents, attributes):
            raise Error(f"{routine}: {wrong}")
        shapes = [(*batch, *(extents[name] for name in names)) for _, names in _tensors(known.results, kind)]
    results = [
        TensorType(tuple(shape), element)
        for shape, (element, _) in zip(shapes, _tensors(known.results, kind), strict=True)
    ]
    rank = operands[_main(known)].rank
    written = {name: _written(known, name, number) for name, number in attributes.items()}
    return {
        "call_target_name": target_of(routine, kind),
        "backend_config": Dictionary(written) if written else None,
        "api_version": 4,
        "operand_layouts": (*(_layout(each, rank) for each in operands), *(_VECTOR_LAYOUT for _ in stated)),
        "result_layouts": tuple(_layout(each, rank) for each in results),
        "results": results,
    }


def result_shapes(
    routine: str, operands: Sequence[Sequence[Any]], attributes: Numbers, least: Callable[[Any, Any], Any]
) -> list[tuple[Any, ...]]:
    """Returns the shapes of a routine's results, whose extents are not checked: they may be numbers, or anything that
    can be subtracted and of which `least` returns the smaller one."""
    known = ROUTINES[routine]
    batch = tuple(operands[_main(known)][:-2])
    extents: dict[str, Any] = {}
    for shape, (_, names) in zip(operands, _tensors(known.operands, F32), strict=True):
        extents = dict(zip(names, shape[len(batch) :], strict=True)) | extents
    _derive(extents, least)
    extents |= known.defaults(extents, attributes)
    return [(*batch, *(extents[name] for name in names)) for _, names in _tensors(known.results, F32)]


def evaluate_numbers(name: str, arrays: Sequence[np.ndarray], numbers: Numbers) -> tuple[np.ndarray, ...]:
    """Computes a routine from its call's `numbers`. The arrays may have any shape with the right number of elements."""
    routine = ROUTINES[name]
    shapes = [(numbers["batch"], *map(numbers.__getitem__, names)) for _, names in _tensors(routine.operands, F32)]
    shaped = [array.reshape(shape) for array, shape in zip(arrays, shapes, strict=True)]
    return factorizations.evaluate(name, shaped, routine.settings(numbers))


# Types


def _routine_of(target: str) -> tuple[Routine, Matrix] | None:
    match = _TARGET.fullmatch(target)
    if match is None:
        return None
    letter, name = match.groups()
    name = _COMPLEX.get(name, name) if letter in "cz" else name
    return (ROUTINES[name], _LETTERS[letter]) if name in ROUTINES and letter in ROUTINES[name].letters else None


def _known(op: CustomCall) -> tuple[Routine, Matrix]:
    found = _routine_of(op.call_target_name)
    assert found is not None, op.call_target_name
    return found


def _main(routine: Routine) -> int:
    """Returns the index of the operand that has matrices."""
    return next(i for i, (_, names) in enumerate(_tensors(routine.operands, F32)) if len(names) == 2)


def _tensors(listed: str, kind: Matrix) -> list[tuple[ElementType, list[str]]]:
    """Returns the element type and the names of the extents of each operand or result."""
    real = kind.element_type if isinstance(kind, ComplexType) else kind
    named = {"i32": I32, "real": real, "complex": ComplexType(real), "values": kind}
    found = []
    for entry in listed.split(","):
        words = entry.split()
        element = named.get(words[0], kind)
        names = [word for word in words if word not in named]
        found += [(element, names)] * (2 if words[0] == "values" and kind is real else 1)
    return found


def _names(listed: str) -> list[str]:
    return list(dict.fromkeys(name for _, names in _tensors(listed, F32) for name in names))


def _bind_operands(
    where: str, routine: Routine, kind: Matrix, operands: Sequence[Type]
) -> tuple[tuple[int, ...], Extents]:
    """Returns the batch dimensions and the extents, from the types of the operands."""
    if len(operands) != routine.count:
        raise Error(f"{where} has {len(operands)} operands, expected {routine.count}")
    main = operands[_main(routine)]
    if not isinstance(main, TensorType) or not main.is_static or main.rank < 2:
        raise Error(f"{where} has {main}, expected matrices of static shape")
    batch = main.static_shape[:-2]
    extents: Extents = {}
    _bind(f"{where}: operand", routine.operands, kind, operands, batch, extents)
    _derive(extents, min)
    if max(extents.values()) > MAX_EXTENT:
        raise Error(f"{where} has {main}, expected extents up to {MAX_EXTENT}")
    return batch, extents


def _derive(extents: dict[str, Any], least: Callable[[Any, Any], Any]) -> None:
    """Adds the extents that follow from others."""
    if "n" in extents:
        order = extents["n"]
        extents["p"], extents["k"] = order - least(order, 1), least(extents.get("m", order), order)


def _bind(
    where: str, listed: str, kind: Matrix, types: Sequence[Type], batch: tuple[int, ...], extents: Extents
) -> None:
    """Checks types against a list of tensors, and adds the extents of new names to `extents`."""
    tensors = _tensors(listed, kind)
    if len(types) != len(tensors):
        raise Error(f"{where} count is {len(types)}, expected {len(tensors)}")
    for index, (given, (element, names)) in enumerate(zip(types, tensors, strict=True)):
        shape = given.shape if isinstance(given, TensorType) else None
        if shape is not None and len(shape) == len(batch) + len(names):
            for name, extent in zip(names, shape[len(batch) :], strict=True):
                if extent is not None:
                    extents.setdefault(name, extent)
        expected = TensorType((*batch, *(extents.get(name) for name in names)), element)
        if given is not expected or not expected.is_static:
            raise Error(f"{where} {index} has type {given}, expected {expected}")


# Attributes and layouts


def _attributes(where: str, op: CustomCall, routine: Routine) -> dict[str, int]:
    given = op.backend_config if isinstance(op.backend_config, Dictionary) else op.extra.get("mhlo.backend_config", {})
    if not isinstance(given, Mapping) or set(given) != set(routine.attributes):
        found = ", ".join(given) if isinstance(given, Mapping) else given
        raise Error(f"{where} has the attributes {found or 'none'}, expected {', '.join(routine.attributes) or 'none'}")
    return {name: _read(where, name, given[name], allowed) for name, allowed in routine.attributes.items()}


def _read(where: str, name: str, value: Attribute, allowed: str) -> int:
    number = value.value if isinstance(value, Integer) else value
    fits = isinstance(number, int) and (allowed in (NUMBER, FLAG) or number in map(ord, allowed))
    if not isinstance(number, int) or not fits or isinstance(number, bool) != (allowed == FLAG):
        expected = f"a {allowed}" if allowed in (NUMBER, FLAG) else f"the code of one of {', '.join(allowed)}"
        raise Error(f"{where}: {name} has {number}, expected {expected}")
    return int(number)


def _written(routine: Routine, name: str, number: int) -> Attribute:
    kind = routine.attributes[name]
    return bool(number) if kind == FLAG else Integer(number, I32 if kind == NUMBER else UI8)


def _check_layouts(where: str, op: CustomCall) -> None:
    """Checks that matrices are column-major, as in JAX and the routines; otherwise the call would use the
    transposes."""
    rank = max(value.type.rank for value in op.operands)
    for name, values in (("operand", op.operands), ("result", op.results)):
        layouts = getattr(op, f"{name}_layouts")
        if layouts is None:
            raise Error(f"{where} has no layouts, expected column-major matrices")
        for kind, layout in zip((value.type for value in values), layouts, strict=True):
            if layout.array.tolist() != (expected := _order(kind, rank)):
                raise Error(f"{where}: {name} {kind} has layout {layout.array.tolist()}, expected {expected}")


def _order(kind: TensorType, rank: int) -> list[int]:
    """Returns the dimensions from fastest to slowest: column-major for tensors of the matrices' rank."""
    order = list(reversed(range(kind.rank)))
    if kind.rank == rank:
        order[:2] = order[1::-1]
    return order


def _layout(kind: TensorType, rank: int) -> DenseElements:
    return DenseElements(np.array(_order(kind, rank), np.int64), TensorType((kind.rank,), INDEX))


_VECTOR_LAYOUT = DenseElements(np.array([0], np.int64), TensorType((1,), INDEX))


# The routines


def _check_reflectors(extents: Extents, given: Numbers) -> str:
    if extents["c"] <= extents["n"] <= extents["m"]:
        return ""
    return (
        f"has {extents['c']} reflectors of {extents['m']} rows and {extents['n']} columns, expected at most as many "
        "reflectors as columns, and at most as many columns as rows"
    )


def _check_triangular(extents: Extents, given: Numbers) -> str:
    side, met = ("rows", extents["r"]) if given["side"] == ord("L") else ("columns", extents["c"])
    if met != extents["n"]:
        return f"has matrices of order {extents['n']}, and right-hand sides of {met} {side}"
    return ""


def _check_product(extents: Extents, given: Numbers) -> str:
    met = extents["m"] if given["left"] else extents["n"]
    if extents["r"] != met:
        return f"the reflectors have {extents['r']} rows, expected {met}"
    if extents["c"] > min(extents["r"], extents["w"]):
        return f"has {extents['c']} reflectors in {extents['r']} rows and {extents['w']} columns"
    return ""


def _check_svd(extents: Extents, given: Numbers) -> str:
    full, reduced = (extents["m"], extents["n"]), (extents["k"], extents["k"])
    allowed = {"A": [full], "S": [reduced], "N": [full, reduced]}[chr(given["mode"])]
    if (found := (extents["u"], extents["v"])) not in allowed:
        return f"has {found[0]} left and {found[1]} right vectors, expected {allowed[0][0]} and {allowed[0][1]}"
    return ""


def _svd_vectors(extents: Extents, given: Numbers) -> Extents:
    full = given["mode"] == ord("A")
    return {"u": extents["m" if full else "k"], "v": extents["n" if full else "k"]}


def _check_range(extents: Extents, given: Numbers) -> str:
    low, high, order = given["low"], given["high"], extents["n"]
    if (order == 0 and (low, high) == (1, 0)) or 1 <= low <= high <= order:
        return ""
    return f"low and high have {low} and {high}, expected a range within 1 to {order}"


_VECTORS, _TRIANGLE = {"mode": "VN", "uplo": "LU"}, {"uplo": "LU"}
_SVD = "m n, real k, m u, v n, i32"
ROUTINES = {
    routine.name: routine
    for routine in (
        Routine("potrf", "n n", "n n, i32", _TRIANGLE),
        Routine(
            "trsm",
            "n n, r c",
            "r c",
            {"side": "LR", "uplo": "LU", "trans_x": "NTC", "diag": "NU"},
            "",
            _check_triangular,
        ),
        Routine("getrf", "m n", "m n, i32 k, i32", {}),
        Routine("geqrf", "m n", "m n, k", {}),
        Routine("geqp3", "m n, i32 n", "m n, i32 n, k", {}),
        Routine("orgqr", "m n, c", "m n", {}, "ungqr", _check_reflectors),
        Routine("ormqr", "r w, c, m n", "m n", {"left": FLAG, "transpose": FLAG}, "unmqr", _check_product),
        Routine("syevd", "n n", "n n, real n, i32", _VECTORS, "heevd"),
        Routine("gesdd", "m n", _SVD, {"mode": "ASN"}, "", _check_svd, _svd_vectors, (1,)),
        Routine("gesvd", "m n", _SVD, {"mode": "ASN"}, "", _check_svd, _svd_vectors, (0,)),
        Routine(
            "geev",
            "n n",
            "values n, complex n n, complex n n, i32",
            {"compute_left": "VN", "compute_right": "VN"},
        ),
        Routine("gees", "n n", "n n, n n, values n, i32, i32", {"mode": "VN", "sort": "N"}),
        Routine("gehrd", "n n", "n n, p, i32", {"low": NUMBER, "high": NUMBER}, "", _check_range),
        Routine("sytrd", "n n", "n n, real n, real p, p, i32", _TRIANGLE, "hetrd"),
        Routine("sytrf", "n n", "n n, i32 n, i32", _TRIANGLE),
        Routine("hetrf", "n n", "n n, i32 n, i32", _TRIANGLE, letters="cz"),
        Routine("sytrs", "n n, i32 n, n m", "n m", _TRIANGLE),
        Routine("hetrs", "n n, i32 n, n m", "n m", _TRIANGLE, letters="cz"),
        Routine("gtsv", "n, n, n, n m", "n, n, n, n m, i32", {}),
    )
}
"""The result of potrf has the other triangle of its operand. The results of syevd are the eigenvectors (with mode N,
the matrix) and the eigenvalues. The first result of gesdd and gesvd, and the first three of gtsv, are the operands,
which the routines overwrite. Complex matrices are symmetric for sytrf and sytrs, and Hermitian for hetrf and hetrs."""

_COMPLEX = {routine.complex_name: routine.name for routine in ROUTINES.values() if routine.complex_name}
_TARGET = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
_LETTERS = {"s": F32, "d": F64, "c": ComplexType(F32), "z": ComplexType(F64)}


def _evaluate(op: CustomCall, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    if states_shapes(op):
        arrays, shapes = arrays[: -len(op.results)], arrays[-len(op.results) :]
        op = with_known_results(op, Block([type_of(array) for array in arrays]).arguments, shapes)
    call = read_call(op)
    return factorizations.evaluate(call.routine, arrays, ROUTINES[call.routine].settings(call.numbers))


for _routine in ROUTINES.values():
    for _letter in _routine.letters:
        register_custom_call(target_of(_routine.name, _LETTERS[_letter]), evaluate=_evaluate)
