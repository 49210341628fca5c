"""How it works, by the example of one program: what it is at every stage. It is compiled for the processor of the
compiler's own tests, so that the page does not depend on the machine."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import trivium
from tests.compiler.targets import TARGET
from trivium.compiler.passes.watch import watched_by
from trivium.compiler.stages import DEFAULT, Stages
from trivium.debug.tape import Tape

PAGE = """# How it works

This page follows one layer of a neural network from the user's source line to machine code. `python -m docs.generate`
generates it, so that all programs on it are real output of the compiler. [Architecture](../ARCHITECTURE.md) says which
part of the source does what.

## The user's code

```python
def layer(x, w, b):
    return jax.numpy.maximum(x @ w.T + b, 0)
```

## Import

`trivium.from_jax(layer, x, w, b)` lets JAX trace the function, and reads the equations of the result. Each kind of
equation has a rule, a function of a few lines that writes StableHLO ops. PyTorch, TensorFlow or ONNX would lead to
nearly the same ops: from here on, nothing depends on the framework.

```mlir
{module}
```

Every op has a type rule, a verifier, and one definition of its meaning, on NumPy arrays. `trivium.evaluate(module, x,
w, b)` runs these definitions. It is slow, and the reference that every later step is tested against.

## Optimize

Passes rewrite the program until nothing changes. Most rewrites are equations. These apply here:

{rules}

The transpose of the weight is gone, since a product can read it either way, and the zeros are a single constant:

```mlir
{graph}
```

`trivium diff program.mlirbc --html page.html` steps through the rewrites of any program.

## Fuse and lower

A product and the ops on each of its elements can be one loop: the sum is never stored before the bias is added. So
these ops become one kernel, and the whole program is a single launch:

```
{program}
```

A kernel is a small program of loops over buffers. It says what is computed, not how: it has no tiles, vectors or
threads. Beside the loops, a mark says that this is a matrix product, with an epilogue for each element.

```
{kernel}
```

`compiler/kernel/interpreter.py` can run kernels, so that each step of the compiler is tested against the previous one.

## Schedule and emit

A backend chooses the schedule: which loops are vectorized, and which are distributed over threads or a GPU's blocks. On
a CPU, a product is computed in tiles that fit the registers, and constant weights are packed once, in the order in
which the tiles read them. Then the backend emits LLVM IR for its device, with the epilogue at the end of each tile, and
LLVM generates machine code.

`trivium show program.mlirbc --stage llvm` and `--stage asm` print both. [The page](guide.md#look-at-a-program)
shows all stages side by side, and links each line with what it became.

## Run

An artifact contains the machine code, the location of every array, and how constant weights are packed. It is stored
in a cache: another process that compiles the same program only loads it. A run is a single call of native code, without
Python's interpreter lock. `run.profile(x, w, b)` measures the time of each launch, and `run.explain()` says why ops
share a kernel, or do not.
"""


def layer(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    """The program."""
    return jnp.maximum(x @ w.T + b, 0)


def walk_page() -> str:
    """Returns the page."""
    module = trivium.from_jax(layer, jnp.ones((64, 32)), jnp.ones((16, 32)), jnp.ones(16))
    stages, tape = Stages(module, TARGET, DEFAULT), Tape()
    with watched_by(tape):
        graph = str(stages.graph)
    (kernel,) = stages.program.kernels()
    rules = dict.fromkeys((step.rule, step.about) for step in tape.steps if step.rule)
    texts = {
        "module": str(module),
        "rules": "\n".join(f"- `{rule}`: {about}" for rule, about in rules),
        "graph": graph,
        "program": "\n".join(line.partition("  // ")[0] for line in str(stages.program).split("\n")),
        "kernel": str(kernel),
    }
    page = PAGE
    for name, text in texts.items():
        page = page.replace(f"{{{name}}}", text.strip())
    return page
