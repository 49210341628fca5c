// RUN: byte-products
// bytes without a sign, less a zero point, times bytes with one
func.func @main(%arg0: tensor<2x3xui8>, %arg1: tensor<3x4xi8>) -> tensor<2x4xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = stablehlo.constant dense<133> : tensor<2x3xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<2x3xi32>
  %3 = stablehlo.convert %arg1 : (tensor<3x4xi8>) -> tensor<3x4xi32>
  %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %4 : tensor<2x4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x3xui8>, %arg1: tensor<3x4xi8>) -> tensor<2x4xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<2x3xui8>) -> tensor<2x3xi32>
//=    %c = stablehlo.constant dense<133> : tensor<2x3xi32>
//=    %1 = stablehlo.subtract %0, %c : tensor<2x3xi32>
//=    %2 = stablehlo.convert %arg1 : (tensor<3x4xi8>) -> tensor<3x4xi32>
//=    %c_0 = stablehlo.constant dense<128> : tensor<ui8>
//=    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui8>) -> tensor<2x3xui8>
//=    %4 = stablehlo.xor %arg0, %3 : tensor<2x3xui8>
//=    %5 = stablehlo.bitcast_convert %4 : (tensor<2x3xui8>) -> tensor<2x3xi8>
//=    %6 = stablehlo.convert %5 : (tensor<2x3xi8>) -> tensor<2x3xi32>
//=    %c_1 = stablehlo.constant dense<0> : tensor<i32>
//=    %7 = stablehlo.reduce(%6 init: %c_1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
//=    %8 = stablehlo.convert %arg1 : (tensor<3x4xi8>) -> tensor<3x4xi32>
//=    %c_2 = stablehlo.constant dense<0> : tensor<i32>
//=    %9 = stablehlo.reduce(%8 init: %c_2) applies stablehlo.add across dimensions = [0] : (tensor<3x4xi32>, tensor<i32>) -> tensor<4xi32>
//=    %10 = stablehlo.dot_general %5, %arg1, contracting_dims = [1] x [0] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
//=    %c_3 = stablehlo.constant dense<5> : tensor<i32>
//=    %11 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<4xi32>
//=    %12 = stablehlo.multiply %9, %11 : tensor<4xi32>
//=    %13 = stablehlo.broadcast_in_dim %12, dims = [1] : (tensor<4xi32>) -> tensor<2x4xi32>
//=    %14 = stablehlo.subtract %10, %13 : tensor<2x4xi32>
//=    return %14 : tensor<2x4xi32>
//=  }
//=}
// -----
// both less a zero point, which is an argument, with a batch
func.func @main(%arg0: tensor<2x5x3xi8>, %arg1: tensor<5x4x3xi8>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<5x2x4xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<2x5x3xi8>) -> tensor<2x5x3xi32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<2x5x3xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<2x5x3xi32>
  %3 = stablehlo.convert %arg1 : (tensor<5x4x3xi8>) -> tensor<5x4x3xi32>
  %4 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<5x4x3xi32>
  %5 = stablehlo.subtract %3, %4 : tensor<5x4x3xi32>
  %6 = stablehlo.dot_general %2, %5, batching_dims = [1] x [0], contracting_dims = [2] x [2] : (tensor<2x5x3xi32>, tensor<5x4x3xi32>) -> tensor<5x2x4xi32>
  return %6 : tensor<5x2x4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x5x3xi8>, %arg1: tensor<5x4x3xi8>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<5x2x4xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<2x5x3xi8>) -> tensor<2x5x3xi32>
