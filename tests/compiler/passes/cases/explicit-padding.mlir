// RUN: explicit-padding
// the padding of a convolution with few input features and many positions is an op
func.func @main(%x: tensor<2x32x20x1xi32>, %k: tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[2, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x32x20x1xi32>, tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32>
  return %0 : tensor<2x17x20x3xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x32x20x1xi32>, %k: tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32> {
//=    %c = stablehlo.constant dense<0> : tensor<i32>
//=    %0 = stablehlo.pad %x, %c, low = [0, 2, 0, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x32x20x1xi32>, tensor<i32>) -> tensor<2x35x21x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x35x21x1xi32>, tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32>
//=    return %1 : tensor<2x17x20x3xi32>
//=  }
//=}
// -----
// a transpose comes after the pad
func.func @main(%x: tensor<2x1x32x20xi32>, %k: tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x32x20xi32>) -> tensor<2x32x20x1xi32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[2, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x32x20x1xi32>, tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32>
  return %1 : tensor<2x17x20x3xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x32x20xi32>, %k: tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32> {
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x32x20xi32>) -> tensor<2x32x20x1xi32>
//=    %c = stablehlo.constant dense<0> : tensor<i32>
//=    %1 = stablehlo.pad %x, %c, low = [0, 0, 2, 0], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<2x1x32x20xi32>, tensor<i32>) -> tensor<2x1x35x21xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<2x1x35x21xi32>) -> tensor<2x35x21x1xi32>
//=    %3 = stablehlo.convolution(%2, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x35x21x1xi32>, tensor<2x2x1x3xi32>) -> tensor<2x17x20x3xi32>
//=    return %3 : tensor<2x17x20x3xi32>
//=  }
//=}
// -----
// few positions, or many features, keep it
func.func @main(%x: tensor<1x8x8x1xi32>, %k: tensor<2x2x1x3xi32>, %y: tensor<1x24x24x5xi32>, %l: tensor<2x2x5x1xi32>) -> (tensor<1x8x8x3xi32>, tensor<1x24x24x1xi32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x1xi32>, tensor<2x2x1x3xi32>) -> tensor<1x8x8x3xi32>
  %1 = stablehlo.convolution(%y, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x24x24x5xi32>, tensor<2x2x5x1xi32>) -> tensor<1x24x24x1xi32>
  return %0, %1 : tensor<1x8x8x3xi32>, tensor<1x24x24x1xi32>
}
//=module {
//=  func.func @main(%x: tensor<1x8x8x1xi32>, %k: tensor<2x2x1x3xi32>, %y: tensor<1x24x24x5xi32>, %l: tensor<2x2x5x1xi32>) -> (tensor<1x8x8x3xi32>, tensor<1x24x24x1xi32>) {
//=    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x1xi32>, tensor<2x2x1x3xi32>) -> tensor<1x8x8x3xi32>
//=    %1 = stablehlo.convolution(%y, %l) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x24x24x5xi32>, tensor<2x2x5x1xi32>) -> tensor<1x24x24x1xi32>
//=    return %0, %1 : tensor<1x8x8x3xi32>, tensor<1x24x24x1xi32>
//=  }
//=}
