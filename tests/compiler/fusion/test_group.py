"""What a group knows about its members."""

from __future__ import annotations

import pytest

from tests.compiler.fusion.test_fuser import softmax
from tests.compiler.lowering.running import program_of
from tests.compiler.targets import TARGET
from trivium.compiler.fusion import Group, fuse
from trivium.ir import ops
from trivium.ir.errors import Error
from trivium.ir.types import tensor


def group_of_softmax() -> Group:
    (group,) = fuse(program_of([tensor(4, 6)], softmax).main.body.block, TARGET).items
    assert isinstance(group, Group)
    return group


def test_members_are_in_the_order_of_the_program() -> None:
    kinds = [type(op) for op in group_of_softmax().ordered() if isinstance(op, ops.Exponential | ops.Divide)]
    assert kinds == [ops.Exponential, ops.Divide]
    assert isinstance(group_of_softmax().last, ops.Divide)


def test_two_readers_may_have_the_same_demand() -> None:
    group = group_of_softmax()
    (power,) = (op for op in group.members if isinstance(op, ops.Exponential))
    assert group.sole_demand(power) is not None
    assert group.reads() == 1  # the argument; the initial values of the reductions are numbers


def test_errors_name_the_kernel(monkeypatch) -> None:
    group = group_of_softmax()

    def fails(*arguments: object) -> None:
        raise Error("it cannot be built")

    monkeypatch.setattr(type(group.form), "build", fails)
    with pytest.raises(Error, match="it cannot be built") as caught:
        group.kernels("fused_softmax", TARGET)
    assert "fused_softmax" in str(caught.value)
