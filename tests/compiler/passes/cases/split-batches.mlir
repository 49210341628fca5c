// RUN: split-batches
// both products around exponentials, of batches and heads, which are one dimension of each
func.func @main(%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x5x6xf32>, %v: tensor<2x3x6x7xf32>) -> tensor<2x3x4x7xf32> {
  %0 = stablehlo.reshape %q : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %1 = stablehlo.reshape %k : (tensor<2x3x5x6xf32>) -> tensor<6x5x6xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x5xf32>, tensor<6x5x6xf32>) -> tensor<6x4x6xf32>
  %3 = stablehlo.exponential %2 : tensor<6x4x6xf32>
  %4 = stablehlo.reshape %3 : (tensor<6x4x6xf32>) -> tensor<2x3x4x6xf32>
  %5 = stablehlo.negate %4 : tensor<2x3x4x6xf32>
  %6 = stablehlo.reshape %5 : (tensor<2x3x4x6xf32>) -> tensor<6x4x6xf32>
  %7 = stablehlo.reshape %v : (tensor<2x3x6x7xf32>) -> tensor<6x6x7xf32>
  %8 = stablehlo.dot_general %6, %7, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x6xf32>, tensor<6x6x7xf32>) -> tensor<6x4x7xf32>
  %9 = stablehlo.reshape %8 : (tensor<6x4x7xf32>) -> tensor<2x3x4x7xf32>
  return %9 : tensor<2x3x4x7xf32>
}
//=module {
//=  func.func @main(%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x5x6xf32>, %v: tensor<2x3x6x7xf32>) -> tensor<2x3x4x7xf32> {
//=    %0 = stablehlo.reshape %q : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
//=    %1 = stablehlo.reshape %k : (tensor<2x3x5x6xf32>) -> tensor<6x5x6xf32>
//=    %2 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
//=    %3 = stablehlo.reshape %2 : (tensor<2x3x4x6xf32>) -> tensor<6x4x6xf32>
//=    %4 = stablehlo.exponential %3 : tensor<6x4x6xf32>
//=    %5 = stablehlo.reshape %4 : (tensor<6x4x6xf32>) -> tensor<2x3x4x6xf32>
//=    %6 = stablehlo.negate %5 : tensor<2x3x4x6xf32>
//=    %7 = stablehlo.reshape %6 : (tensor<2x3x4x6xf32>) -> tensor<6x4x6xf32>
//=    %8 = stablehlo.reshape %v : (tensor<2x3x6x7xf32>) -> tensor<6x6x7xf32>
//=    %9 = stablehlo.dot_general %6, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x4x6xf32>, tensor<2x3x6x7xf32>) -> tensor<2x3x4x7xf32>
//=    %10 = stablehlo.reshape %9 : (tensor<2x3x4x7xf32>) -> tensor<6x4x7xf32>
//=    %11 = stablehlo.reshape %10 : (tensor<6x4x7xf32>) -> tensor<2x3x4x7xf32>
//=    return %11 : tensor<2x3x4x7xf32>
//=  }
//=}
// -----
// not of other products, nor of batches that are merged in different ways
func.func @main(%q: tensor<2x3x4x5xf32>, %k: tensor<3x2x5x6xf32>, %v: tensor<2x3x6x7xf32>) -> (tensor<6x4x6xf32>, tensor<6x4x7xf32>) {
  %0 = stablehlo.reshape %q : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %1 = stablehlo.reshape %k : (tensor<3x2x5x6xf32>) -> tensor<6x5x6xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x5xf32>, tensor<6x5x6xf32>) -> tensor<6x4x6xf32>
  %3 = stablehlo.negate %2 : tensor<6x4x6xf32>
  %4 = stablehlo.reshape %v : (tensor<2x3x6x7xf32>) -> tensor<6x6x7xf32>
  %5 = stablehlo.dot_general %3, %4, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x6xf32>, tensor<6x6x7xf32>) -> tensor<6x4x7xf32>
  return %2, %5 : tensor<6x4x6xf32>, tensor<6x4x7xf32>
}
//=module {
//=  func.func @main(%q: tensor<2x3x4x5xf32>, %k: tensor<3x2x5x6xf32>, %v: tensor<2x3x6x7xf32>) -> (tensor<6x4x6xf32>, tensor<6x4x7xf32>) {
//=    %0 = stablehlo.reshape %q : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
//=    %1 = stablehlo.reshape %k : (tensor<3x2x5x6xf32>) -> tensor<6x5x6xf32>
//=    %2 = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x5xf32>, tensor<6x5x6xf32>) -> tensor<6x4x6xf32>
//=    %3 = stablehlo.negate %2 : tensor<6x4x6xf32>
//=    %4 = stablehlo.reshape %v : (tensor<2x3x6x7xf32>) -> tensor<6x6x7xf32>
//=    %5 = stablehlo.dot_general %3, %4, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x4x6xf32>, tensor<6x6x7xf32>) -> tensor<6x4x7xf32>
//=    return %2, %5 : tensor<6x4x6xf32>, tensor<6x4x7xf32>
//=  }
//=}
