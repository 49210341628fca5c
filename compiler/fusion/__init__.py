"""Which ops share a kernel, and what kernel they become: `fuser` divides a block into groups, a group (`group`) has a
form (`forms`) that says which ops it takes in and how its loops are built, and knows at which indices each of its
values is demanded (`demands`)."""

from trivium.compiler.fusion.fuser import Fusion, fuse
from trivium.compiler.fusion.group import Group

__all__ = ["Fusion", "Group", "fuse"]
