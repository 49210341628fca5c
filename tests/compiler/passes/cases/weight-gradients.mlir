// RUN: weight-gradients
// the image is padded and gets its features last, and so does the result
func.func @main(%x: tensor<1x6x16x32xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x16x32xf32>, tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32>
  return %0 : tensor<4x6x3x3xf32>
}
//=module {
//=  func.func @main(%x: tensor<1x6x16x32xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32> {
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x6x16x32xf32>) -> tensor<1x16x32x6xf32>
//=    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
//=    %1 = stablehlo.pad %0, %cst, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x16x32x6xf32>, tensor<f32>) -> tensor<1x18x34x6xf32>
//=    %2 = stablehlo.convolution(%1, %g) dim_numbers = [f, 0, 1, b]x[i, o, 0, 1]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x18x34x6xf32>, tensor<1x4x16x32xf32>) -> tensor<3x3x6x4xf32>
//=    %3 = stablehlo.transpose %2, dims = [3, 2, 0, 1] : (tensor<3x3x6x4xf32>) -> tensor<4x6x3x3xf32>
//=    return %3 : tensor<4x6x3x3xf32>
//=  }
//=}
// -----
// a pad comes after the transpose
func.func @main(%x: tensor<1x6x32x64xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32> {
  %c = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.pad %x, %c, low = [0, 0, 1, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x6x32x64xf32>, tensor<f32>) -> tensor<1x6x33x65xf32>
  %1 = stablehlo.convolution(%0, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x33x65xf32>, tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32>
  return %1 : tensor<4x6x3x3xf32>
}
//=module {
//=  func.func @main(%x: tensor<1x6x32x64xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x3x3xf32> {
//=    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
//=    %0 = stablehlo.pad %x, %cst, low = [0, 0, 1, 1], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x6x32x64xf32>, tensor<f32>) -> tensor<1x6x33x65xf32>
//=    %1 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x6x32x64xf32>) -> tensor<1x32x64x6xf32>
//=    %2 = stablehlo.pad %1, %cst, low = [0, 1, 1, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x32x64x6xf32>, tensor<f32>) -> tensor<1x33x65x6xf32>
//=    %3 = stablehlo.convolution(%2, %g) dim_numbers = [f, 0, 1, b]x[i, o, 0, 1]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x33x65x6xf32>, tensor<1x4x16x32xf32>) -> tensor<3x3x6x4xf32>
//=    %4 = stablehlo.transpose %3, dims = [3, 2, 0, 1] : (tensor<3x3x6x4xf32>) -> tensor<4x6x3x3xf32>
//=    return %4 : tensor<4x6x3x3xf32>
//=  }
//=}
// -----
// features that do not fill vectors, short sums, and images with their features last stay
func.func @main(%x: tensor<1x6x16x32xf32>, %g: tensor<1x3x16x32xf32>, %y: tensor<1x6x8x8xf32>, %h: tensor<1x4x8x8xf32>, %z: tensor<1x16x32x6xf32>, %k: tensor<1x16x32x4xf32>) -> (tensor<3x6x3x3xf32>, tensor<4x6x3x3xf32>, tensor<3x3x6x4xf32>) {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x16x32xf32>, tensor<1x3x16x32xf32>) -> tensor<3x6x3x3xf32>
  %1 = stablehlo.convolution(%y, %h) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x6x3x3xf32>
  %2 = stablehlo.convolution(%z, %k) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x32x6xf32>, tensor<1x16x32x4xf32>) -> tensor<3x3x6x4xf32>
  return %0, %1, %2 : tensor<3x6x3x3xf32>, tensor<4x6x3x3xf32>, tensor<3x3x6x4xf32>
}
//=module {
//=  func.func @main(%x: tensor<1x6x16x32xf32>, %g: tensor<1x3x16x32xf32>, %y: tensor<1x6x8x8xf32>, %h: tensor<1x4x8x8xf32>, %z: tensor<1x16x32x6xf32>, %k: tensor<1x16x32x4xf32>) -> (tensor<3x6x3x3xf32>, tensor<4x6x3x3xf32>, tensor<3x3x6x4xf32>) {
//=    %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x16x32xf32>, tensor<1x3x16x32xf32>) -> tensor<3x6x3x3xf32>
//=    %1 = stablehlo.convolution(%y, %h) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4x6x3x3xf32>
//=    %2 = stablehlo.convolution(%z, %k) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x32x6xf32>, tensor<1x16x32x4xf32>) -> tensor<3x3x6x4xf32>
//=    return %0, %1, %2 : tensor<3x6x3x3xf32>, tensor<4x6x3x3xf32>, tensor<3x3x6x4xf32>
//=  }
//=}
// -----
// the image of a transposed convolution, which is dilated, stays
func.func @main(%x: tensor<1x6x9x17xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x4x4xf32> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x9x17xf32>, tensor<1x4x16x32xf32>) -> tensor<4x6x4x4xf32>
  return %0 : tensor<4x6x4x4xf32>
}
//=module {
//=  func.func @main(%x: tensor<1x6x9x17xf32>, %g: tensor<1x4x16x32xf32>) -> tensor<4x6x4x4xf32> {
//=    %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x9x17xf32>, tensor<1x4x16x32xf32>) -> tensor<4x6x4x4xf32>
//=    return %0 : tensor<4x6x4x4xf32>
//=  }
//=}
