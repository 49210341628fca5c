"""What is kept of what was used most recently."""

from trivium.backends.recent import Recent


def test_the_least_recently_used_entry_goes_first() -> None:
    kept: Recent[str, int] = Recent(2)
    assert not kept.put("a", 1)
    assert not kept.put("b", 2)
    assert kept.get("a") == 1
    assert kept.put("c", 3)
    assert (list(kept), len(kept), kept.last) == (["a", "c"], 2, 3)
    assert kept.get("b") is None
    assert not kept.put("b", 4), "an entry has gone before"
    assert list(kept) == ["c", "b"]


def test_nothing_is_kept_at_first() -> None:
    kept: Recent[str, int] = Recent(1)
    assert kept.last is None
    assert kept.get("a") is None
