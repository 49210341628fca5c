import gc
import weakref

import pytest

from trivium.ir.collection import collection_paused


class Node:
    def __init__(self) -> None:
        self.link = self


@collection_paused()
def fail() -> None:
    node = Node()
    FOUND.append(weakref.ref(node))
    raise ValueError("refused")


FOUND: list[weakref.ref[Node]] = []


def test_pause() -> None:
    with collection_paused(), collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_remains_of_an_error_are_collected_before_the_next_pause() -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="refused"):
            fail()
        assert gc.isenabled()
    with collection_paused():
        assert [node() for node in FOUND] == [None] * 3
