"""Judges programs while they are reduced."""

from __future__ import annotations

from tests.random_programs.arrays import SEED
from tests.random_programs.runner import Finding, judge
from tests.random_programs.tracked import Unstable
from trivium.debug import shrinking
from trivium.debug.shrinking import CRASH, SECONDS, apart
from trivium.ir.errors import Error
from trivium.ir.func import Module

__all__ = ["CRASH", "found_in", "shrink"]


def found_in(module: Module) -> str | None:
    """Returns the kind of the failure, if there is one."""
    try:
        module.verify()
        judge(module)
    except Finding as finding:
        return finding.key
    except (Unstable, Error, RecursionError):
        return None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, AssertionError, ZeroDivisionError):
        return None  # the smaller program cannot be judged
    return None


def shrink(module: Module, key: str, seconds: float = SECONDS) -> Module:
    """Returns the smallest program found that fails in the same way as `module`."""
    return shrinking.shrink(module, key, apart(found_in) if key == CRASH else found_in, SEED, seconds)
