"""Which ops share a kernel, and which kernel they become. `fuser` divides a block into groups. A group (`group`) has a
form (`forms`), which determines the ops that it accepts and how its loops are built, and records the indices at which
each of its values is demanded (`demands`)."""

from trivium.compiler.fusion.fuser import Fusion, fuse
from trivium.compiler.fusion.group import Group

__all__ = ["Fusion", "Group", "fuse"]
