"""A small program with constant weights, for the tests of clients."""

import numpy as np

WEIGHTS = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
TEXT = f"""func.func @main(%x: tensor<5x8xf32> {{trivium.name = "x"}}) -> tensor<5x6xf32> {{
  %w = stablehlo.constant dense<"0x{WEIGHTS.tobytes().hex()}"> : tensor<8x6xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<5x8xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>
  %1 = stablehlo.tanh %0 : tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}}"""
X = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