//=    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<2x5x3xi32>
//=    %2 = stablehlo.subtract %0, %1 : tensor<2x5x3xi32>
//=    %3 = stablehlo.convert %arg1 : (tensor<5x4x3xi8>) -> tensor<5x4x3xi32>
//=    %4 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<5x4x3xi32>
//=    %5 = stablehlo.subtract %3, %4 : tensor<5x4x3xi32>
//=    %6 = stablehlo.convert %arg0 : (tensor<2x5x3xi8>) -> tensor<2x5x3xi32>
//=    %c = stablehlo.constant dense<0> : tensor<i32>
//=    %7 = stablehlo.reduce(%6 init: %c) applies stablehlo.add across dimensions = [2] : (tensor<2x5x3xi32>, tensor<i32>) -> tensor<2x5xi32>
//=    %8 = stablehlo.convert %arg1 : (tensor<5x4x3xi8>) -> tensor<5x4x3xi32>
//=    %c_0 = stablehlo.constant dense<0> : tensor<i32>
//=    %9 = stablehlo.reduce(%8 init: %c_0) applies stablehlo.add across dimensions = [2] : (tensor<5x4x3xi32>, tensor<i32>) -> tensor<5x4xi32>
//=    %c_1 = stablehlo.constant dense<3> : tensor<i32>
//=    %10 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
//=    %11 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
//=    %12 = stablehlo.multiply %10, %11 : tensor<5x4xi32>
//=    %13 = stablehlo.subtract %9, %12 : tensor<5x4xi32>
//=    %14 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [0], contracting_dims = [2] x [2] : (tensor<2x5x3xi8>, tensor<5x4x3xi8>) -> tensor<5x2x4xi32>
//=    %15 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<2x5xi32>
//=    %16 = stablehlo.multiply %7, %15 : tensor<2x5xi32>
//=    %17 = stablehlo.broadcast_in_dim %16, dims = [1, 0] : (tensor<2x5xi32>) -> tensor<5x2x4xi32>
//=    %18 = stablehlo.subtract %14, %17 : tensor<5x2x4xi32>
//=    %19 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<5x4xi32>
//=    %20 = stablehlo.multiply %13, %19 : tensor<5x4xi32>
//=    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 2] : (tensor<5x4xi32>) -> tensor<5x2x4xi32>
//=    %22 = stablehlo.subtract %18, %21 : tensor<5x2x4xi32>
//=    return %22 : tensor<5x2x4xi32>
//=  }
//=}
// -----
// padding is the zero point; the sums of constant weights are known
func.func @main(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x3xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi32>
  %1 = stablehlo.constant dense<100> : tensor<1x4x4x2xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<1x4x4x2xi32>
  %3 = stablehlo.constant dense<[[[[1, 2, -128], [3, 4, 127]]]]> : tensor<1x1x2x3xi8>
  %4 = stablehlo.convert %3 : (tensor<1x1x2x3xi8>) -> tensor<1x1x2x3xi32>
  %5 = stablehlo.convolution(%2, %4) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, -1], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi32>, tensor<1x1x2x3xi32>) -> tensor<1x4x4x3xi32>
  return %5 : tensor<1x4x4x3xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x3xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi32>
//=    %c = stablehlo.constant dense<100> : tensor<1x4x4x2xi32>
//=    %1 = stablehlo.subtract %0, %c : tensor<1x4x4x2xi32>
//=    %c_0 = stablehlo.constant dense<[[[[1, 2, -128], [3, 4, 127]]]]> : tensor<1x1x2x3xi8>
//=    %2 = stablehlo.convert %c_0 : (tensor<1x1x2x3xi8>) -> tensor<1x1x2x3xi32>
//=    %c_1 = stablehlo.constant dense<128> : tensor<ui8>
//=    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui8>) -> tensor<1x4x4x2xui8>
//=    %4 = stablehlo.xor %arg0, %3 : tensor<1x4x4x2xui8>
//=    %5 = stablehlo.bitcast_convert %4 : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8>
//=    %c_2 = stablehlo.constant dense<-28> : tensor<i8>
//=    %6 = stablehlo.pad %5, %c_2, low = [0, 1, 0, 0], high = [0, -1, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x4x4x2xi8>, tensor<i8>) -> tensor<1x4x4x2xi8>
//=    %7 = stablehlo.convolution(%6, %c_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xi8>, tensor<1x1x2x3xi8>) -> tensor<1x4x4x3xi32>
//=    %c_3 = stablehlo.constant dense<[4, 6, -1]> : tensor<3xi32>
//=    %c_4 = stablehlo.constant dense<-28> : tensor<i32>
//=    %8 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<3xi32>
//=    %9 = stablehlo.multiply %c_3, %8 : tensor<3xi32>
//=    %10 = stablehlo.broadcast_in_dim %9, dims = [3] : (tensor<3xi32>) -> tensor<1x4x4x3xi32>
//=    %11 = stablehlo.subtract %7, %10 : tensor<1x4x4x3xi32>
//=    return %11 : tensor<1x4x4x3xi32>
//=  }
//=}
// -----
// a dilated image with groups of features
func.func @main(%arg0: tensor<1x3x4xi8>, %arg1: tensor<2x2x4xi8>) -> tensor<1x5x4xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<1x3x4xi8>) -> tensor<1x3x4xi32>
  %1 = stablehlo.constant dense<-7> : tensor<1x3x4xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<1x3x4xi32>
  %3 = stablehlo.convert %arg1 : (tensor<2x2x4xi8>) -> tensor<2x2x4xi32>
  %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x4xi32>, tensor<2x2x4xi32>) -> tensor<1x5x4xi32>
  return %4 : tensor<1x5x4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x3x4xi8>, %arg1: tensor<2x2x4xi8>) -> tensor<1x5x4xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<1x3x4xi8>) -> tensor<1x3x4xi32>
