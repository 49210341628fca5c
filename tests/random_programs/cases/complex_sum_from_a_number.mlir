// The lanes of a reduction whose combiner is a block each started from the initial value.
module {
  func.func @main(%arg0: tensor<1x4x4x2xcomplex<f64>> {random.seed = 1 : i64}, %arg1: tensor<complex<f64>> {random.seed = 1 : i64}) -> tensor<4xcomplex<f64>> {
    %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<1x4x4x2xcomplex<f64>>, tensor<complex<f64>>) -> tensor<4xcomplex<f64>>
    return %0 : tensor<4xcomplex<f64>>
  }
}
