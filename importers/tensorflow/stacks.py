"""The stacks of TensorFlow 1, which keep what the gradients of loops need: variables whose values are lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.context import Context, Known, Operand, Tensor, rule
from trivium.importers.tensorflow.listops import pop_back, push_back
from trivium.importers.tensorflow.lists import TensorList
from trivium.importers.tensorflow.state import Variable
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir.types import TensorType


@dataclass(eq=False)
class Stack(Variable):
    """A stack, whose elements have a type. Its value at the cursor is a list."""


@rule("StackV2")
def stack(ctx: Context, max_size: Known, *, elem_type: tf.DType, stack_name: str) -> Stack:
    """StackV2(max_size; elem_type, stack_name="") -> handle"""
    kind = element_type_of(elem_type)
    made = Stack(stack_name or "stack", TensorType((), kind), "state")
    ctx.state.values[made] = TensorList(kind, None, int(max_size) if max_size >= 0 else None, 0)
    return made


@rule("StackPushV2")
def push(ctx: Context, handle: Operand, elem: Tensor, *, swap_memory: bool) -> Tensor:
    """StackPushV2(handle, elem; swap_memory=false) -> output"""
    variable, held = _held(ctx, handle)
    ctx.state.values[variable] = push_back(ctx, held, ctx.value(elem), element_dtype=tf.float32)
    return elem


@rule("StackPopV2")
def pop(ctx: Context, handle: Operand, *, elem_type: tf.DType) -> Operand:
    """StackPopV2(handle; elem_type) -> elem"""
    variable, held = _held(ctx, handle)
    ctx.state.values[variable], element = pop_back(ctx, held, np.zeros(0, np.int32), element_dtype=elem_type)
    return element


@rule("StackCloseV2")
def close(ctx: Context, handle: Operand) -> None:
    """StackCloseV2(handle)"""


def _held(ctx: Context, handle: Operand) -> tuple[Stack, TensorList]:
    held = ctx.state.values.get(handle) if isinstance(handle, Stack) else None
    if not isinstance(handle, Stack) or not isinstance(held, TensorList):
        ctx.unsupported("handle", "a resource that is not a stack", "a stack")
    return handle, held
