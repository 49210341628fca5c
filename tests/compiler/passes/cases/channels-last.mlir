// RUN: channels-last
// what follows a convolution is computed with features last, as far as the next one
func.func @main(%x: tensor<2x1x5x5xi32>, %bias: tensor<3xi32>) -> tensor<2x1x3x3xi32> {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %next = stablehlo.constant dense<[[[[1, 0], [2, 1]], [[0, 1], [1, 0]], [[3, -1], [1, 1]]]]> : tensor<1x3x2x2xi32>
  %zero = stablehlo.constant dense<0> : tensor<2x3x4x4xi32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<3xi32>) -> tensor<2x3x4x4xi32>
  %2 = stablehlo.add %0, %1 : tensor<2x3x4x4xi32>
  %3 = stablehlo.maximum %2, %zero : tensor<2x3x4x4xi32>
  %4 = stablehlo.convolution(%3, %next) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x4x4xi32>, tensor<1x3x2x2xi32>) -> tensor<2x1x3x3xi32>
  return %4 : tensor<2x1x3x3xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>, %bias: tensor<3xi32>) -> tensor<2x1x3x3xi32> {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %next = stablehlo.constant dense<[[[[1, 0], [2, 1]], [[0, 1], [1, 0]], [[3, -1], [1, 1]]]]> : tensor<1x3x2x2xi32>
//=    %zero = stablehlo.constant dense<0> : tensor<2x3x4x4xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<3xi32>) -> tensor<2x3x4x4xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 2, 3, 1] : (tensor<2x3x4x4xi32>) -> tensor<2x4x4x3xi32>
//=    %5 = stablehlo.add %1, %4 : tensor<2x4x4x3xi32>
//=    %6 = stablehlo.transpose %5, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %7 = stablehlo.transpose %zero, dims = [0, 2, 3, 1] : (tensor<2x3x4x4xi32>) -> tensor<2x4x4x3xi32>
//=    %8 = stablehlo.maximum %5, %7 : tensor<2x4x4x3xi32>
//=    %9 = stablehlo.transpose %8, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %10 = stablehlo.convolution(%8, %next) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x4x3xi32>, tensor<1x3x2x2xi32>) -> tensor<2x3x3x1xi32>
//=    %11 = stablehlo.transpose %10, dims = [0, 3, 1, 2] : (tensor<2x3x3x1xi32>) -> tensor<2x1x3x3xi32>
//=    return %11 : tensor<2x1x3x3xi32>
//=  }
//=}
// -----
// one value is enough for an op of two, where the other one is computed by a convolution as well
func.func @main(%x: tensor<2x1x5x5xi32>, %y: tensor<2x3x4x4xi32>) -> (tensor<2x3x4x4xi32>, tensor<2x3x4x4xi32>) {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = stablehlo.multiply %0, %0 : tensor<2x3x4x4xi32>
  %2 = stablehlo.add %0, %1 : tensor<2x3x4x4xi32>
  %3 = stablehlo.add %2, %y : tensor<2x3x4x4xi32>
  return %2, %3 : tensor<2x3x4x4xi32>, tensor<2x3x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>, %y: tensor<2x3x4x4xi32>) -> (tensor<2x3x4x4xi32>, tensor<2x3x4x4xi32>) {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = stablehlo.multiply %1, %1 : tensor<2x4x4x3xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %5 = stablehlo.add %1, %3 : tensor<2x4x4x3xi32>
//=    %6 = stablehlo.transpose %5, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %7 = stablehlo.add %6, %y : tensor<2x3x4x4xi32>
//=    return %6, %7 : tensor<2x3x4x4xi32>, tensor<2x3x4x4xi32>
//=  }
//=}
// -----
// pools, pads, slices, reversals and concatenations
func.func @main(%x: tensor<2x1x5x5xi32>) -> tensor<2x4x3x2xi32> {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 1, 1, 2, 3>, padding = dense<[[0, 0], [0, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %m = stablehlo.maximum %a, %b : tensor<i32>
    stablehlo.return %m : tensor<i32>
  }) : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<2x3x4x2xi32>
  %2 = stablehlo.pad %1, %zero, low = [0, 0, 1, 0], high = [0, 1, 0, 2], interior = [0, 0, 0, 1] : (tensor<2x3x4x2xi32>, tensor<i32>) -> tensor<2x4x5x5xi32>
  %3 = stablehlo.slice %2 [0:2, 1:3, 0:5:2, 1:5:2] : (tensor<2x4x5x5xi32>) -> tensor<2x2x3x2xi32>
  %4 = stablehlo.reverse %3, dims = [1, 3] : tensor<2x2x3x2xi32>
  %5 = stablehlo.concatenate %3, %4, dim = 1 : (tensor<2x2x3x2xi32>, tensor<2x2x3x2xi32>) -> tensor<2x4x3x2xi32>
  return %5 : tensor<2x4x3x2xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>) -> tensor<2x4x3x2xi32> {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = "stablehlo.reduce_window"(%1, %zero) <{padding = dense<[[0, 0], [0, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 3, 1>}> ({
//=    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
//=      %m = stablehlo.maximum %a, %b : tensor<i32>
//=      stablehlo.return %m : tensor<i32>
//=    }) : (tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<2x4x2x3xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x4x2x3xi32>) -> tensor<2x3x4x2xi32>
//=    %5 = stablehlo.pad %3, %zero, low = [0, 1, 0, 0], high = [0, 0, 2, 1], interior = [0, 0, 1, 0] : (tensor<2x4x2x3xi32>, tensor<i32>) -> tensor<2x5x5x4xi32>
//=    %6 = stablehlo.transpose %5, dims = [0, 3, 1, 2] : (tensor<2x5x5x4xi32>) -> tensor<2x4x5x5xi32>
//=    %7 = stablehlo.slice %5 [0:2, 0:5:2, 1:5:2, 1:3] : (tensor<2x5x5x4xi32>) -> tensor<2x3x2x2xi32>
//=    %8 = stablehlo.transpose %7, dims = [0, 3, 1, 2] : (tensor<2x3x2x2xi32>) -> tensor<2x2x3x2xi32>
//=    %9 = stablehlo.reverse %7, dims = [3, 2] : tensor<2x3x2x2xi32>
//=    %10 = stablehlo.transpose %9, dims = [0, 3, 1, 2] : (tensor<2x3x2x2xi32>) -> tensor<2x2x3x2xi32>
//=    %11 = stablehlo.concatenate %7, %9, dim = 3 : (tensor<2x3x2x2xi32>, tensor<2x3x2x2xi32>) -> tensor<2x3x2x4xi32>
//=    %12 = stablehlo.transpose %11, dims = [0, 3, 1, 2] : (tensor<2x3x2x4xi32>) -> tensor<2x4x3x2xi32>
//=    return %12 : tensor<2x4x3x2xi32>
//=  }
//=}
// -----
// reductions of space keep the features last; of batch and space too; of batch alone, features come first
func.func @main(%x: tensor<2x1x5x5xi32>) -> (tensor<2x3xi32>, tensor<2x3x4xi32>, tensor<3xi32>, tensor<2x4x4xi32>, tensor<3x4x4xi32>) {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<2x3xi32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<2x3x4xi32>
  %3 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 2, 3] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<3xi32>
  %4 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<2x4x4xi32>
  %5 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<3x4x4xi32>
  return %1, %2, %3, %4, %5 : tensor<2x3xi32>, tensor<2x3x4xi32>, tensor<3xi32>, tensor<2x4x4xi32>, tensor<3x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>) -> (tensor<2x3xi32>, tensor<2x3x4xi32>, tensor<3xi32>, tensor<2x4x4xi32>, tensor<3x4x4xi32>) {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<2x3xi32>
//=    %4 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<2x4x3xi32>
//=    %5 = stablehlo.transpose %4, dims = [0, 2, 1] : (tensor<2x4x3xi32>) -> tensor<2x3x4xi32>
//=    %6 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<3xi32>
//=    %7 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<2x4x4xi32>
//=    %8 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<3x4x4xi32>
//=    return %3, %5, %6, %7, %8 : tensor<2x3xi32>, tensor<2x3x4xi32>, tensor<3xi32>, tensor<2x4x4xi32>, tensor<3x4x4xi32>
//=  }
//=}
// -----
// choices by scalars, and comparisons, whose results have another type
func.func @main(%x: tensor<2x1x5x5xi32>, %p: tensor<i1>, %low: tensor<i32>) -> tensor<2x3x4x4xi32> {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = stablehlo.clamp %low, %0, %low : (tensor<i32>, tensor<2x3x4x4xi32>, tensor<i32>) -> tensor<2x3x4x4xi32>
  %2 = stablehlo.select %p, %0, %1 : tensor<i1>, tensor<2x3x4x4xi32>
  %3 = stablehlo.compare LT, %0, %2, SIGNED : (tensor<2x3x4x4xi32>, tensor<2x3x4x4xi32>) -> tensor<2x3x4x4xi1>
  %4 = stablehlo.select %3, %0, %2 : tensor<2x3x4x4xi1>, tensor<2x3x4x4xi32>
  return %4 : tensor<2x3x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>, %p: tensor<i1>, %low: tensor<i32>) -> tensor<2x3x4x4xi32> {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = stablehlo.clamp %low, %1, %low : (tensor<i32>, tensor<2x4x4x3xi32>, tensor<i32>) -> tensor<2x4x4x3xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %5 = stablehlo.select %p, %1, %3 : tensor<i1>, tensor<2x4x4x3xi32>
//=    %6 = stablehlo.transpose %5, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %7 = stablehlo.compare LT, %1, %5, SIGNED : (tensor<2x4x4x3xi32>, tensor<2x4x4x3xi32>) -> tensor<2x4x4x3xi1>
//=    %8 = stablehlo.transpose %7, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi1>) -> tensor<2x3x4x4xi1>
//=    %9 = stablehlo.select %7, %1, %5 : tensor<2x4x4x3xi1>, tensor<2x4x4x3xi32>
//=    %10 = stablehlo.transpose %9, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    return %10 : tensor<2x3x4x4xi32>
//=  }
//=}
// -----
// ops that transposes do not sink through read the transpose
func.func @main(%x: tensor<2x1x5x5xi32>) -> tensor<2x48xi32> {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  %1 = stablehlo.negate %0 : tensor<2x3x4x4xi32>
  %2 = stablehlo.reshape %1 : (tensor<2x3x4x4xi32>) -> tensor<2x48xi32>
  return %2 : tensor<2x48xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>) -> tensor<2x48xi32> {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]]], [[[2, 0], [1, 1]]], [[[-1, 1], [0, 2]]]]> : tensor<3x1x2x2xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x1x5x5xi32>) -> tensor<2x5x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x1xi32>, tensor<3x1x2x2xi32>) -> tensor<2x4x4x3xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %3 = stablehlo.negate %1 : tensor<2x4x4x3xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=    %5 = stablehlo.reshape %4 : (tensor<2x3x4x4xi32>) -> tensor<2x48xi32>
//=    return %5 : tensor<2x48xi32>
//=  }
//=}
// -----
// a kernel that is known at run time only stays where the result has few positions
func.func @main(%x: tensor<2x1x5x5xi32>, %k: tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
  return %0 : tensor<2x3x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5x5xi32>, %k: tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32> {
//=    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5x5xi32>, tensor<3x1x2x2xi32>) -> tensor<2x3x4x4xi32>
//=    return %0 : tensor<2x3x4x4xi32>
//=  }
//=}
// -----
// and is worth another packing where it has many; features in groups
func.func @main(%x: tensor<2x4x17x18xi32>, %k: tensor<4x2x2x2xi32>) -> tensor<2x4x16x17xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x17x18xi32>, tensor<4x2x2x2xi32>) -> tensor<2x4x16x17xi32>
  %1 = stablehlo.negate %0 : tensor<2x4x16x17xi32>
  return %1 : tensor<2x4x16x17xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x4x17x18xi32>, %k: tensor<4x2x2x2xi32>) -> tensor<2x4x16x17xi32> {
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<2x4x17x18xi32>) -> tensor<2x17x18x4xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x17x18x4xi32>, tensor<4x2x2x2xi32>) -> tensor<2x16x17x4xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x16x17x4xi32>) -> tensor<2x4x16x17xi32>
//=    %3 = stablehlo.negate %1 : tensor<2x16x17x4xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x16x17x4xi32>) -> tensor<2x4x16x17xi32>
//=    return %4 : tensor<2x4x16x17xi32>
//=  }
//=}
// -----
// windows over single channels slide along the lines of an argument
func.func @main(%x: tensor<2x4x17x18xi32>, %k: tensor<4x1x2x2xi32>) -> tensor<2x4x16x17xi32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x17x18xi32>, tensor<4x1x2x2xi32>) -> tensor<2x4x16x17xi32>
  return %0 : tensor<2x4x16x17xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x4x17x18xi32>, %k: tensor<4x1x2x2xi32>) -> tensor<2x4x16x17xi32> {
//=    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x17x18xi32>, tensor<4x1x2x2xi32>) -> tensor<2x4x16x17xi32>
//=    return %0 : tensor<2x4x16x17xi32>
//=  }
//=}
// -----
// one dimension of space, with dilation, strides and reversal
func.func @main(%x: tensor<2x1x5xi32>) -> tensor<2x2x4xi32> {
  %k = stablehlo.constant dense<[[[1, 2]], [[3, -1]]]> : tensor<2x1x2xi32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[1, 0]], lhs_dilate = [2], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x5xi32>, tensor<2x1x2xi32>) -> tensor<2x2x5xi32>
  %1 = stablehlo.slice %0 [0:2, 0:2, 1:5] : (tensor<2x2x5xi32>) -> tensor<2x2x4xi32>
  return %1 : tensor<2x2x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x1x5xi32>) -> tensor<2x2x4xi32> {
//=    %k = stablehlo.constant dense<[[[1, 2]], [[3, -1]]]> : tensor<2x1x2xi32>
//=    %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x1x5xi32>) -> tensor<2x5x1xi32>
//=    %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[o, i, 0]->[b, 0, f], window = {stride = [2], pad = [[1, 0]], lhs_dilate = [2], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x1xi32>, tensor<2x1x2xi32>) -> tensor<2x5x2xi32>
//=    %2 = stablehlo.transpose %1, dims = [0, 2, 1] : (tensor<2x5x2xi32>) -> tensor<2x2x5xi32>
//=    %3 = stablehlo.slice %1 [0:2, 1:5, 0:2] : (tensor<2x5x2xi32>) -> tensor<2x4x2xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 2, 1] : (tensor<2x4x2xi32>) -> tensor<2x2x4xi32>
//=    return %4 : tensor<2x2x4xi32>
//=  }
//=}
// -----
// inside of loops
func.func @main(%x: tensor<2x3x4x4xi32>, %n: tensor<i32>) -> tensor<2x3x4x4xi32> {
  %k = stablehlo.constant dense<[[[[1]], [[0]], [[1]]], [[[0]], [[1]], [[0]]], [[[1]], [[0]], [[0]]]]> : tensor<3x3x1x1xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2x3x4x4xi32>
  cond {
    %c = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %0 = stablehlo.convolution(%v, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x4x4xi32>, tensor<3x3x1x1xi32>) -> tensor<2x3x4x4xi32>
    %1 = stablehlo.negate %0 : tensor<2x3x4x4xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %1 : tensor<i32>, tensor<2x3x4x4xi32>
  }
  return %r#1 : tensor<2x3x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x3x4x4xi32>, %n: tensor<i32>) -> tensor<2x3x4x4xi32> {
//=    %k = stablehlo.constant dense<[[[[1]], [[0]], [[1]]], [[[0]], [[1]], [[0]]], [[[1]], [[0]], [[0]]]]> : tensor<3x3x1x1xi32>
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %three = stablehlo.constant dense<3> : tensor<i32>
//=    %one = stablehlo.constant dense<1> : tensor<i32>
//=    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2x3x4x4xi32>
//=    cond {
//=      %0 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
//=      stablehlo.return %0 : tensor<i1>
//=    } do {
//=      %0 = stablehlo.transpose %v, dims = [0, 2, 3, 1] : (tensor<2x3x4x4xi32>) -> tensor<2x4x4x3xi32>
//=      %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x4x3xi32>, tensor<3x3x1x1xi32>) -> tensor<2x4x4x3xi32>
//=      %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=      %3 = stablehlo.negate %1 : tensor<2x4x4x3xi32>
//=      %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<2x4x4x3xi32>) -> tensor<2x3x4x4xi32>
//=      %j = stablehlo.add %i, %one : tensor<i32>
//=      stablehlo.return %j, %4 : tensor<i32>, tensor<2x3x4x4xi32>
//=    }
//=    return %r#1 : tensor<2x3x4x4xi32>
//=  }
//=}
// -----
// what is padded is turned before
func.func @main(%x: tensor<1x2x3x3xi32>) -> tensor<1x1x4x4xi32> {
  %k = stablehlo.constant dense<[[[[1, 2], [3, -1]], [[2, 0], [1, 1]]]]> : tensor<1x2x2x2xi32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0 = stablehlo.pad %x, %five, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x2x3x3xi32>, tensor<i32>) -> tensor<1x2x5x5xi32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x5x5xi32>, tensor<1x2x2x2xi32>) -> tensor<1x1x4x4xi32>
  return %1 : tensor<1x1x4x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<1x2x3x3xi32>) -> tensor<1x1x4x4xi32> {
//=    %k = stablehlo.constant dense<[[[[1, 2], [3, -1]], [[2, 0], [1, 1]]]]> : tensor<1x2x2x2xi32>
//=    %five = stablehlo.constant dense<5> : tensor<i32>
//=    %0 = stablehlo.pad %x, %five, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x2x3x3xi32>, tensor<i32>) -> tensor<1x2x5x5xi32>
//=    %1 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x3x3xi32>) -> tensor<1x3x3x2xi32>
//=    %2 = stablehlo.pad %1, %five, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x3x3x2xi32>, tensor<i32>) -> tensor<1x5x5x2xi32>
//=    %3 = stablehlo.convolution(%2, %k) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2xi32>, tensor<1x2x2x2xi32>) -> tensor<1x4x4x1xi32>
//=    %4 = stablehlo.transpose %3, dims = [0, 3, 1, 2] : (tensor<1x4x4x1xi32>) -> tensor<1x1x4x4xi32>
//=    return %4 : tensor<1x1x4x4xi32>
//=  }
//=}
