"""Operators of `ai.onnx.ml` that prepare features: scaling, imputation, and encodings of categories. Maps and strings
have no tensor type, so operators that consist of these are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import onnx

from trivium.importers.onnx.context import Context, Operand, require_same_length, rule
from trivium.importers.onnx.files import array_of
from trivium.importers.onnx.scores import require_no_text, rows_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import F32, F64, I32, I64, is_float


@rule("ai.onnx.ml::Scaler")
def scaler(ctx: Context, x: Value, offset: Sequence[float] = (), scale: Sequence[float] = ()) -> Value:
    """Scaler(X, offset, scale): (X - offset) * scale"""
    require_same_length(scale=scale, offset=offset)
    kind = F64 if x.type.element_type is F64 else F32
    first, factor = (ctx.convert(_each(ctx, x, values, name), kind) for name, values in _named(offset, scale))
    return ctx.convert(ctx.times(ctx.minus(ctx.convert(x, kind), first), factor), F32)


def _named(offset: Sequence[float], scale: Sequence[float]) -> list[tuple[str, np.ndarray]]:
    return [("offset", np.array(offset, np.float32)), ("scale", np.array(scale, np.float32))]


def _each(ctx: Context, x: Value, values: np.ndarray, argument: str) -> Value:
    """Returns the numbers of an attribute: one for all features, or one for each."""
    if x.type.rank not in (1, 2):
        raise Error(f"X has type {x.type}, expected one or two dimensions")
    width = x.type.shape[-1]
    if len(values) != 1 and (width is None or len(values) != width):
        raise Error(f"{argument} has {len(values)} entries, expected 1 or {width}, the number of features")
    return ctx.elements(values)


@rule("ai.onnx.ml::Normalizer")
def normalizer(ctx: Context, x: Value, norm: str = "MAX") -> Value:
    """Normalizer(X, norm): rows over their largest element, sum of sizes, or length, unless that is zero"""
    rows = rows_of(ctx, x)
    sizes = {"MAX": lambda: rows, "L1": lambda: ctx.add(ops.Abs(rows)), "L2": lambda: ctx.times(rows, rows)}
    if norm not in sizes:
        raise Error(f"norm has {norm}, expected one of {', '.join(sizes)}")
    total = ctx.reduce(ops.Maximum if norm == "MAX" else ops.Add, sizes[norm](), [1], keep=True)
    total = ctx.add(ops.Sqrt(total)) if norm == "L2" else total
    one = ctx.scalar(1, F32)
    result = ctx.over(rows, ctx.select(ctx.compare("EQ", total, ctx.full_like(total, 0)), one, total))
    return ctx.squeeze(result, [0]) if x.type.rank == 1 else result


@rule("ai.onnx.ml::Imputer")
def imputer(
    ctx: Context, x: Value, imputed_value_floats: Sequence[float] = (), imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Value:  # fmt: skip
    """Imputer(X, ...): other numbers for elements that have one value, which may be NaN"""
    kind, is_real = x.type.element_type, is_float(x.type.element_type)
    name, values = (
        ("imputed_value_floats", imputed_value_floats) if is_real else ("imputed_value_int64s", imputed_value_int64s)
    )
    if not values or (imputed_value_floats and imputed_value_int64s):
        raise Error(f"Imputer of {x.type} has {len(values)} entries of {name}, expected some, and none of other types")
    replaced = replaced_value_float if is_real else replaced_value_int64
    fill = _each(ctx, x, np.array(values, np.float32 if is_real else np.int64), name)
    missing = ctx.compare("NE", x, x) if np.isnan(replaced) else ctx.compare("EQ", x, ctx.full_like(x, replaced))
    return ctx.select(missing, ctx.convert(fill, kind), x)


@rule("ai.onnx.ml::FeatureVectorizer")
def feature_vectorizer(ctx: Context, *values: Value, inputdimensions: Sequence[int] = ()) -> Value:
    """FeatureVectorizer(X, inputdimensions): the features of all inputs in one row, cut or filled with zeros"""
    require_same_length(X=values, inputdimensions=inputdimensions)
    if min(inputdimensions, default=0) < 0:
        raise Error(f"inputdimensions has {list(inputdimensions)}, expected no negative numbers")
    parts = [_as_wide(ctx, x, width) for x, width in zip(values, inputdimensions, strict=True)]
    return ctx.concatenate(parts, 1)


def _as_wide(ctx: Context, x: Value, width: int) -> Value:
    extents = ctx.extents(x)
    rows = ctx.reshape(x, [extents[0], ctx.count(x, range(1, x.type.rank))]) if x.type.rank > 2 else x
    rows = rows_of(ctx, rows)
    given = rows.type.shape[1]
    if given is None:
        ctx.unsupported("X", f"type {x.type}", "a number of features that is known while importing")
    return ctx.slice(rows, 1, 0, width) if given >= width else ctx.pad(rows, [0, 0], [0, width - given])


@rule("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(
    ctx: Context, x: Value, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), zeros: int = 1
) -> Value:
    """OneHotEncoder(X, ...): 1 in the column of each element's category, which is its integer part. A program raises no
    errors for values, so other categories have zeros, whatever `zeros` is"""
    require_no_text(ctx, cats_strings=cats_strings)
    if not cats_int64s:
        raise Error("OneHotEncoder has no attribute cats_int64s, expected categories")
    last = {category: index for index, category in enumerate(cats_int64s)}
    where = ctx.elements(np.array([last[category] for category in cats_int64s], np.int64))
    is_counted = ctx.compare("EQ", where, ctx.iota([len(cats_int64s)], 0))
    kind = F64 if is_float(x.type.element_type) else I64
    whole = ctx.convert(x, kind)
    if kind is F64:
        size = ctx.add(ops.Floor(ctx.add(ops.Abs(whole))))
        whole = ctx.select(ctx.compare("LT", whole, ctx.full_like(whole, 0)), ctx.add(ops.Negate(size)), size)
    categories = ctx.elements(np.array(cats_int64s, kind.dtype))
    same = ctx.compare("EQ", ctx.unsqueeze(whole, [x.type.rank]), categories)
    return ctx.convert(ctx.binary(ops.And, same, is_counted), F32)


# Labels

NUMBERS = {"int64s": np.int64, "floats": np.float32}
"""The types of the lists of keys and values that are numbers."""


@rule("ai.onnx.ml::LabelEncoder", since=2)
def label_encoder(
    ctx: Context, x: Value, keys_int64s: Sequence[int] = (), keys_floats: Sequence[float] = (),
    keys_strings: Sequence[str] = (), keys_tensor: onnx.TensorProto | None = None, values_int64s: Sequence[int] = (),
    values_floats: Sequence[float] = (), values_strings: Sequence[str] = (),
    values_tensor: onnx.TensorProto | None = None, default_int64: int = -1, default_float: float = -0.0,
    default_string: str = "_Unused", default_tensor: onnx.TensorProto | None = None,
) -> Value:  # fmt: skip
    """LabelEncoder(X, ...): the value of each element's key, or a default"""
    require_no_text(ctx, keys_strings=keys_strings, values_strings=values_strings)
    keys = _listed(ctx, "keys", keys_int64s, keys_floats, keys_tensor)
    values = _listed(ctx, "values", values_int64s, values_floats, values_tensor)
    require_same_length(keys=keys, values=values)
    if keys.dtype != x.type.element_type.dtype:
        raise Error(f"keys has type {keys.dtype}, expected that of X, {x.type}")
    usual = default_float if values.dtype.kind == "f" else default_int64
    default = np.array(usual) if default_tensor is None else _numbers(ctx, "default_tensor", default_tensor)
    if default.size != 1:
        raise Error(f"default_tensor has {default.size} elements, expected one")
    other = ctx.elements(default.reshape(()).astype(values.dtype))
    is_nan = keys != keys
    result = _looked_up(ctx, x, keys[~is_nan], values[~is_nan], other)
    if is_nan.any() and ctx.opset >= 4:  # of which all are one key
        result = ctx.select(ctx.compare("NE", x, x), ctx.elements(values[is_nan][0]), result)
    return result


