"""Random programs of integers over arrays that four devices hold in parts, as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>'

Shape = tuple[int, ...]


def tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join([*map(str, shape), 'i32'])}>"


class Programs:
    """Draws one program. Extents are multiples of 4, so that all dimensions can be divided among all devices."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape]] = []
        self.usual: dict[Shape, tuple[str, Shape]] = {}
        self.plain: dict[str, str] = {}
        """Ops with the same results on one device, by the name of the result."""

    def texts(self, steps: int = 6) -> tuple[str, str, list[Shape]]:
        """Returns a program, the same for one device, and the shapes of its arguments."""
        shapes: list[Shape] = [(4, 8), (8, 4), (4, 4, 8), (8,)]
        self.values = [(f"%a{i}", shape) for i, shape in enumerate(shapes)]
        arguments = [
            f"{name}: {tensor(shape)} {{sdy.sharding = {self.sharding(shape)}}}" for name, shape in self.values
        ]
        while len(self.lines) < steps:
            self.step()
        returned = [self.values[-1], self.pick(), self.values[-1]][: 1 + int(self.random.integers(3))]
        results = [f"{tensor(shape)} {{sdy.sharding = {self.sharding(shape)}}}" for _, shape in returned]
        names, kinds = ", ".join(name for name, _ in returned), ", ".join(tensor(shape) for _, shape in returned)
        main = f"{MESH}\nfunc.func @main({', '.join(arguments)}) -> ({', '.join(results)})"
        plain = [f"{name} = {self.plain.get(name, rest)}" for name, _, rest in (x.partition(" = ") for x in self.lines)]
        whole, one = (
            f"{main} {{\n  {body}\n  return {names} : {kinds}\n}}" for body in map("\n  ".join, (self.lines, plain))
        )
        return whole, one, shapes

    def sharding(self, shape: Shape) -> str:
        return f"#sdy.sharding{self.divided(shape)[0]}"

    def divided(self, shape: Shape) -> tuple[str, Shape]:
        """Divides some dimensions, mostly like an earlier value of the shape: along one axis of the mesh each, or one
        along both. Returns how, and the shape of a part."""
        if shape in self.usual and self.random.random() < 0.7:
            return self.usual[shape]
        axes: list[list[str]] = [[] for _ in shape]
        for axis in self.random.permutation(["x", "y"]):
            place = int(self.random.integers(len(shape) + 1))
            if place < len(shape) and shape[place] % (2 << len(axes[place])) == 0:
                axes[place].append(f'"{axis}"')
        part = tuple(extent >> len(one) for extent, one in zip(shape, axes, strict=True))
        self.usual[shape] = f"<@mesh, [{', '.join('{' + ', '.join(one) + '}' for one in axes)}]>", part
        return self.usual[shape]

    def pick(self, suits: Callable[[Shape], bool] = lambda _: True) -> tuple[str, Shape]:
        """Draws a value, later ones more often."""
        found = [value for value in self.values if suits(value[1])]
        return found[-1 - min(int(self.random.geometric(0.4)) - 1, len(found) - 1)]

    def add(self, op: str, shape: Shape, kinds: Sequence[Shape] | None = None) -> None:
        name = f"%v{len(self.lines)}"
        signature = tensor(shape) if kinds is None else f"({', '.join(map(tensor, kinds))}) -> {tensor(shape)}"
        self.lines.append(f"{name} = {op} : {signature}")
        self.values.append((name, shape))

    def step(self) -> None:
        kinds = [name for name in dir(self) if name.startswith("draw_")]
        getattr(self, kinds[self.random.integers(len(kinds))])()

    def draw_sum(self) -> None:
        x, shape = self.pick()
        y, _ = self.pick(lambda other: other == shape)
        self.add(f"stablehlo.{self.random.choice(['add', 'multiply', 'maximum'])} {x}, {y}", shape)

    def draw_iota(self) -> None:
        x, shape = self.pick()
        dimension = int(self.random.integers(len(shape)))
        self.add(f"stablehlo.iota dim = {dimension}", shape)
        self.add(f"stablehlo.subtract {x}, {self.values[-1][0]}", shape)

    def draw_constant(self) -> None:
        x, shape = self.pick()
        self.add("stablehlo.constant dense<3>", shape)
        self.add(f"stablehlo.multiply {x}, {self.values[-1][0]}", shape)

    def draw_manual(self) -> None:
        """A computation on parts: the identity, or a sum."""
        x, shape = self.pick()
        sharding, part = self.divided(shape)
        result, op = (("%part", "maximum"), ("%twice", "add"))[self.random.integers(2)]
        self.plain[f"%v{len(self.lines)}"] = f"stablehlo.{op} {x}, {x} : {tensor(shape)}"
        self.add(
            f"sdy.manual_computation({x}) in_shardings=[{sharding}] out_shardings=[{sharding}] "
            f'manual_axes={{"x", "y"}} (%part: {tensor(part)}) {{\n'
            f"    %twice = stablehlo.add %part, %part : {tensor(part)}\n"
            f"    sdy.return {result} : {tensor(part)}\n  }}",
            shape,
            [shape],
        )

    def draw_transpose(self) -> None:
        x, shape = self.pick()
        order = [int(d) for d in self.random.permutation(len(shape))]
        self.add(f"stablehlo.transpose {x}, dims = {order}", tuple(shape[d] for d in order), [shape])

    def draw_broadcast(self) -> None:
        x, shape = self.pick(lambda shape: len(shape) < 3)
        wide = (*shape, 4)
        order = sorted(int(d) for d in self.random.choice(len(wide), len(shape), replace=False))
        extents = [4] * len(wide)
        for d, extent in zip(order, shape, strict=True):
            extents[d] = extent
        self.add(f"stablehlo.broadcast_in_dim {x}, dims = {order}", tuple(extents), [shape])

    def draw_reshape(self) -> None:
        x, shape = self.pick()
        size = math.prod(shape)
        shapes = [(size,), (4, size // 4), (size // 4, 4), (4, size // 16, 4), (1, size), (size // 8, 1, 8)]
        found = [one for one in shapes if math.prod(one) == size]
        self.add(f"stablehlo.reshape {x}", found[self.random.integers(len(found))], [shape])

    def draw_reduce(self) -> None:
        x, shape = self.pick(lambda shape: len(shape) > 1)
        d = int(self.random.integers(len(shape)))
        self.lines.append(f"%z{len(self.lines)} = stablehlo.constant dense<0> : tensor<i32>")
        zero = f"%z{len(self.lines) - 1}"
        op = f"stablehlo.reduce({x} init: {zero}) applies stablehlo.add across dimensions = [{d}]"
        self.add(op, (*shape[:d], *shape[d + 1 :]), [shape, ()])

    def draw_product(self) -> None:
        x, left = self.pick(lambda shape: len(shape) == 2)
        y, right = self.pick(lambda shape: len(shape) == 2 and left[1] in shape)
        d = right.index(left[1])
        op = f"stablehlo.dot_general {x}, {y}, contracting_dims = [1] x [{d}]"
        self.add(op, (left[0], right[1 - d]), [left, right])

    def draw_concatenate(self) -> None:
        x, shape = self.pick()
        d = int(self.random.integers(len(shape)))
        joined = (*shape[:d], 2 * shape[d], *shape[d + 1 :])
        self.add(f"stablehlo.concatenate {x}, {x}, dim = {d}", joined, [shape, shape])

    def draw_slice(self) -> None:
        x, shape = self.pick(lambda shape: max(shape) > 4)
        d = int(np.argmax(shape))
        ranges = [
            f"{extent // 4 if i == d else 0}:{extent // 4 + extent // 2 if i == d else extent}"
            for i, extent in enumerate(shape)
        ]
        cut = (*shape[:d], shape[d] // 2, *shape[d + 1 :])
        self.add(f"stablehlo.slice {x} [{', '.join(ranges)}]", cut, [shape])

    def draw_reverse(self) -> None:
        x, shape = self.pick()
        self.add(f"stablehlo.reverse {x}, dims = [{int(self.random.integers(len(shape)))}]", shape)

    def draw_sort(self) -> None:
        x, shape = self.pick()
        d = int(self.random.integers(len(shape)))
        self.add(
            f'"stablehlo.sort"({x}) <{{dimension = {d} : i64, is_stable = true}}> ({{\n'
            "  ^bb0(%p: tensor<i32>, %q: tensor<i32>):\n"
            "    %r = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "    stablehlo.return %r : tensor<i1>\n  })",
            shape,
            [shape],
        )
