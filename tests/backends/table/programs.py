"""A small program for the tests of plugins."""

import numpy as np

import trivium

ADD = trivium.parse("""func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}""")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
