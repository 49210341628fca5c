"""The gradients of attention as frameworks write them, for tests of every stage: weights are computed again from the
scores and the logarithms of the rows' sums."""

from __future__ import annotations

from dataclasses import dataclass, fields

import ml_dtypes
import numpy as np

import trivium
from tests.compiler.targets import TARGET
from trivium.compiler.target import Target
from trivium.ir.func import Module

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


@dataclass(frozen=True)
class Gradients:
    """Queries of shape heads x queries x depth, values of `features`. `rounded`: weights, and the gradients of scores,
    are rounded to the factors' type. `queries_only`: the gradients of keys and values are no results."""

    dtype: str = "bf16"
    heads: int = 2
    queries: int = 40
    keys: int = 70
    depth: int = 20
    features: int = 36
    mask: str = ""
    rounded: bool = False
    queries_only: bool = False

    def module(self) -> Module:
        return trivium.parse(self.text())

    def arguments(self) -> list[np.ndarray]:
        """The gradients of results; queries, keys and values; the rows' logarithms and sums of products; the mask."""
        generator = np.random.default_rng(0)
        shapes = [(self.queries, self.features), (self.queries, self.depth), (self.keys, self.depth)]
        shapes.append((self.keys, self.features))
        found = [generator.standard_normal((self.heads, *shape)).astype(TYPES[self.dtype]) for shape in shapes]
        bias = generator.standard_normal((self.heads, self.queries, self.keys)).astype(np.float32)
        extra = [bias] if self.mask == "added" else []
        scores = self._scores(*found, *extra)
        greatest = scores.max(-1)
        logs = greatest + np.log(np.exp(scores - greatest[..., None]).sum(-1))
        weights = np.exp(scores - logs[..., None])
        of_weights = found[0].astype(np.float64) @ found[3].astype(np.float64).swapaxes(1, 2)
        sums = (weights * of_weights).sum(-1)
        return [*found, logs.astype(np.float32), sums.astype(np.float32), *extra]

    def _scores(self, of_out: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, *bias: np.ndarray) -> np.ndarray:
        scores = 0.25 * q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2)
        if self.mask == "causal":
            scores = np.where(np.arange(self.queries)[:, None] >= np.arange(self.keys), scores, -np.inf)
        return scores + bias[0] if bias else scores

    def expected(self, *given: np.ndarray) -> list[np.ndarray]:
        """The gradients of queries, keys and values in f64."""
        of_out, q, k, v, logs, sums = (a.astype(np.float64) for a in given[:6])
        weights = np.exp(self._scores(*given[:4], *given[6:]) - logs[..., None])
        of_scores = 0.25 * weights * (of_out @ v.swapaxes(1, 2) - sums[..., None])
        if self.rounded:
            weights, of_scores = (
                x.astype(np.float32).astype(TYPES[self.dtype]).astype(np.float64) for x in (weights, of_scores)
            )
        if self.queries_only:
            return [of_scores @ k]
        return [of_scores @ k, of_scores.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ of_out]

    def text(self) -> str:
        row, plane = f"{self.heads}x{self.queries}", f"tensor<{self.heads}x{self.queries}x{self.keys}xf32>"
        shapes = {
            "do": f"{row}x{self.features}",
            "q": f"{row}x{self.depth}",
            "k": f"{self.heads}x{self.keys}x{self.depth}",
            "v": f"{self.heads}x{self.keys}x{self.features}",
        }
        wide = {name: f"tensor<{shape}xf32>" for name, shape in shapes.items()}
        given = ", ".join(f"%{name}n: tensor<{shape}x{self.dtype}>" for name, shape in shapes.items())
        extra = f", %bias: {plane}" if self.mask == "added" else ""
        converted = "\n".join(
            f"%{name} = stablehlo.convert %{name}n : (tensor<{shape}x{self.dtype}>) -> {wide[name]}"
            for name, shape in shapes.items()
        )
        results, names = [wide["q"], wide["k"], wide["v"]], "%dq, %dk, %dv"
        if self.queries_only:
            results, names = results[:1], "%dq"
        batch = "batching_dims = [0] x [0], contracting_dims"
        return f"""func.func @main({given}, %logs: tensor<{row}xf32>, %sums: tensor<{row}xf32>{extra})
            -> ({", ".join(results)}) {{
          {converted}
          %c = stablehlo.constant dense<0.25> : {wide["q"]}
          %scaled = stablehlo.multiply %q, %c : {wide["q"]}
          %p = stablehlo.dot_general %scaled, %k, {batch} = [2] x [2] : ({wide["q"]}, {wide["k"]}) -> {plane}
          {self._masked(plane)}
          %l = stablehlo.broadcast_in_dim %logs, dims = [0, 1] : (tensor<{row}xf32>) -> {plane}
          %d = stablehlo.subtract %x, %l : {plane}
          %w = stablehlo.exponential %d : {plane}
          %dw = stablehlo.dot_general %do, %v, {batch} = [2] x [2] : ({wide["do"]}, {wide["v"]}) -> {plane}
          %s = stablehlo.broadcast_in_dim %sums, dims = [0, 1] : (tensor<{row}xf32>) -> {plane}
          %less = stablehlo.subtract %dw, %s : {plane}
          %ds = stablehlo.multiply %w, %less : {plane}
          %cc = stablehlo.constant dense<0.25> : {plane}
          %dx = stablehlo.multiply %ds, %cc : {plane}
          {self._rounded("%w", "%rw", plane)}
          {self._rounded("%dx", "%rdx", plane)}
          %dq = stablehlo.dot_general %rdx, %k, {batch} = [2] x [1] : ({plane}, {wide["k"]}) -> {wide["q"]}
          %dk = stablehlo.dot_general %rdx, %q, {batch} = [1] x [1] : ({plane}, {wide["q"]}) -> {wide["k"]}
          %dv = stablehlo.dot_general %rw, %do, {batch} = [1] x [1] : ({plane}, {wide["do"]}) -> {wide["v"]}
          return {names} : {", ".join(results)}
        }}"""

    def _rounded(self, name: str, new: str, plane: str) -> str:
        if not self.rounded:
            return f"{new} = stablehlo.reshape {name} : ({plane}) -> {plane}"
        narrow = plane.replace("f32", self.dtype)
        return f"""{new}n = stablehlo.convert {name} : ({plane}) -> {narrow}
          {new} = stablehlo.convert {new}n : ({narrow}) -> {plane}"""

    def _masked(self, plane: str) -> str:
        if self.mask == "added":
            return f"%x = stablehlo.add %p, %bias : {plane}"
        if self.mask == "causal":
            numbers, bits = plane.replace("f32", "i32"), plane.replace("f32", "i1")
            return f"""%i = stablehlo.iota dim = 1 : {numbers}
              %j = stablehlo.iota dim = 2 : {numbers}
              %more = stablehlo.compare GE, %i, %j : ({numbers}, {numbers}) -> {bits}
              %infs = stablehlo.constant dense<0xFF800000> : {plane}
              %x = stablehlo.select %more, %p, %infs : {bits}, {plane}"""
        return f"%x = stablehlo.reshape %p : ({plane}) -> {plane}"


class _Fused(Target):
    def widest_chain(self, dtype: str) -> int:
        return 128 if dtype in TYPES else 0


FUSED = _Fused(**{one.name: getattr(TARGET, one.name) for one in fields(Target)} | {"attention": True})
"""A device with kernels for attention and its gradients."""
