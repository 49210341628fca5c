"""Random numbers: as many are drawn as there is space for, so that those of a combination of sizes are some of them."""

from __future__ import annotations

import numpy as np

from trivium.compiler.bounded.axes import listed, simple
from trivium.compiler.bounded.writer import Bounded, Writer, as_it_is, known, rule
from trivium.compiler.passes.patterns.dynamic_calls import random_bits
from trivium.ir.custom_targets import RANDOM_BITS
from trivium.ir.ops import CustomCall


@rule(CustomCall)
def custom_call(w: Writer, op: CustomCall) -> list[Bounded]:
    if op.call_target_name != RANDOM_BITS:
        return as_it_is(w, op)
    initial, shape = op.inputs
    state = w.values[initial]
    axes = tuple(map(simple, listed(known(w, shape, "a shape"))))
    drawn = random_bits(op, [state.value], np.array([axis.bound for axis in axes]))
    w.add(drawn)
    following, bits = drawn.results
    return [Bounded(following, state.axes), Bounded(bits, axes)]
