"""Trivium: PyTorch, TensorFlow, JAX and ONNX programs become one StableHLO program, and that becomes machine code.

Everything public is reachable from here and nothing is imported until it is used, so that `import trivium` costs
milliseconds and needs no framework: the first access of a name imports the module that defines it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "trivium.api": (
        "compile",
        "evaluate",
        "explain",
        "from_jax",
        "from_onnx",
        "from_tensorflow",
        "from_torch",
        "jit",
        "load",
        "load_executable",
        "parse",
    ),
    "trivium.ir.custom_calls": ("register_custom_call",),
    "trivium.ir.func": ("Module",),
    "trivium.ir.errors": (
        "CompileError",
        "Error",
        "ExecutionError",
        "ParseError",
        "UnsupportedOpError",
        "VerificationError",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ADAPTERS = frozenset({"jax", "tensorflow", "torch"})
_SUBMODULES = frozenset({"backends", "compiler", "debug", "importers", "ir"}) | _ADAPTERS

if TYPE_CHECKING:
    from trivium.api import compile as compile
    from trivium.api import evaluate as evaluate
    from trivium.api import explain as explain
    from trivium.api import from_jax as from_jax
    from trivium.api import from_onnx as from_onnx
    from trivium.api import from_tensorflow as from_tensorflow
    from trivium.api import from_torch as from_torch
    from trivium.api import jit as jit
    from trivium.api import load as load
    from trivium.api import load_executable as load_executable
    from trivium.api import parse as parse
    from trivium.ir.custom_calls import register_custom_call as register_custom_call
    from trivium.ir.errors import CompileError as CompileError
    from trivium.ir.errors import Error as Error
    from trivium.ir.errors import ExecutionError as ExecutionError
    from trivium.ir.errors import ParseError as ParseError
    from trivium.ir.errors import UnsupportedOpError as UnsupportedOpError
    from trivium.ir.errors import VerificationError as VerificationError
    from trivium.ir.func import Module as Module


def __getattr__(name: str) -> object:
    """Imports the module that defines `name`. The value is kept, so that later accesses do not call this function."""
    if name in _ADAPTERS:
        from trivium.api import framework_module

        return framework_module(f"trivium.{name}", extra=name)
    if name in _SUBMODULES:
        return import_module(f"trivium.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'trivium' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_HOME_OF, *_SUBMODULES})
