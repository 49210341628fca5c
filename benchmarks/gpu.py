"""Measures Trivium on an NVIDIA GPU, compared with PyTorch's compiler and JAX if they are installed and find one:

python -m benchmarks.gpu [--device cuda:0] [--seconds 1] [--json out/gpu.json] [name ...]

The first line is the rate at which the device copies its own memory. Rows that only move memory are compared with it,
and products with their peers. Results are compared before anything is measured; contenders then take turns. If a row
fails, hangs or is wrong, or a peer fails, its line reports that, and the others are measured nevertheless: each row has
a process of its own. The file is written after each row."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import ml_dtypes
import numpy as np

import trivium
from benchmarks.apart import apart
from trivium.backends import client
from trivium.backends.gpu import cuda
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.compiler.driver import CompileOptions
from trivium.ir.errors import Error

OURS = "trivium"
Call = Callable[[], Callable[[], object]]
"""Starts work, and returns what waits for it and gives the result."""


@dataclass(frozen=True)
class Row:
    """A program; `function` is the same for peers, in words of the module that it is given as `of`. `moved`: the bytes
    that it must read and write; `flops`: its operations."""

    name: str
    text: str
    arguments: tuple[tuple[tuple[int, ...], Any], ...]
    function: Callable[..., Any]
    moved: int = 0
    flops: float = 0.0
    tolerance: float = 1e-3
    options: CompileOptions = field(default_factory=CompileOptions)


@dataclass
class Result:
    """The median time of each contender, in seconds, and how fast ours is."""

    name: str
    times: dict[str, float]
    gigabytes: float
    share_of_copies: float
    teraflops: float
    failures: dict[str, str] = field(default_factory=dict)
    """What the peers that failed said."""


def rows(scale: int = 1) -> list[Row]:
    """Returns the rows, with extents divided by `scale`."""
    many, long = 65_536 // scale, 1024 // scale  # a launch takes longer than the host needs for it
    f32, bf16 = np.float32, ml_dtypes.bfloat16
    kind = f"tensor<{many}x{long}xf32>"
    both = 8 * many * long

    def elementwise(x: Any, y: Any, of: Any) -> Any:
        return of.tanh(x) * y + x

    def softmax(x: Any, of: Any) -> Any:
        powers = of.exp(x - of.amax(x, 1, keepdims=True))
        return powers / of.sum(powers, 1, keepdims=True)

    def layer_norm(x: Any, of: Any) -> Any:
        centred = x - of.mean(x, 1, keepdims=True)
        return centred / of.sqrt(of.mean(centred * centred, 1, keepdims=True) + 1e-5)

    listed = [
        Row(
            "tanh(x) * y + x",
            f"""func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
              %0 = stablehlo.tanh %x : {kind}
              %1 = stablehlo.multiply %0, %y : {kind}
              %2 = stablehlo.add %1, %x : {kind}
              return %2 : {kind}
            }}""",
            (((many, long), f32), ((many, long), f32)),
            elementwise,
            moved=both + both // 2,
        ),
        Row("softmax", _softmax(many, long), (((many, long), f32),), softmax, moved=both),
        Row("layer norm", _layer_norm(many, long), (((many, long), f32),), layer_norm, moved=both),
        Row("cumsum", _cumsum(many, long), (((many, long), f32),), lambda x, of: of.cumsum(x, 1), moved=both),
    ]
    for size in (4096 // scale, 8192 // scale):
        listed.append(_product(size, "bf16", bf16, CompileOptions()))
    listed.append(_attention(max(1, 64 // scale), max(32, 2048 // scale), 64))
    listed.append(_product(4096 // scale, "f32", f32, CompileOptions()))
    listed.append(_product(4096 // scale, "f32", f32, CompileOptions(tf32=True)))
    return listed


def _softmax(many: int, long: int) -> str:
    kind, row = f"tensor<{many}x{long}xf32>", f"tensor<{many}xf32>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
        : ({kind}, tensor<f32>) -> {row}
      %1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({row}) -> {kind}
      %2 = stablehlo.subtract %x, %1 : {kind}
      %3 = stablehlo.exponential %2 : {kind}
      %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
        : ({kind}, tensor<f32>) -> {row}
      %5 = stablehlo.broadcast_in_dim %4, dims = [0] : ({row}) -> {kind}
      %6 = stablehlo.divide %3, %5 : {kind}
      return %6 : {kind}
    }}"""


