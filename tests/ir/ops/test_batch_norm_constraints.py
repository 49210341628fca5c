"""The constraints of batch normalization, each broken once."""

from __future__ import annotations

from typing import Any

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import BatchNormGrad, BatchNormInference, BatchNormTraining
from trivium.ir.types import F32, F64, I32, tensor


def training(
    operand: Value | None = None,
    scale: Value | None = None,
    offset: Value | None = None,
    feature_index: int = 1,
    **results: Any,
) -> None:
    operands = operand or value(3, 4), scale or value(4), offset or value(4)
    BatchNormTraining(*operands, 0.5, feature_index, **results)


def inference(
    operand: Value | None = None,
    scale: Value | None = None,
    offset: Value | None = None,
    mean: Value | None = None,
    variance: Value | None = None,
    feature_index: int = 1,
    **results: Any,
) -> None:
    features = scale or value(4), offset or value(4), mean or value(4), variance or value(4)
    BatchNormInference(operand or value(3, 4), *features, 0.5, feature_index, **results)


def grad(
    operand: Value | None = None,
    scale: Value | None = None,
    mean: Value | None = None,
    grad_output: Value | None = None,
    feature_index: int = 1,
    **results: Any,
) -> None:
    operands = operand or value(3, 4), scale or value(4), mean or value(4), value(4), grad_output or value(3, 4)
    BatchNormGrad(*operands, 0.5, feature_index, **results)


def test_batch_norm_training_i1() -> None:
    with breaks("I1"):
        training(value(3, 4, of=I32))


def test_batch_norm_training_i2() -> None:
    with breaks("I2"):
        training(scale=value(4, 1))


def test_batch_norm_training_c1() -> None:
    with breaks("C1"):
        training(feature_index=2)


def test_batch_norm_training_c2() -> None:
    with breaks("C2"):
        training(scale=value(4, of=F64))


def test_batch_norm_training_c3() -> None:
    with breaks("C3"):
        training(scale=value(3))


def test_batch_norm_training_c4() -> None:
    with breaks("C4"):
        training(offset=value(3))


def test_batch_norm_training_c5() -> None:
    with breaks("C5"):
        training(batch_mean=tensor(3))


def test_batch_norm_training_c6() -> None:
    with breaks("C6"):
        training(batch_var=tensor(3))


def test_batch_norm_training_c7() -> None:
    with breaks("C7"):
        training(output=tensor(3, 5))


def test_batch_norm_inference_i1() -> None:
    with breaks("I1"):
        inference(value(3, 4, of=I32))


def test_batch_norm_inference_i2() -> None:
    with breaks("I2"):
        inference(variance=value())


def test_batch_norm_inference_c1() -> None:
    with breaks("C1"):
        inference(feature_index=-1)


def test_batch_norm_inference_c2() -> None:
    with breaks("C2"):
        inference(mean=value(4, of=F64))
    with breaks("C2"):
        inference(result=tensor(3, 4, of=F64))


def test_batch_norm_inference_c3() -> None:
    with breaks("C3"):
        inference(scale=value(3))


def test_batch_norm_inference_c4() -> None:
    with breaks("C4"):
        inference(offset=value(3))


def test_batch_norm_inference_c5() -> None:
    with breaks("C5"):
        inference(mean=value(3))


def test_batch_norm_inference_c6() -> None:
    with breaks("C6"):
        inference(variance=value(3))


def test_batch_norm_inference_c7() -> None:
    with breaks("C7"):
        inference(result=tensor(4, 3))


def test_batch_norm_grad_i1() -> None:
    with breaks("I1"):
        grad(grad_output=value(3, 4, of=I32))


def test_batch_norm_grad_i2() -> None:
    with breaks("I2"):
        grad(mean=value(2, 2))


def test_batch_norm_grad_c1() -> None:
    with breaks("C1"):
        grad(feature_index=7)


def test_batch_norm_grad_c2() -> None:
    with breaks("C2"):
        grad(grad_output=value(3, 4, of=F64))
    with breaks("C2"):
        grad(grad_scale=tensor(4, of=F64))


def test_batch_norm_grad_c3() -> None:
    with breaks("C3"):
        grad(grad_output=value(4, 3))


def test_batch_norm_grad_c4() -> None:
    with breaks("C4"):
        grad(mean=value(3))
    with breaks("C4"):
        grad(grad_offset=tensor(3, of=F32))


def test_batch_norm_grad_c5() -> None:
    with breaks("C5"):
        grad(value(3, 5), grad_output=value(3, 5))
