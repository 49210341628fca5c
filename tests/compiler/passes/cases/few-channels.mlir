// RUN: few-channels
// lines come last
func.func @main(%arg0: tensor<2x5x6x2xf32>, %arg1: tensor<2x3x1x2xf32>) -> tensor<2x4x3x2xf32> {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[0, 0], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x5x6x2xf32>, tensor<2x3x1x2xf32>) -> tensor<2x4x3x2xf32>
  return %0 : tensor<2x4x3x2xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x5x6x2xf32>, %arg1: tensor<2x3x1x2xf32>) -> tensor<2x4x3x2xf32> {
//=    %0 = stablehlo.transpose %arg0, dims = [0, 3, 1, 2] : (tensor<2x5x6x2xf32>) -> tensor<2x2x5x6xf32>
//=    %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[0, 0], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x2x5x6xf32>, tensor<2x3x1x2xf32>) -> tensor<2x2x4x3xf32>
//=    %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<2x2x4x3xf32>) -> tensor<2x4x3x2xf32>
//=    return %2 : tensor<2x4x3x2xf32>
//=  }
//=}
// -----
// one feature, in steps of rows
func.func @main(%arg0: tensor<1x5x6x1xf64>, %arg1: tensor<1x1x2x2xf64>) -> tensor<1x2x5x1xf64> {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x6x1xf64>, tensor<1x1x2x2xf64>) -> tensor<1x2x5x1xf64>
  return %0 : tensor<1x2x5x1xf64>
}
//=module {
//=  func.func @main(%arg0: tensor<1x5x6x1xf64>, %arg1: tensor<1x1x2x2xf64>) -> tensor<1x2x5x1xf64> {
//=    %0 = stablehlo.transpose %arg0, dims = [0, 3, 1, 2] : (tensor<1x5x6x1xf64>) -> tensor<1x1x5x6xf64>
//=    %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x5x6xf64>, tensor<1x1x2x2xf64>) -> tensor<1x1x2x5xf64>
//=    %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<1x1x2x5xf64>) -> tensor<1x2x5x1xf64>
//=    return %2 : tensor<1x2x5x1xf64>
//=  }
//=}
// -----
// holes in lines, and a result of more features, stay
func.func @main(%arg0: tensor<1x5x6x2xf32>, %arg1: tensor<2x2x1x2xf32>, %arg2: tensor<2x2x1x4xf32>) -> (tensor<1x4x10x2xf32>, tensor<1x4x5x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {lhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x5x6x2xf32>, tensor<2x2x1x2xf32>) -> tensor<1x4x10x2xf32>
  %1 = stablehlo.convolution(%arg0, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x5x6x2xf32>, tensor<2x2x1x4xf32>) -> tensor<1x4x5x4xf32>
  return %0, %1 : tensor<1x4x10x2xf32>, tensor<1x4x5x4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x5x6x2xf32>, %arg1: tensor<2x2x1x2xf32>, %arg2: tensor<2x2x1x4xf32>) -> (tensor<1x4x10x2xf32>, tensor<1x4x5x4xf32>) {
//=    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {lhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x5x6x2xf32>, tensor<2x2x1x2xf32>) -> tensor<1x4x10x2xf32>
//=    %1 = stablehlo.convolution(%arg0, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x5x6x2xf32>, tensor<2x2x1x4xf32>) -> tensor<1x4x5x4xf32>
//=    return %0, %1 : tensor<1x4x10x2xf32>, tensor<1x4x5x4xf32>
//=  }
//=}