//=    %c = stablehlo.constant dense<-7> : tensor<1x3x4xi32>
//=    %1 = stablehlo.subtract %0, %c : tensor<1x3x4xi32>
//=    %2 = stablehlo.convert %arg1 : (tensor<2x2x4xi8>) -> tensor<2x2x4xi32>
//=    %c_0 = stablehlo.constant dense<-7> : tensor<i8>
//=    %3 = stablehlo.pad %arg0, %c_0, low = [0, 1, 0], high = [0, 0, 0], interior = [0, 1, 0] : (tensor<1x3x4xi8>, tensor<i8>) -> tensor<1x6x4xi8>
//=    %4 = stablehlo.convolution(%3, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[0, 0]], lhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x6x4xi8>, tensor<2x2x4xi8>) -> tensor<1x5x4xi32>
//=    %5 = stablehlo.convert %arg1 : (tensor<2x2x4xi8>) -> tensor<2x2x4xi32>
//=    %c_1 = stablehlo.constant dense<0> : tensor<i32>
//=    %6 = stablehlo.reduce(%5 init: %c_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x2x4xi32>, tensor<i32>) -> tensor<4xi32>
//=    %c_2 = stablehlo.constant dense<-7> : tensor<i32>
//=    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4xi32>
//=    %8 = stablehlo.multiply %6, %7 : tensor<4xi32>
//=    %9 = stablehlo.broadcast_in_dim %8, dims = [2] : (tensor<4xi32>) -> tensor<1x5x4xi32>
//=    %10 = stablehlo.subtract %4, %9 : tensor<1x5x4xi32>
//=    return %10 : tensor<1x5x4xi32>
//=  }
//=}
// -----
// a zero point that may be no byte cannot be padding
func.func @main(%arg0: tensor<1x3x4xi8>, %arg1: tensor<2x4x4xi8>, %arg2: tensor<i32>) -> tensor<1x3x4xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<1x3x4xi8>) -> tensor<1x3x4xi32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<1x3x4xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<1x3x4xi32>
  %3 = stablehlo.convert %arg1 : (tensor<2x4x4xi8>) -> tensor<2x4x4xi32>
  %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4xi32>, tensor<2x4x4xi32>) -> tensor<1x3x4xi32>
  return %4 : tensor<1x3x4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x3x4xi8>, %arg1: tensor<2x4x4xi8>, %arg2: tensor<i32>) -> tensor<1x3x4xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<1x3x4xi8>) -> tensor<1x3x4xi32>
