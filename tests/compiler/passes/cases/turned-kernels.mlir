// RUN: turned-kernels
// a kernel that is an argument gets its output features last
func.func @main(%x: tensor<2x6x5x3xi32>, %k: tensor<4x3x2x2xi32>) -> tensor<2x5x4x4xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x5x3xi32>, tensor<4x3x2x2xi32>) -> tensor<2x5x4x4xi32>
  return %0 : tensor<2x5x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x6x5x3xi32>, %k: tensor<4x3x2x2xi32>) -> tensor<2x5x4x4xi32> {
//=    %0 = stablehlo.transpose %k, dims = [2, 3, 1, 0] : (tensor<4x3x2x2xi32>) -> tensor<2x2x3x4xi32>
//=    %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x5x3xi32>, tensor<2x2x3x4xi32>) -> tensor<2x5x4x4xi32>
//=    return %1 : tensor<2x5x4x4xi32>
//=  }
//=}
// -----
// a constant is packed when it is loaded, a single tap is a product, images with features first stay; in groups, too
func.func @main(%x: tensor<1x4x4x2xi32>, %k: tensor<3x2x1x1xi32>, %y: tensor<1x2x4x4xi32>, %l: tensor<3x2x2x2xi32>, %m: tensor<4x1x2x2xi32>) -> (tensor<1x3x3x3xi32>, tensor<1x4x4x3xi32>, tensor<1x3x3x3xi32>, tensor<1x3x3x4xi32>) {
  %c = stablehlo.constant dense<2> : tensor<3x2x2x2xi32>
  %0 = stablehlo.convolution(%x, %c) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi32>, tensor<3x2x2x2xi32>) -> tensor<1x3x3x3xi32>
  %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi32>, tensor<3x2x1x1xi32>) -> tensor<1x4x4x3xi32>
  %2 = stablehlo.convolution(%y, %l) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x4xi32>, tensor<3x2x2x2xi32>) -> tensor<1x3x3x3xi32>
  %3 = stablehlo.convolution(%x, %m) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x4x4x2xi32>, tensor<4x1x2x2xi32>) -> tensor<1x3x3x4xi32>
  return %0, %1, %2, %3 : tensor<1x3x3x3xi32>, tensor<1x4x4x3xi32>, tensor<1x3x3x3xi32>, tensor<1x3x3x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<1x4x4x2xi32>, %k: tensor<3x2x1x1xi32>, %y: tensor<1x2x4x4xi32>, %l: tensor<3x2x2x2xi32>, %m: tensor<4x1x2x2xi32>) -> (tensor<1x3x3x3xi32>, tensor<1x4x4x3xi32>, tensor<1x3x3x3xi32>, tensor<1x3x3x4xi32>) {
//=    %c = stablehlo.constant dense<2> : tensor<3x2x2x2xi32>
//=    %0 = stablehlo.convolution(%x, %c) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi32>, tensor<3x2x2x2xi32>) -> tensor<1x3x3x3xi32>
//=    %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi32>, tensor<3x2x1x1xi32>) -> tensor<1x4x4x3xi32>
//=    %2 = stablehlo.convolution(%y, %l) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x4xi32>, tensor<3x2x2x2xi32>) -> tensor<1x3x3x3xi32>
//=    %3 = stablehlo.convolution(%x, %m) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x4x4x2xi32>, tensor<4x1x2x2xi32>) -> tensor<1x3x3x4xi32>
//=    return %0, %1, %2, %3 : tensor<1x3x3x3xi32>, tensor<1x4x4x3xi32>, tensor<1x3x3x3xi32>, tensor<1x3x3x4xi32>
//=  }
//=}