def _layer_norm(many: int, long: int) -> str:
    kind, row = f"tensor<{many}x{long}xf32>", f"tensor<{many}xf32>"

    def mean(of: str, name: str) -> str:
        return f"""%{name}_sum = stablehlo.reduce({of} init: %zero) applies stablehlo.add across dimensions = [1]
        : ({kind}, tensor<f32>) -> {row}
      %{name}_mean = stablehlo.divide %{name}_sum, %count : {row}"""

    return f"""func.func @main(%x: {kind}) -> {kind} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %count = stablehlo.constant dense<{float(long)}> : {row}
      %small = stablehlo.constant dense<1.0e-05> : {row}
      {mean("%x", "x")}
      %0 = stablehlo.broadcast_in_dim %x_mean, dims = [0] : ({row}) -> {kind}
      %1 = stablehlo.subtract %x, %0 : {kind}
      %2 = stablehlo.multiply %1, %1 : {kind}
      {mean("%2", "v")}
      %3 = stablehlo.add %v_mean, %small : {row}
      %4 = stablehlo.sqrt %3 : {row}
      %5 = stablehlo.broadcast_in_dim %4, dims = [0] : ({row}) -> {kind}
      %6 = stablehlo.divide %1, %5 : {kind}
      return %6 : {kind}
    }}"""


def _attention(heads: int, length: int, width: int) -> Row:
    """Attention of bf16, whose products and softmax are f32; peers are given their own function for it."""
    held, wide = (f"tensor<{heads}x{length}x{width}x{kind}>" for kind in ("bf16", "f32"))
    plane, row = f"tensor<{heads}x{length}x{length}xf32>", f"tensor<{heads}x{length}xf32>"
    text = f"""func.func @main(%q: {held}, %k: {held}, %v: {held}) -> {held} {{
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %scale = stablehlo.constant dense<{width**-0.5}> : {wide}
      %0 = stablehlo.convert %q : ({held}) -> {wide}
      %1 = stablehlo.convert %k : ({held}) -> {wide}
      %2 = stablehlo.convert %v : ({held}) -> {wide}
      %3 = stablehlo.multiply %0, %scale : {wide}
      %4 = stablehlo.dot_general %3, %1, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : ({wide}, {wide}) -> {plane}
      %5 = stablehlo.reduce(%4 init: %low) applies stablehlo.maximum across dimensions = [2]
        : ({plane}, tensor<f32>) -> {row}
      %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : ({row}) -> {plane}
      %7 = stablehlo.subtract %4, %6 : {plane}
      %8 = stablehlo.exponential %7 : {plane}
      %9 = stablehlo.reduce(%8 init: %zero) applies stablehlo.add across dimensions = [2]
        : ({plane}, tensor<f32>) -> {row}
      %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : ({row}) -> {plane}
      %11 = stablehlo.divide %8, %10 : {plane}
      %12 = stablehlo.dot_general %11, %2, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : ({plane}, {wide}) -> {wide}
      %13 = stablehlo.convert %12 : ({wide}) -> {held}
      return %13 : {held}
    }}"""

    def attention(q: Any, k: Any, v: Any, of: Any) -> Any:
        if hasattr(of, "nn"):
            return of.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
        import jax

        q, k, v = (of.swapaxes(x, 0, 1)[None] for x in (q, k, v))
        return of.swapaxes(jax.nn.dot_product_attention(q, k, v)[0], 0, 1)

    shape = (heads, length, width), ml_dtypes.bfloat16
    flops = 4.0 * heads * length * length * width
    return Row(f"bf16 attention {heads}x{length}x{width}", text, (shape,) * 3, attention, flops=flops, tolerance=2e-2)


def _cumsum(many: int, long: int) -> str:
    kind = f"tensor<{many}x{long}xf32>"
    return f"""func.func @main(%x: {kind}) -> {kind} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %zero) <{{window_dimensions = array<i64: 1, {long}>,
        padding = dense<[[0, 0], [{long - 1}, 0]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %r = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %r : tensor<f32>
      }}) : ({kind}, tensor<f32>) -> {kind}
      return %0 : {kind}
    }}"""