def _listed(
    ctx: Context, name: str, numbers: Sequence[int], floats: Sequence[float], tensor: onnx.TensorProto | None
) -> np.ndarray:
    """Returns the keys or values, of which one attribute has some."""
    lists = [np.array(given, kind) for given, kind in zip((numbers, floats), NUMBERS.values(), strict=True) if given]
    lists += [] if tensor is None else [_numbers(ctx, f"{name}_tensor", tensor)]
    if len(lists) != 1:
        names = ", ".join(f"{name}_{kind}" for kind in (*NUMBERS, "tensor"))
        raise Error(f"LabelEncoder has {len(lists)} lists of {name}, expected one of {names}")
    return lists[0]


def _numbers(ctx: Context, name: str, tensor: onnx.TensorProto) -> np.ndarray:
    if tensor.data_type == onnx.TensorProto.STRING:
        require_no_text(ctx, **{name: ["?"] * max(1, int(np.prod(tensor.dims)))})
    return array_of(tensor, ctx.folder).reshape(-1)


def _looked_up(ctx: Context, x: Value, keys: np.ndarray, values: np.ndarray, default: Value) -> Value:
    """Returns the value of each element's key, of which the first one counts, by a binary search."""
    if not len(keys):
        return ctx.broadcast(default, ctx.extents(x))
    keys, first = np.unique(keys, return_index=True)
    table, at = ctx.elements(keys), ctx.full(ctx.extents(x), 0, I32)
    last = ctx.scalar(len(keys) - 1, I32)
    for bit in reversed(range((len(keys) - 1).bit_length())):
        further = ctx.plus(at, ctx.scalar(1 << bit, I32))
        is_inside = ctx.compare("LE", further, last)
        reached = ctx.compare("LE", ctx.take(table, further), x)
        at = ctx.select(ctx.binary(ops.And, is_inside, reached), further, at)
    found = ctx.compare("EQ", ctx.take(table, at), x)
    return ctx.select(found, ctx.take(ctx.elements(values[first]), at), default)


