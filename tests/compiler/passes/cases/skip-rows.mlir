// RUN: skip-rows
// the transpose has only the rows that the convolution reads
func.func @main(%x: tensor<1x2x5x4xi32>) -> tensor<1x3x2x2xi32> {
  %k = stablehlo.constant dense<[[[[1]], [[2]]], [[[3]], [[-1]]]]> : tensor<2x2x1x1xi32>
  %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x5x4xi32>) -> tensor<1x5x4x2xi32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4x2xi32>, tensor<2x2x1x1xi32>) -> tensor<1x3x2x2xi32>
  return %1 : tensor<1x3x2x2xi32>
}
//=module {
//=  func.func @main(%x: tensor<1x2x5x4xi32>) -> tensor<1x3x2x2xi32> {
//=    %k = stablehlo.constant dense<[[[[1]], [[2]]], [[[3]], [[-1]]]]> : tensor<2x2x1x1xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x5x4xi32>) -> tensor<1x5x4x2xi32>
//=    %1 = stablehlo.slice %x [0:1, 0:2, 0:5:2, 0:4] : (tensor<1x2x5x4xi32>) -> tensor<1x2x3x4xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<1x2x3x4xi32>) -> tensor<1x3x4x2xi32>
//=    %3 = stablehlo.convolution(%2, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4x2xi32>, tensor<2x2x1x1xi32>) -> tensor<1x3x2x2xi32>
//=    return %3 : tensor<1x3x2x2xi32>
//=  }
//=}
// -----
// unless something else reads the others
func.func @main(%x: tensor<1x2x5x4xi32>) -> (tensor<1x2x4x2xi32>, tensor<1x2x5x4xi32>) {
  %k = stablehlo.constant dense<[[[[1]], [[2]]], [[[3]], [[-1]]]]> : tensor<2x2x1x1xi32>
  %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x5x4xi32>) -> tensor<1x5x4x2xi32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [3, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4x2xi32>, tensor<2x2x1x1xi32>) -> tensor<1x2x4x2xi32>
  %2 = stablehlo.negate %x : tensor<1x2x5x4xi32>
  return %1, %2 : tensor<1x2x4x2xi32>, tensor<1x2x5x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<1x2x5x4xi32>) -> (tensor<1x2x4x2xi32>, tensor<1x2x5x4xi32>) {
//=    %k = stablehlo.constant dense<[[[[1]], [[2]]], [[[3]], [[-1]]]]> : tensor<2x2x1x1xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x5x4xi32>) -> tensor<1x5x4x2xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [3, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4x2xi32>, tensor<2x2x1x1xi32>) -> tensor<1x2x4x2xi32>
//=    %2 = stablehlo.negate %x : tensor<1x2x5x4xi32>
//=    return %1, %2 : tensor<1x2x4x2xi32>, tensor<1x2x5x4xi32>
//=  }
//=}