def _product(size: int, dtype: str, numpy: Any, options: CompileOptions) -> Row:
    kind = f"tensor<{size}x{size}x{dtype}>"
    text = f"""func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}
      return %0 : {kind}
    }}"""
    name = f"{'tf32' if options.tf32 else dtype} product {size}"
    shape = (size, size), numpy
    return Row(name, text, (shape, shape), lambda x, y, of: x @ y, flops=2.0 * size**3, tolerance=2e-2, options=options)


def arguments(row: Row) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape, np.float32).astype(dtype) for shape, dtype in row.arguments]


# Contenders


def ours(on: GpuClient, row: Row, given: list[np.ndarray]) -> Call:
    executable = on.compile(trivium.parse(row.text), row.options)
    assert isinstance(executable, GpuLoadedExecutable)
    buffers = [on.buffer_from_host(array) for array in given]

    def call() -> Callable[[], object]:
        (result,) = executable.execute_buffers(buffers)

        def wait() -> object:
            result.ready.wait()
            return result

        return wait

    return call


def of_torch(row: Row, given: list[np.ndarray]) -> Call | None:
    """Returns PyTorch's compiled program, if PyTorch finds a GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = row.options.tf32
    kinds = [torch.bfloat16 if array.dtype == ml_dtypes.bfloat16 else torch.float32 for array in given]
    tensors = [torch.tensor(a.astype(np.float32)).to("cuda", kind) for a, kind in zip(given, kinds, strict=True)]
    compiled = torch.compile(lambda *operands: row.function(*operands, of=torch))

    def call() -> Callable[[], object]:
        result = compiled(*tensors)

        def wait() -> object:
            torch.cuda.synchronize()
            return result

        return wait

    return call


def of_jax(row: Row, given: list[np.ndarray]) -> Call | None:
    """Returns JAX's compiled program, if JAX finds a GPU."""
    try:
        import jax

        device = jax.devices("gpu")[0]
    except (ImportError, RuntimeError):
        return None
    precision = "default" if row.options.tf32 or row.name.startswith("bf16") else "highest"
    placed = [jax.device_put(array, device) for array in given]
    compiled = jax.jit(lambda *operands: row.function(*operands, of=jax.numpy))

    def call() -> Callable[[], object]:
        with jax.default_matmul_precision(precision):
            return compiled(*placed).block_until_ready

    return call


def as_numpy(result: Any) -> np.ndarray:
    if hasattr(result, "to_numpy"):
        return result.to_numpy().astype(np.float32)
    return np.asarray(result.float().cpu() if hasattr(result, "cpu") else result, np.float32)


# Measuring


def timed(call: Call, seconds: float) -> float:
    """Returns the time of one call, of as many as fill `seconds`; the device works on them one after the other."""
    call()()
    count, spent = 1, 0.0
    while True:
        begin = time.perf_counter()
        for _ in range(count - 1):
            call()
        call()()
        spent = time.perf_counter() - begin
        if spent >= seconds:
            return spent / count
        count *= 2


def copy_rate(on: GpuClient, nbytes: int, seconds: float) -> float:
    """Returns the bytes per second that the device reads and writes when it copies its own memory."""
    source, target = (on.driver.allocate(nbytes) for _ in range(2))
    on.driver.upload(source, np.zeros(nbytes, np.uint8))

    def call() -> Callable[[], object]:
        on.driver.copy(target, source, nbytes)
        return on.driver.event().wait

    return 2 * nbytes / timed(call, seconds)


def measured(on: GpuClient, row: Row, rate: float, seconds: float, rounds: int = 5) -> Result:
    """Compares the contenders' results, then measures them in turns."""
    given, failures = arguments(row), dict[str, str]()
    call = ours(on, row, given)
    found, results = {OURS: call}, {OURS: as_numpy(call()())}
    for name, peer in (("torch", of_torch), ("jax", of_jax)):
        try:
            if (call := peer(row, given)) is not None:
                results[name] = as_numpy(call()())
                found[name] = call
        except Exception as error:
            failures[name] = brief(error)
    scale = float(np.abs(results[OURS]).max(initial=1e-30))
    for name, result in results.items():
        error = float(np.abs(result - results[OURS]).max()) / scale
        if not error <= row.tolerance:
            raise click.ClickException(f"{row.name}: {name} differs by {error:.2g} of the largest element")
    turns = [{name: timed(call, seconds / rounds) for name, call in found.items()} for _ in range(rounds)]
    times = {name: float(np.median([turn[name] for turn in turns])) for name in found}
    moved, flops = row.moved / times[OURS], row.flops / times[OURS]
    return Result(row.name, times, moved / 1e9, moved / rate, flops / 1e12, failures)