# Strings and maps


@rule("ai.onnx.ml::LabelEncoder")
def string_encoder(
    ctx: Context,
    x: Value,
    classes_strings: Sequence[str] = (),
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> NoReturn:
    """LabelEncoder(X, ...): the string of each number"""
    ctx.unsupported("classes_strings", "strings", "integers: strings have no tensor type, so encode them first")


@rule("ai.onnx.ml::CategoryMapper")
def category_mapper(
    ctx: Context, x: Value, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), default_int64: int = -1,
    default_string: str = "_Unused",
) -> NoReturn:  # fmt: skip
    """CategoryMapper(X, ...): the string of each number"""
    ctx.unsupported("cats_strings", "strings", "integers: strings have no tensor type, so encode them first")


@rule("ai.onnx.ml::ZipMap")
def zip_map(
    ctx: Context, x: Value, classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = ()
) -> NoReturn:
    """ZipMap(X, ...): a map from labels to scores for each row"""
    has = "a result of maps, which have no tensor type"
    ctx.unsupported("Z", has, "tensors: convert the model with skl2onnx's or onnxmltools's option zipmap=False")


@rule("ai.onnx.ml::CastMap")
def cast_map(
    ctx: Context, x: Operand, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> NoReturn:
    """CastMap(X, ...): the values of a map"""
    ctx.unsupported("X", "a map, which has no tensor type", "a tensor")


@rule("ai.onnx.ml::DictVectorizer")
def dict_vectorizer(
    ctx: Context, x: Operand, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> NoReturn:
    """DictVectorizer(X, ...): the values of a map for some keys"""
    ctx.unsupported("X", "a map, which has no tensor type", "a tensor")
