"""Memory of large results is on huge pages, where the system has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trivium.torch.huge_pages import LEAST

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def flags(address: int) -> list[str]:
    """Returns the flags of the mapping that an address is in."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            begin, end = (int(number, 16) for number in name.split("-"))
            inside = begin <= address < end
        elif inside and name == "VmFlags:":
            return rest
    raise AssertionError(f"{address:#x} is not mapped")


@pytest.mark.skipif(
    not SETTING.exists() or "[never]" in SETTING.read_text(), reason="this system has no huge pages for programs"
)
@pytest.mark.parametrize("dynamic", [False, True], ids=["one size", "a range of sizes"])
def test_large_results_are_on_huge_pages(dynamic: bool) -> None:
    columns = 1 << 20
    rows = LEAST // (4 * columns)
    function = torch.compile(lambda x: x * 2 + 1, backend="trivium", dynamic=dynamic, options={"tiered": False})
    for count in range(rows, rows + (4 if dynamic else 1)):
        x = torch.rand(count, columns)
        y = function(x)
        assert torch.equal(y, x * 2 + 1)
        # In the middle: the first and the last page may be shared with other memory.
        assert "hg" in flags(y.data_ptr() + y.nbytes // 2)
