// RUN: canonicalize
// shapes that the types tell
func.func @main(%arg0: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<i32>) {
  %0 = stablehlo.constant dense<[6]> : tensor<1xi64>
  %1 = stablehlo.constant dense<[4, 3]> : tensor<2xi64>
  %2 = stablehlo.constant dense<[4]> : tensor<1xi64>
  %3 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %4 = stablehlo.dynamic_reshape %arg0, %0 : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<6xf32>
  %5 = stablehlo.dynamic_broadcast_in_dim %3, %1, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  %6 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi64>) -> tensor<4xi32>
  %7 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  return %4, %5, %6, %7 : tensor<6xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<i32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<i32>) {
//=    %c = stablehlo.constant dense<6> : tensor<1xi64>
//=    %c_0 = stablehlo.constant dense<[4, 3]> : tensor<2xi64>
//=    %c_1 = stablehlo.constant dense<4> : tensor<1xi64>
//=    %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
//=    %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>
//=    %1 = stablehlo.broadcast_in_dim %cst, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
//=    %2 = stablehlo.iota dim = 0 : tensor<4xi32>
//=    %c_2 = stablehlo.constant dense<3> : tensor<i32>
//=    return %0, %1, %2, %c_2 : tensor<6xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<i32>
//=  }
//=}
// -----
// sizes that are constants
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> (tensor<6xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<1> : tensor<1xi32>
  %1 = stablehlo.constant dense<0> : tensor<1xi32>
  %2 = stablehlo.constant dense<2> : tensor<1xi32>
  %3 = stablehlo.constant dense<4> : tensor<1xi32>
  %4 = stablehlo.constant dense<2> : tensor<i32>
  %5 = stablehlo.dynamic_pad %arg0, %arg1, %0, %0, %1 : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32>
  %6 = stablehlo.real_dynamic_slice %arg0, %0, %3, %2 : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  %7 = stablehlo.set_dimension_size %arg0, %4, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  return %5, %6, %7 : tensor<6xf32>, tensor<2xf32>, tensor<2xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> (tensor<6xf32>, tensor<2xf32>, tensor<2xf32>) {
//=    %c = stablehlo.constant dense<1> : tensor<1xi32>
//=    %c_0 = stablehlo.constant dense<0> : tensor<1xi32>
//=    %c_1 = stablehlo.constant dense<2> : tensor<1xi32>
//=    %c_2 = stablehlo.constant dense<4> : tensor<1xi32>
//=    %c_3 = stablehlo.constant dense<2> : tensor<i32>
//=    %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
//=    %1 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
//=    %2 = stablehlo.slice %arg0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
//=    return %0, %1, %2 : tensor<6xf32>, tensor<2xf32>, tensor<2xf32>
//=  }
//=}
// -----
// windows of constant size, and a constant padding
func.func @main(%arg0: tensor<1x1x8xf32>, %arg1: tensor<1x1x3xf32>, %arg2: tensor<4x5xf32>) -> (tensor<1x1x8xf32>, tensor<3x5xf32>) {
  %0 = stablehlo.constant dense<1> : tensor<1x2xi32>
  %1 = stablehlo.constant dense<[1, 5]> : tensor<2xi32>
  %2 = stablehlo.constant dense<[[3], [1], [2]]> : tensor<3x1xi32>
  %3 = "stablehlo.dynamic_conv"(%arg0, %arg1, %0) {window_strides = array<i64: 1>, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x1x8xf32>, tensor<1x1x3xf32>, tensor<1x2xi32>) -> tensor<1x1x8xf32>
  %4 = "stablehlo.dynamic_gather"(%arg2, %2, %1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false} : (tensor<4x5xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x5xf32>
  return %3, %4 : tensor<1x1x8xf32>, tensor<3x5xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<1x1x8xf32>, %arg1: tensor<1x1x3xf32>, %arg2: tensor<4x5xf32>) -> (tensor<1x1x8xf32>, tensor<3x5xf32>) {
//=    %c = stablehlo.constant dense<1> : tensor<1x2xi32>
//=    %c_0 = stablehlo.constant dense<[1, 5]> : tensor<2xi32>
//=    %c_1 = stablehlo.constant dense<[[3], [1], [2]]> : tensor<3x1xi32>
//=    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x8xf32>, tensor<1x1x3xf32>) -> tensor<1x1x8xf32>
//=    %1 = "stablehlo.gather"(%arg2, %c_1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<4x5xf32>, tensor<3x1xi32>) -> tensor<3x5xf32>
//=    return %0, %1 : tensor<1x1x8xf32>, tensor<3x5xf32>
//=  }
//=}
