"""Figures that a user notices before any model runs: the time of `import trivium`, the time to read and verify a long
program, as text and as an artifact, the time and memory to open large constants, and the time of one call of a compiled
program. Each is measured in new processes, and the median counts.

python benchmarks/figures.py [--rounds 10] [--json out/figures.json]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

PARSED_OPS = 10_000
LARGE = 500_000_000
"""Bytes of constants to open."""
WRITTEN = 100_000_000
"""Bytes of constants to write and read as a whole."""


def long_program(ops: int) -> str:
    """Returns a function of this many ops: sums, transposes and products, all in their pretty form."""
    lines = ["func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {"]
    last = "%x"
    for index in range(0, ops, 4):
        a, b, c, d = (f"%{index + offset}" for offset in range(4))
        lines += [
            f"  {a} = stablehlo.add {last}, %y : tensor<8x16xf32>",
            f"  {b} = stablehlo.transpose {a}, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>",
            f"  {c} = stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : "
            "(tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>",
            f"  {d} = stablehlo.dot_general {c}, %y, contracting_dims = [1] x [0] : "
            "(tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>",
        ]
        last = d
    return "\n".join([*lines, f"  return {last} : tensor<8x16xf32>", "}"])


@dataclass(frozen=True)
class Figure:
    """The cost of a statement, after a `setup` that is not counted: seconds, or, if the unit is MB, memory that stays
    resident. `most` is the limit, in seconds or bytes."""

    name: str
    statement: str
    setup: str = "pass"
    calls: int = 1
    unit: str = "s"
    most: float | None = None

    def measure(self) -> float:
        """Returns the seconds, or bytes, of one call in a new process that has imported nothing else."""
        done = subprocess.run(
            [sys.executable, "-c", self._resident() if self.unit == "MB" else self._timed()],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    def _timed(self) -> str:
        """Returns a program that times the statement; garbage is collected as usual."""
        setup = f"import gc; gc.enable()\n{self.setup}"
        return f"import timeit; print(timeit.timeit({self.statement!r}, {setup!r}, number={self.calls}) / {self.calls})"

    def _resident(self) -> str:
        pages = "int(open('/proc/self/statm').read().split()[1])"
        return f"{self.setup}\nbefore = {pages}\nkept = {self.statement}\nprint(4096 * ({pages} - before))"

    def text(self, value: float) -> str:
        """Returns a value in the figure's unit."""
        return f"{value * {'s': 1, 'us': 1e6, 'MB': 1e-6}[self.unit]:.3g} {self.unit}"


PARSE = f"""
import trivium
from figures import long_program
trivium.parse(long_program(100)).verify()
text = long_program({PARSED_OPS})
"""
READ = f"""{PARSE}
from trivium.ir.bytecode import deserialize, serialize
data = serialize(trivium.parse(text))
deserialize(serialize(trivium.parse(long_program(100)))).verify()
"""
WRITE_LARGE = f"""
import sys
import numpy as np
import trivium
from trivium.ir.attributes import DenseElements
from trivium.ir.func import Function, Module
from trivium.ir.ops import Constant
from trivium.ir.types import type_of
array = np.arange({LARGE} // 4, dtype=np.float32)
constant = DenseElements(array, type_of(array))
Module.build(functions=[Function.build("main", [], lambda builder: builder.add(Constant(constant)))]).save(sys.argv[1])
"""
WRITE = f"""
import os
import numpy as np
import trivium
from trivium.ir.attributes import DenseElements
from trivium.ir.func import Function, Module
from trivium.ir.ops import Constant
rng = np.random.default_rng(0)
arrays = [rng.standard_normal({WRITTEN} // 400).astype(np.float32) for _ in range(100)]
module = Module.build(functions=[
    Function.build("main", [], lambda builder: [builder.add(Constant(DenseElements(array))) for array in arrays])
])
path = os.environ["LARGE_ARTIFACT"].replace("large.mlirbc", "written")
"""
WRITTEN_TEXT = f"""{WRITE}
module.save(path + ".mlir")
"""
OPEN = """
import os
import trivium
trivium.load
import trivium.ir.bytecode
"""
LOAD = "trivium.load(os.environ['LARGE_ARTIFACT'])"
CALL = """
import numpy as np
import trivium
run = trivium.compile(trivium.parse('''
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %one = stablehlo.constant dense<1.0> : tensor<8xf32>
      %0 = stablehlo.add %x, %one : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
'''))
x = np.zeros(8, np.float32)
for _ in range(1000):
    run(x)
"""
FIGURES = (
    Figure("import trivium", "import trivium", most=0.2),
    Figure("import trivium, trivium.compile", "import trivium; trivium.compile"),
    Figure(f"parse + verify, {PARSED_OPS:,} ops", "trivium.parse(text).verify()", PARSE, most=1.0),
    Figure(f"read + verify, artifact of {PARSED_OPS:,} ops", "deserialize(data).verify()", READ, most=0.6),
    Figure(f"open an artifact, {LARGE // 10**6} MB of constants", LOAD, OPEN, most=0.2),
    Figure(f"memory to open {LARGE // 10**6} MB of constants", LOAD, OPEN, unit="MB", most=50e6),
    Figure(f"save {WRITTEN // 10**6} MB of constants as text", "module.save(path + '.mlir')", WRITE, most=6.0),
    Figure(f"save {WRITTEN // 10**6} MB of constants as an artifact", "module.save(path + '.mlirbc')", WRITE, most=0.5),
    Figure(f"read {WRITTEN // 10**6} MB of constants as text", "trivium.load(path + '.mlir')", WRITTEN_TEXT, most=4.0),
    Figure(f"print {WRITTEN // 10**6} MB of constants, elided", "str(module)", WRITE, most=0.1),
    Figure("call of x + 1, 8 elements", "run(x)", CALL, 20_000, "us", 4e-6),
)


@click.command()
@click.option("--rounds", default=10, show_default=True, help="Processes for each figure.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path), help="Also write all values, in seconds and bytes, to it."
)
def main(rounds: int, path: Path | None) -> None:
    """Measures the figures: medians over new processes."""
    table = Table("figure", "median", "least", "at most")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LARGE_ARTIFACT"] = str(Path(folder) / "large.mlirbc")
        subprocess.run([sys.executable, "-c", WRITE_LARGE, os.environ["LARGE_ARTIFACT"]], check=True)
        for figure in track(FIGURES, console=Console(stderr=True), transient=True):
            figure.measure()  # fills the file system's caches, and those of bytecode
            values = found[figure.name] = [figure.measure() for _ in range(rounds)]
            most = figure.text(figure.most) if figure.most else "-"
            table.add_row(figure.name, figure.text(statistics.median(values)), figure.text(min(values)), most)
    Console(width=120).print(table)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
