// Products of subnormal numbers that underflow: fused with the addition, they leave the sign of zero.
module {
  func.func @main(%arg0: tensor<3x1xf32> {random.seed = 904011528 : i64}, %arg1: tensor<1xf32> {random.seed = 1067071508 : i64}, %arg2: tensor<2x3x1xui8> {random.seed = 322836415 : i64}, %arg3: tensor<3x1x3xf32> {random.seed = 3 : i64}) -> tensor<3x1x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<1xf32>) -> tensor<1x12xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<3x1xf32>, tensor<1x12xf32>) -> tensor<3x12xf32>
    %2 = "stablehlo.gather"(%1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0, 1]>, slice_sizes = array<i64: 1, 12>}> : (tensor<3x12xf32>, tensor<2x3x1xui8>) -> tensor<3x1x12xf32>
    %3 = stablehlo.convolution(%2, %arg3) dim_numbers = [f, b, 0]x[o, 0, i]->[f, b, 0], window = {stride = [3], pad = [[2, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x1x12xf32>, tensor<3x1x3xf32>) -> tensor<3x1x5xf32>
    return %3 : tensor<3x1x5xf32>
  }
}

