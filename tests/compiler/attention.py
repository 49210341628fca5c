"""Attention as frameworks write it, for tests of every stage."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

import trivium
from trivium.ir.func import Module

MINUS = "dense<0xFF800000>"


@dataclass(frozen=True)
class Case:
    """Queries of shape batch x heads x queries x depth; `groups` of heads share keys and values. `safe`: rows without
    any score have weights of zero. `values_first`: the values are the left factor of the last product. `rows`: the
    greatest scores and the sums of weights are results, too. `merged`: products have one batch, of all heads."""

    batch: int = 1
    heads: int = 2
    queries: int = 40
    keys: int = 70
    depth: int = 20
    features: int = 36
    mask: str = ""
    groups: int = 1
    safe: bool = False
    values_first: bool = False
    rows: bool = False
    merged: bool = False

    def module(self) -> Module:
        return trivium.parse(self.text())

    def narrow(self, dtype: str, result: str = "f32") -> Module:
        """Queries, keys and values are of a narrow type, and converted; and the result, to its own type."""
        text, out = self.text(), f"tensor<{self.batch}x{self.heads}x{self.queries}x{self.features}xf32>"
        for name in "qkv":
            (kind,) = re.findall(rf"%{name}: (tensor<\S*?xf32>)", text)
            held = kind.replace("f32", dtype)
            first, brace, rest = text.replace(f"%{name}: {kind}", f"%{name}n: {held}").partition(" {\n")
            text = f"{first}{brace}%{name} = stablehlo.convert %{name}n : ({held}) -> {kind}\n{rest}"
        if result == "f32":
            return trivium.parse(text)
        kept = out.replace("f32", result)
        last = f"%on = stablehlo.convert %o : ({out}) -> {kept}\nreturn %on : {kept}"
        return trivium.parse(text.replace(f"-> {out} {{", f"-> {kept} {{").replace(f"return %o : {out}", last))

    def arguments(self) -> list[np.ndarray]:
        """Queries, keys and values; and the mask, if it is an argument."""
        generator = np.random.default_rng(0)
        shared = self.heads // self.groups
        shapes = [
            (self.heads, self.queries, self.depth),
            (shared, self.keys, self.depth),
            (shared, self.keys, self.features),
        ]
        found: list[np.ndarray] = [
            generator.standard_normal((self.batch, *shape)).astype(np.float32) for shape in shapes
        ]
        # Later keys have greater scores, so that sums are scaled.
        found[1] *= np.linspace(0.1, 3, self.keys, dtype=np.float32)[:, None]
        plane = (self.batch, 1, self.queries, self.keys)
        if self.mask == "added":
            found.append(generator.standard_normal(plane).astype(np.float32))
        if self.mask == "bool":
            mask = generator.random(plane) < 0.7
            mask[:, :, 3] = False
            mask[:, :, 5, : self.keys - 2] = False
            found.append(mask)
        return found

    def expected(self, *given: np.ndarray) -> np.ndarray:
        """Attention in f64."""
        q, k, v = (a.astype(np.float64) for a in given[:3])
        k, v = (np.repeat(a, self.groups, axis=1) for a in (k, v))
        scores = 0.25 * q @ k.swapaxes(2, 3)
        if self.mask == "causal":
            scores = np.where(np.arange(self.queries)[:, None] >= np.arange(self.keys), scores, -np.inf)
        if self.mask == "added":
            scores = scores + given[3]
        if self.mask == "bool":
            scores = np.where(given[3], scores, -np.inf)
        greatest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isneginf(greatest), 0 if self.safe else np.nan, greatest))
        total = weights.sum(-1, keepdims=True)
        return weights / np.where(total == 0, 1, total) @ v

    def text(self) -> str:
        s = f"{self.batch}x{self.heads}x{self.queries}"
        shared = f"{self.batch}x{self.heads // self.groups}x{self.keys}"
        every = f"{self.batch}x{self.heads}x{self.keys}"
        q, k, v = (
            f"tensor<{s}x{self.depth}xf32>",
            f"tensor<{every}x{self.depth}xf32>",
            f"tensor<{every}x{self.features}xf32>",
        )
        plane, row = f"tensor<{s}x{self.keys}xf32>", f"tensor<{s}xf32>"
        narrow = f"tensor<{self.batch}x1x{self.queries}x{self.keys}x{'f32' if self.mask == 'added' else 'i1'}>"
        extra = f", %mask: {narrow}" if self.mask in ("added", "bool") else ""
        out = f"tensor<{s}x{self.features}xf32>"
        last = f"""%o = stablehlo.dot_general %w, %vv, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
            : ({plane}, {v}) -> {out}"""
        numbers = "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]"
        first = f"%p = stablehlo.dot_general %scaled, %kk, {numbers} : ({q}, {k}) -> {plane}"
        if self.merged:
            first, last = self._merged(q, k, v, plane, out)
        if self.values_first:
            turned = f"tensor<{self.batch}x{self.heads}x{self.features}x{self.queries}xf32>"
            last = f"""%t = stablehlo.dot_general %vv, %w, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3]
                : ({v}, {plane}) -> {turned}
              %o = stablehlo.transpose %t, dims = [0, 1, 3, 2] : ({turned}) -> {out}"""
        results, returned = (out, f"return %o : {out}")
        if self.rows:
            results, returned = f"({out}, {row}, {row})", f"return %o, %m, %s : {out}, {row}, {row}"
        return f"""func.func @main(
              %q: {q}, %k: tensor<{shared}x{self.depth}xf32>, %v: tensor<{shared}x{self.features}xf32>{extra}
          ) -> {results} {{
          {self._repeated("%k", "%kk", self.depth)}
          {self._repeated("%v", "%vv", self.features)}
          %c = stablehlo.constant dense<0.25> : {q}
          %scaled = stablehlo.multiply %q, %c : {q}
          {first}
          %inf = stablehlo.constant {MINUS} : tensor<f32>
          %infs = stablehlo.constant {MINUS} : {plane}
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %zeros = stablehlo.constant dense<0.0> : {row}
          {self._masked(plane, narrow)}
          %m = stablehlo.reduce(%x init: %inf) applies stablehlo.maximum across dimensions = [3]
            : ({plane}, tensor<f32>) -> {row}
          {self._safe(row, "%m", "%shift", MINUS, "0.0")}
          %b = stablehlo.broadcast_in_dim %shift, dims = [0, 1, 2] : ({row}) -> {plane}
          %d = stablehlo.subtract %x, %b : {plane}
          %e = stablehlo.exponential %d : {plane}
          %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3]
            : ({plane}, tensor<f32>) -> {row}
          {self._safe(row, "%s", "%total", "dense<0.0>", "1.0")}
          %r = stablehlo.broadcast_in_dim %total, dims = [0, 1, 2] : ({row}) -> {plane}
          %w = stablehlo.divide %e, %r : {plane}
          {last}
          {returned}
        }}"""

    def _repeated(self, name: str, new: str, width: int) -> str:
        shared = self.heads // self.groups
        whole = f"tensor<{self.batch}x{self.heads}x{self.keys}x{width}xf32>"
        kind = f"tensor<{self.batch}x{shared}x{self.keys}x{width}xf32>"
        more = f"tensor<{self.batch}x{shared}x{self.groups}x{self.keys}x{width}xf32>"
        return f"""{new}_more = stablehlo.broadcast_in_dim {name}, dims = [0, 1, 3, 4] : ({kind}) -> {more}
          {new} = stablehlo.reshape {new}_more : ({more}) -> {whole}"""

    def _merged(self, q: str, k: str, v: str, plane: str, out: str) -> tuple[str, str]:
        """The products as PyTorch writes them, the first of which has the keys transposed."""
        pair, one = f"<{self.batch}x{self.heads}x", f"<{self.batch * self.heads}x"
        across = f"tensor{pair}{self.depth}x{self.keys}xf32>"
        mq, mk, mv, mp, mo = (kind.replace(pair, one) for kind in (q, across, v, plane, out))
        first = f"""%across = stablehlo.transpose %kk, dims = [0, 1, 3, 2] : ({k}) -> {across}
          %mq = stablehlo.reshape %scaled : ({q}) -> {mq}
          %mk = stablehlo.reshape %across : ({across}) -> {mk}
          %mp = stablehlo.dot_general %mq, %mk, batching_dims = [0] x [0], contracting_dims = [2] x [1]
            : ({mq}, {mk}) -> {mp}
          %p = stablehlo.reshape %mp : ({mp}) -> {plane}"""
        last = f"""%mw = stablehlo.reshape %w : ({plane}) -> {mp}
          %mv = stablehlo.reshape %vv : ({v}) -> {mv}
          %mo = stablehlo.dot_general %mw, %mv, batching_dims = [0] x [0], contracting_dims = [2] x [1]
            : ({mp}, {mv}) -> {mo}
          %o = stablehlo.reshape %mo : ({mo}) -> {out}"""
        return first, last

    def _masked(self, plane: str, narrow: str) -> str:
        if self.mask == "added":
            return f"""%more = stablehlo.broadcast_in_dim %mask, dims = [0, 1, 2, 3] : ({narrow}) -> {plane}
              %x = stablehlo.add %p, %more : {plane}"""
        bits = plane.replace("f32", "i1")
        if self.mask == "bool":
            return f"""%more = stablehlo.broadcast_in_dim %mask, dims = [0, 1, 2, 3] : ({narrow}) -> {bits}
              %x = stablehlo.select %more, %p, %infs : {bits}, {plane}"""
        if self.mask == "causal":
            numbers = plane.replace("f32", "i32")
            return f"""%i = stablehlo.iota dim = 2 : {numbers}
              %j = stablehlo.iota dim = 3 : {numbers}
              %more = stablehlo.compare GE, %i, %j : ({numbers}, {numbers}) -> {bits}
              %x = stablehlo.select %more, %p, %infs : {bits}, {plane}"""
        return f"""%one = stablehlo.constant dense<1.0> : {plane}
          %x = stablehlo.multiply %p, %one : {plane}"""

    def _safe(self, row: str, name: str, new: str, special: str, number: str) -> str:
        if not self.safe:
            return f"{new} = stablehlo.reshape {name} : ({row}) -> {row}"
        bits = row.replace("f32", "i1")
        return f"""{new}_special = stablehlo.constant {special} : {row}
          {new}_number = stablehlo.constant dense<{number}> : {row}
          {new}_is = stablehlo.compare EQ, {name}, {new}_special : ({row}, {row}) -> {bits}
          {new} = stablehlo.select {new}_is, {new}_number, {name} : {bits}, {row}"""


def changed(text: str, *changes: tuple[str, str]) -> Module:
    """Returns the module of a text in which every one of the first texts is replaced by the second one."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return trivium.parse(text)
