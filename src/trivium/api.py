"""The public functions: import a program (`from_*`, `load`, `parse`), interpret it (`evaluate`) or compile it
(`compile`, `jit`). Everything heavier than this file is imported when it is first needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from trivium.executable import Executable
from trivium.ir.errors import CompileError, Error, ExecutionError
from trivium.ir.files import path_of
from trivium.ir.func import Module
from trivium.ir.services import SERVICES


def _page(module: Module, path: str | PathLike[str] | None) -> str:
    """See `Services.page`."""
    from trivium.page import frame_of, page_of, write_page

    if path is not None:
        write_page(path_of(path), page_of(module))
        return ""
    return frame_of(page_of(module)) if sum(1 for _ in module.walk()) <= MOST_OPS_IN_A_NOTEBOOK else ""


SERVICES.page = _page

MOST_OPS_IN_A_NOTEBOOK = 5000
"""The ops of a module up to which a notebook shows it as a graph."""

if TYPE_CHECKING:
    import onnx
    import torch
    from jax.extend.core import ClosedJaxpr
    from torch.export import ExportedProgram

P = ParamSpec("P")
Returned = TypeVar("Returned")

FRAMEWORKS = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "onnx": "ONNX"}
"""The extras of the package, and the frameworks that they install."""


def from_torch(
    model: torch.nn.Module | ExportedProgram,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    parameters: str = "constants",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> Module:
    """Imports a PyTorch `nn.Module`, `GraphModule` or `ExportedProgram`, for inputs like `args` and `kwargs`.

    Dynamic sizes of an `ExportedProgram` stay dynamic, unless there are `args`; `shapes` maps inputs to shapes that
    fix them, in which `None` is a size that stays dynamic.

    `parameters` are `"constants"` (for inference, with their current values) or `"arguments"` (for training: passed at
    each call, before the inputs, with their names in the signature). Raises `UnsupportedOpError` with every op that has
    no rule.
    """
    return _importer("pytorch", "torch").import_module(model, args, kwargs, parameters, shapes)


def from_tensorflow(
    function: object,
    *args: object,
    parameters: str = "constants",
    trust: bool = False,
    signature: str | None = None,
    **kwargs: object,
) -> Module:
    """Imports a `tf.function`, `ConcreteFunction`, `GraphDef`, SavedModel folder, Keras model or its file.

    `args` and `kwargs` are example inputs or `tf.TensorSpec`s. Sizes that they, or without them the function itself,
    leave unknown are dynamic in the module. Variables that the function assigns are arguments before the inputs, and
    results after the outputs, whose role is `state`. `parameters`: see `from_torch`. `trust`: see `load`. `signature`
    is the name of a SavedModel's signature; without one, it is `serving_default`, or the only one. Raises
    `UnsupportedOpError` with every op that has no rule.
    """
    importer = _importer("tensorflow", "tensorflow")
    return importer.import_module(function, args, kwargs, parameters=parameters, trust=trust, signature=signature)


def from_jax(function: Callable[..., object] | ClosedJaxpr, *args: object, **kwargs: object) -> Module:
    """Imports a JAX function or a `ClosedJaxpr`, for arguments like `args` (arrays or `ShapeDtypeStruct`s)."""
    return _importer("jax", "jax").import_module(function, args, kwargs)


def from_onnx(
    model: onnx.ModelProto | str | PathLike[str],
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    folder: str | PathLike[str] | None = None,
) -> Module:
    """Imports an ONNX model: a path or a `ModelProto`. `shapes` maps inputs to shapes that fix dynamic sizes; `None`
    leaves one open. `folder` is where the files are that have the model's tensors: for a path, by default, its own
    folder."""
    return _importer("onnx", "onnx").import_module(model, shapes=shapes, folder=folder)


def parse(text: str) -> Module:
    """Parses a program from MLIR text. Raises `ParseError` with line, column and the line itself."""
    from trivium.ir.text import parse as parse_text

    if not isinstance(text, str):
        raise Error(f"the text is a {type(text).__name__}, expected a str (trivium.load reads files)")
    return parse_text(text)


def load(path: str | Path, *, trust: bool = False) -> Module:
    """Loads a program from a file: `.mlir` text, `.mlirbc` (or `.bc`) bytecode, portable or not, `.onnx`, `.pt2`,
    `.keras`, `.h5`, or a SavedModel folder.

    Files are read as data, and nothing in them is executed. With `trust=True`, PyTorch itself loads a `.pt2` and
    TensorFlow a SavedModel, which runs pickles and initializers in the file: use it only for files that you trust.
    """
    path = path_of(path)
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise Error(f"cannot read {path}: {error.strerror}") from None
    if not exists:
        raise Error(f"{path} does not exist")
    if not path.is_dir() and not path.is_file():
        raise Error(f"{path} is neither a file nor a folder")  # reading from a pipe or a device might never end
    from trivium.ir.memory import exhaustion

    with exhaustion(f"loading {path.name}", Error):
        return _load(path, trust)


def _load(path: Path, trust: bool) -> Module:
    if path.is_dir():
        if not (path / "saved_model.pb").exists():
            raise Error(f"folder {path} has no saved_model.pb, expected a SavedModel")
        return from_tensorflow(path, trust=trust)
    if path.suffix == ".pt2":
        return _importer("pytorch", "torch").import_file(path, trust=trust)
    if path.suffix in _OF_KERAS:
        return from_tensorflow(path, trust=trust)
    reader = _READERS.get(path.suffix)
    if reader is None:
        suffixes = ", ".join(sorted((*_READERS, *_OF_KERAS, ".pt2")))
        raise Error(f"{path.name} has the suffix {path.suffix!r}, expected one of {suffixes}")
    return reader(path)


_OF_KERAS = (".keras", ".h5")


def evaluate(module: Module, *arguments: object, function: str | None = None) -> tuple[np.ndarray, ...]:
    """Runs a program op by op in NumPy: slow, and obviously right. `function` names a function other than the entry."""
    from trivium.ir.interpreter import evaluate as interpret
    from trivium.ir.memory import exhaustion

    _require_module(module)
    with exhaustion("evaluating the program", ExecutionError):
        return interpret(module, *arguments, function=function)


def compile(
    module: Module,
    *,
    device: str | Sequence[str] = "cpu",
    target: str | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    autotune: bool = False,
    deterministic: bool = True,
    tf32: bool = False,
) -> Executable:
    """Compiles a program for a device; `run = trivium.compile(module)`, then `run(x)` returns a tuple of arrays.

    `threads` limits the threads of a run; the default is `TRIVIUM_NUM_THREADS`, or all of the machine's. `fast_math`
    allows the compiler to contract and reorder floating-point operations. `autotune` measures several schedules of each
    product and convolution, and keeps the fastest ones in the cache, for this machine; compiling then takes longer the
    first time.

    On a GPU, `deterministic=False` allows atomic operations to update floats, as in the gradient of an embedding:
    results then depend on the order of threads, and differ in the last bits from run to run. `tf32` allows tensor cores
    to multiply f32: they round factors to 10 bits of mantissa.

    `device` may also be several GPUs, such as `("cuda:0", "cuda:1")`, for a program that has as many partitions. Its
    arguments and results are whole arrays, of which each GPU has the parts that the program's shardings say.

    `target` names a kind of processor to compile for instead of this one: `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or
    `aarch64`, with Linux. A program for a processor that this machine does not have can be saved and inspected here,
    and runs where `load_executable` reads its file. Raises `CompileError`, or `VerificationError`.
    """
    from trivium.backends.advice import advised
    from trivium.executable import compile_module
    from trivium.ir.memory import exhaustion

    _require_module(module)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise Error(f"threads has {threads!r}, expected an integer of at least 1")
    with exhaustion("compiling the program", CompileError), advised(module):
        return compile_module(
            module,
            device=device,
            target=target,
            threads=threads,
            fast_math=fast_math,
            autotune=autotune,
            deterministic=deterministic,
            tf32=tf32,
        )


def load_executable(path: str | Path, *, device: str | Sequence[str] = "cpu") -> Executable:
    """Loads a compiled program that `Executable.save` wrote, for as many devices as it was compiled for. Raises an
    `Error` if the file is damaged, or was compiled for another machine or version of Trivium. The file contains machine
    code, which runs with your rights: load only files that you trust."""
    from trivium.executable import load_executable as load_from
    from trivium.ir.memory import exhaustion

    with exhaustion("loading the program", Error):
        return load_from(path, device=device)


def explain() -> str:
    """Says in sentences what `torch.compile`, `trivium.tensorflow.function`, `trivium.jit` and JAX's device `trivium`
    made of the programs of this process: for what each was compiled, why again and how to avoid it, what was left to
    the framework, and, as `Executable.explain` does, why ops share a kernel."""
    from trivium.journal import explained

    return explained()


def jit(function: Callable[P, Returned], **options: str | int | None) -> Callable[P, Returned]:
    """Compiles a JAX function with Trivium, once for each new shape. Works under `jax.grad` and `jax.vmap`. The options
    are those of `trivium.compile`, and `static_argnums` and `static_argnames` as in `jax.jit`."""
    jit = framework_module("trivium.jax", "jax").jit
    parameters = inspect.signature(jit).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise Error(f"trivium.jit has options {', '.join(unknown)}, expected any of {', '.join(known)}")
    return jit(function, **options)


def _require_module(module: object) -> None:
    if not isinstance(module, Module):
        hint = "trivium.parse reads text, trivium.load files, and trivium.from_* the frameworks' own programs"
        raise Error(f"the program is a {type(module).__name__}, expected a Module: {hint}")


def _importer(name: str, extra: str) -> ModuleType:
    return framework_module(f"trivium.importers.{name}", extra)


def framework_module(module: str, extra: str) -> ModuleType:
    """Imports a module that needs a framework. If that is missing, the error names the extra that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "trivium":
            raise
        name = FRAMEWORKS[extra]
        raise Error(
            f"{name} is not installed (no module {missing}), expected: pip install 'trivium[{extra}]'"
        ) from None


def _load_text(path: Path) -> Module:
    from trivium.ir.text import parse as parse_text

    try:
        with open(path, "rb") as file:
            if file.read(4) == _BYTECODE:  # like MLIR's tools, regardless of the suffix
                return _load_bytecode(path)
        return parse_text(path.read_bytes().decode(), file=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"cannot read {path}: {error}") from None


def _load_bytecode(path: Path) -> Module:
    from trivium.ir.bytecode import load as load_bytecode

    return load_bytecode(path)


_BYTECODE = b"ML\xefR"
_READERS: dict[str, Callable[[Path], Module]] = {
    ".bc": _load_bytecode,
    ".mlir": _load_text,
    ".mlirbc": _load_bytecode,
    ".onnx": from_onnx,
}
