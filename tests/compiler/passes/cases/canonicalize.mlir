// RUN: canonicalize
// x + 0 on integers, constants move right
func.func @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.constant dense<0> : tensor<4xi32>
  %1 = stablehlo.add %0, %arg0 : tensor<4xi32>
  return %1 : tensor<4xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xi32>) -> tensor<4xi32> {
//=    %c = stablehlo.constant dense<0> : tensor<4xi32>
//=    return %arg0 : tensor<4xi32>
//=  }
//=}
// -----
// x + 0.0 is no identity for floats
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
//=    %0 = stablehlo.add %arg0, %cst : tensor<4xf32>
//=    return %0 : tensor<4xf32>
//=  }
//=}
// -----
// x + -0.0 is one
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %cst = stablehlo.constant dense<-0.000000e+00> : tensor<4xf32>
//=    return %arg0 : tensor<4xf32>
//=  }
//=}
// -----
// transposes compose
func.func @main(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
//=    %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
//=    return %arg0 : tensor<2x3x4xf32>
//=  }
//=}
// -----
// slices compose
func.func @main(%arg0: tensor<20xf32>) -> tensor<3xf32> {
  %0 = stablehlo.slice %arg0 [2:18:2] : (tensor<20xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %0 [1:8:3] : (tensor<8xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<20xf32>) -> tensor<3xf32> {
//=    %0 = stablehlo.slice %arg0 [2:18:2] : (tensor<20xf32>) -> tensor<8xf32>
//=    %1 = stablehlo.slice %arg0 [4:17:6] : (tensor<20xf32>) -> tensor<3xf32>
//=    return %1 : tensor<3xf32>
//=  }
//=}
// -----
// an empty slice of a slice whose steps lead beyond the operand
func.func @main(%arg0: tensor<5xf32>) -> tensor<0xf32> {
  %0 = stablehlo.slice %arg0 [3:5:3] : (tensor<5xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %0 [1:1] : (tensor<1xf32>) -> tensor<0xf32>
  return %1 : tensor<0xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<5xf32>) -> tensor<0xf32> {
//=    %0 = stablehlo.slice %arg0 [3:5:3] : (tensor<5xf32>) -> tensor<1xf32>
//=    %1 = stablehlo.slice %arg0 [3:3:3] : (tensor<5xf32>) -> tensor<0xf32>
//=    return %1 : tensor<0xf32>
//=  }
//=}
// -----
// broadcasts compose
func.func @main(%arg0: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<3xf32>) -> tensor<2x3x4xf32> {
//=    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
//=    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
//=    return %1 : tensor<2x3x4xf32>
//=  }
//=}
// -----
// a transposed broadcast is another broadcast
func.func @main(%arg0: tensor<2x3xf32>) -> tensor<3x4x2xf32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
  %1 = stablehlo.transpose %0, dims = [2, 1, 0] : (tensor<2x4x3xf32>) -> tensor<3x4x2xf32>
  return %1 : tensor<3x4x2xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x3xf32>) -> tensor<3x4x2xf32> {
//=    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
//=    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<2x3xf32>) -> tensor<3x4x2xf32>
//=    return %1 : tensor<3x4x2xf32>
//=  }
//=}
// -----
// a dot takes the transpose of its operand
func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<4x3xf32>) -> tensor<5x4xf32> {
  %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<5x3xf32>, %arg1: tensor<4x3xf32>) -> tensor<5x4xf32> {
//=    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
//=    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<5x3xf32>, tensor<4x3xf32>) -> tensor<5x4xf32>
//=    return %1 : tensor<5x4xf32>
//=  }
//=}
// -----
// a branch whose predicate is known
func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<true> : tensor<i1>
  %1 = "stablehlo.if"(%0) ({
    %2 = stablehlo.negate %arg0 : tensor<2xf32>
    stablehlo.return %2 : tensor<2xf32>
  }, {
    stablehlo.return %arg0 : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
//=    %c = stablehlo.constant dense<true> : tensor<i1>
//=    %0 = stablehlo.negate %arg0 : tensor<2xf32>
//=    return %0 : tensor<2xf32>
//=  }
//=}
// -----
// a splat that is moved stays one
func.func @main() -> tensor<4x4xf32> {
  %0 = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x8xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
//=module {
//=  func.func @main() -> tensor<4x4xf32> {
//=    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
//=    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<2x8xf32>
//=    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<4x4xf32>
//=    return %cst_1 : tensor<4x4xf32>
//=  }
//=}
// -----
// there is nothing to gather
func.func @main(%arg0: tensor<0x3xf32>, %arg1: tensor<2xi32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 0, 3>}> : (tensor<0x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<0x3xf32>, %arg1: tensor<2xi32>) -> tensor<2x3xf32> {
//=    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x3xf32>
//=    return %cst : tensor<2x3xf32>
//=  }
//=}