//=    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<1x3x4xi32>
//=    %2 = stablehlo.subtract %0, %1 : tensor<1x3x4xi32>
//=    %3 = stablehlo.convert %arg1 : (tensor<2x4x4xi8>) -> tensor<2x4x4xi32>
//=    %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4xi32>, tensor<2x4x4xi32>) -> tensor<1x3x4xi32>
//=    return %4 : tensor<1x3x4xi32>
//=  }
//=}
// -----
// both less a zero point, that of the image a byte: sums of windows
func.func @main(%arg0: tensor<1x3x4xui8>, %arg1: tensor<ui8>, %arg2: tensor<2x4x4xui8>) -> tensor<1x2x4xi32> {
  %0 = stablehlo.convert %arg0 : (tensor<1x3x4xui8>) -> tensor<1x3x4xi32>
  %1 = stablehlo.convert %arg1 : (tensor<ui8>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x3x4xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x3x4xi32>
  %4 = stablehlo.convert %arg2 : (tensor<2x4x4xui8>) -> tensor<2x4x4xi32>
  %5 = stablehlo.constant dense<3> : tensor<2x4x4xi32>
  %6 = stablehlo.subtract %4, %5 : tensor<2x4x4xi32>
  %7 = stablehlo.convolution(%3, %6) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4xi32>, tensor<2x4x4xi32>) -> tensor<1x2x4xi32>
  return %7 : tensor<1x2x4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x3x4xui8>, %arg1: tensor<ui8>, %arg2: tensor<2x4x4xui8>) -> tensor<1x2x4xi32> {
//=    %0 = stablehlo.convert %arg0 : (tensor<1x3x4xui8>) -> tensor<1x3x4xi32>
//=    %1 = stablehlo.convert %arg1 : (tensor<ui8>) -> tensor<i32>
//=    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x3x4xi32>
//=    %3 = stablehlo.subtract %0, %2 : tensor<1x3x4xi32>
//=    %4 = stablehlo.convert %arg2 : (tensor<2x4x4xui8>) -> tensor<2x4x4xi32>
//=    %c = stablehlo.constant dense<3> : tensor<2x4x4xi32>
//=    %5 = stablehlo.subtract %4, %c : tensor<2x4x4xi32>
//=    %c_0 = stablehlo.constant dense<128> : tensor<ui8>
//=    %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui8>) -> tensor<1x3x4xui8>
//=    %7 = stablehlo.xor %arg0, %6 : tensor<1x3x4xui8>
//=    %8 = stablehlo.bitcast_convert %7 : (tensor<1x3x4xui8>) -> tensor<1x3x4xi8>
//=    %c_1 = stablehlo.constant dense<128> : tensor<i32>
//=    %9 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<i32>
//=    %10 = stablehlo.subtract %1, %9 : tensor<i32>
//=    %c_2 = stablehlo.constant dense<128> : tensor<ui8>
//=    %11 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui8>) -> tensor<2x4x4xui8>
//=    %12 = stablehlo.xor %arg2, %11 : tensor<2x4x4xui8>
//=    %13 = stablehlo.bitcast_convert %12 : (tensor<2x4x4xui8>) -> tensor<2x4x4xi8>
//=    %14 = stablehlo.convert %10 : (tensor<i32>) -> tensor<i8>
//=    %15 = stablehlo.pad %8, %14, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 0, 0] : (tensor<1x3x4xi8>, tensor<i8>) -> tensor<1x5x4xi8>
//=    %16 = stablehlo.convolution(%15, %13) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 0]], lhs_dilate = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4xi8>, tensor<2x4x4xi8>) -> tensor<1x2x4xi32>
//=    %17 = stablehlo.convert %13 : (tensor<2x4x4xi8>) -> tensor<2x4x4xi32>
//=    %c_3 = stablehlo.constant dense<0> : tensor<i32>
//=    %18 = stablehlo.reduce(%17 init: %c_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4x4xi32>, tensor<i32>) -> tensor<4xi32>
//=    %c_4 = stablehlo.constant dense<8> : tensor<i32>
//=    %19 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<4xi32>
//=    %c_5 = stablehlo.constant dense<-125> : tensor<i32>
//=    %20 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<4xi32>
//=    %21 = stablehlo.multiply %19, %20 : tensor<4xi32>
//=    %22 = stablehlo.subtract %18, %21 : tensor<4xi32>
//=    %23 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<4xi32>
//=    %24 = stablehlo.multiply %22, %23 : tensor<4xi32>
//=    %25 = stablehlo.broadcast_in_dim %24, dims = [2] : (tensor<4xi32>) -> tensor<1x2x4xi32>
//=    %26 = stablehlo.subtract %16, %25 : tensor<1x2x4xi32>
//=    %27 = stablehlo.convert %15 : (tensor<1x5x4xi8>) -> tensor<1x5x4xi32>
//=    %c_6 = stablehlo.constant dense<0> : tensor<i32>
//=    %28 = stablehlo.reduce(%27 init: %c_6) applies stablehlo.add across dimensions = [2] : (tensor<1x5x4xi32>, tensor<i32>) -> tensor<1x5xi32>
//=    %c_7 = stablehlo.constant dense<0> : tensor<i32>
//=    %29 = "stablehlo.reduce_window"(%28, %c_7) <{window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
//=    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
//=      %34 = stablehlo.add %arg3, %arg4 : tensor<i32>
//=      stablehlo.return %34 : tensor<i32>
//=    }) : (tensor<1x5xi32>, tensor<i32>) -> tensor<1x2xi32>
//=    %c_8 = stablehlo.constant dense<-125> : tensor<i32>
//=    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<1x2xi32>
//=    %31 = stablehlo.multiply %29, %30 : tensor<1x2xi32>
//=    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1] : (tensor<1x2xi32>) -> tensor<1x2x4xi32>
//=    %33 = stablehlo.subtract %26, %32 : tensor<1x2x4xi32>
//=    return %33 : tensor<1x2x4xi32>
//=  }
//=}