def brief(error: Exception) -> str:
    """Returns what an error says, in one line without bars."""
    return " ".join(f"{type(error).__name__}: {error}".replace("|", "/").split())[:300]


def described(result: Result) -> str:
    peers = ", ".join(f"{name} {time / result.times[OURS]:.2f}" for name, time in result.times.items() if name != OURS)
    peers = "; ".join((peers, *(f"{name} failed, {reason}" for name, reason in result.failures.items()))).strip("; ")
    speed = f"{result.teraflops:.1f} TFLOP/s" if result.teraflops else f"{result.gigabytes:.0f} GB/s"
    share = f"{result.share_of_copies:.0%}" if result.gigabytes else ""
    return f"| {result.name} | {1e6 * result.times[OURS]:.0f} us | {speed} | {share} | {peers or 'none'} |"


def report(
    on: GpuClient, listed: list[Row], seconds: float, copied: int = 1 << 30
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the lines of the table, with what they tell as data."""
    rate = copy_rate(on, copied, seconds)
    device = on.devices[0]
    yield f"{device.kind}; {on.platform_version}; copies {rate / 1e9:.0f} GB/s", {"copies": rate, "device": device.kind}
    yield "| row | ours | speed | share of copies | their time over ours |\n| --- | --- | --- | --- | --- |", {}
    for row in listed:
        try:
            found = measured(on, row, rate, seconds)
        except (Error, click.ClickException) as error:
            yield f"| {row.name} | {brief(error)} | | | |", {"name": row.name, "failed": brief(error)}
        else:
            yield described(found), asdict(found)


def report_apart(device: str, names: list[str], seconds: float, limit: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Does the same, with a process for each row, of which the first one that measures anything tells the heading."""
    has_heading = False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "figures.json")
            options = f"--device {device} --seconds {seconds} --limit 0".split()
            outcome = apart(["-m", "benchmarks.gpu", *options, "--json", str(file), "--row", name], limit)
            found = json.loads(file.read_text()) if file.exists() else []
        if found and not has_heading:
            has_heading = True
            yield outcome.lines[0], found[0]
            yield "\n".join(outcome.lines[1:3]), {}
        if len(found) > 1:
            yield outcome.lines[3], found[1]
        else:
            yield f"| {name} | {outcome.failure} | | | |", {"name": name, "failed": outcome.failure}


def require_gpu(device: str) -> None:
    """Refuses everything but an NVIDIA GPU, without using it."""
    if device.partition(":")[0] != "cuda":
        raise click.ClickException(f"{device} is not an NVIDIA GPU; times of anything else would be meaningless")
    try:
        cuda.count()
    except Error as error:
        raise click.ClickException(f"{device} is not there, so there is nothing to measure: {error}") from None


def opened(device: str) -> GpuClient:
    """Returns the client of a GPU."""
    try:
        found = client(device)
    except Error as error:
        raise click.ClickException(str(error)) from None
    assert isinstance(found, GpuClient), "it is an NVIDIA GPU"
    return found


@click.command(help=__doc__)
@click.option("--device", default="cuda:0")
@click.option("--seconds", default=1.0, help="the time of each contender of a row")
@click.option("--json", "path", type=click.Path(path_type=Path), help="writes the figures to a file")
@click.option("--limit", default=300.0, help="the most seconds of a row; 0 measures all rows in this process")
@click.option("--row", "exactly", help="the name of the only row")
@click.argument("names", nargs=-1)
def main(
    device: str, seconds: float, path: Path | None, limit: float, exactly: str | None, names: tuple[str, ...]
) -> None:
    # JAX would take most of the device's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    require_gpu(device)
    kept = list[dict[str, Any]]()
    chosen = [row for row in rows() if exactly in (None, row.name)]
    chosen = [row for row in chosen if not names or any(name in row.name for name in names)]
    if limit:
        lines = report_apart(device, [row.name for row in chosen], seconds, limit)
    else:
        lines = report(opened(device), chosen, seconds)
    for line, data in lines:
        click.echo(line)
        kept += [data] if data else []
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(kept, indent=1))
    if failed := [data["name"] for data in kept if "failed" in data]:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
