"""Groups follow the paths of the model or, if it has none, repetitions."""

import random

import pytest

from trivium.page.data import Group, Item
from trivium.page.groups import MOST, Line, group_items, repetition, split_path


def grouped(
    paths: list[str], labels: list[str] | None = None, lines: list[Line] | None = None
) -> tuple[list[Item], list[Group]]:
    items = [Item(label, "op") for label in labels or [f"op{number}" for number in range(len(paths))]]
    groups = group_items(items, [split_path(path) for path in paths], lines or [None] * len(items))
    return items, groups


def names(items: list[Item], groups: list[Group]) -> list[str]:
    """Returns the path of the groups around each item."""
    found = []
    for item in items:
        number, parts = item.group, []
        while number:
            parts.append(groups[number].name)
            number = groups[number].parent
        found.append("/".join(reversed(parts)))
    return found


def test_groups_follow_paths() -> None:
    paths = ["", "encoder.layer.0.attention", "encoder/layer/0", "encoder.layer.1", "head"]
    assert names(*grouped(paths)) == ["", "encoder.layer/0/attention", "encoder.layer/0", "encoder.layer/1", "head"]


def test_transformations_are_outside() -> None:
    assert split_path("transpose(jvp(encoder/0))/dot") == ["transpose", "jvp", "encoder", "0", "dot"]


def test_groups_nest() -> None:
    _, groups = grouped(["a.b.c", "a.b", "a", "d.e", "d.f"] * 3)
    assert groups[0].parent == 0
    assert all(group.parent < number for number, group in enumerate(groups) if number)


@pytest.mark.parametrize("period", [4, 10, 37])
def test_repetitions_are_found(period: int) -> None:
    generator = random.Random(period)
    layer = [f"op{generator.randrange(20)}" for _ in range(period - 1)] + ["end of layer"]
    keys = ["x", "y", "z", *layer * 12, "head"]
    start, length, count = repetition(keys)
    assert (length, count) == (period, 12)
    assert start in (2, 3)


def test_nothing_is_repeated_by_chance() -> None:
    assert repetition([f"op{number}" for number in range(50)])[2] == 1
    assert repetition([])[2] == 1


def test_layers_without_paths_are_groups() -> None:
    keys = ["start", *[f"op{number}" for number in range(30)] * 6]
    items, groups = grouped([""] * len(keys), keys)
    assert [group.name for group in groups[1:]] == [f"repeat {number} of 6" for number in range(1, 7)]
    assert names(items, groups)[0] == ""


def test_ops_without_paths_are_in_groups_of_their_lines() -> None:
    generator = random.Random(0)
    places: list[Line] = [("/lib/site-packages/optax/_src/update.py", 42), ("/home/me/train.py", 7), None]
    lines = [places[generator.randrange(2)] for _ in range(100)] + [None]
    items, groups = grouped([""] * 101, [f"op{generator.randrange(1000)}" for _ in lines], lines)
    path = {places[0]: "optax/update.py:42", places[1]: "me/train.py:7", None: ""}
    shown = [
        name.replace("optax.update", "optax/update").replace("me.train", "me/train") for name in names(items, groups)
    ]
    assert [name.split("/part")[0] for name in shown] == [path[line] for line in lines]


def test_no_group_has_too_many_direct_ops() -> None:
    items, groups = grouped([""] * 1000)
    own = [sum(item.group == number for item in items) for number in range(len(groups))]
    assert max(own) <= MOST
    assert sum(own) == 1000
