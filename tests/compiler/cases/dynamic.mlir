// a batch of any size
// SHAPES: 3x4 -
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %0 = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %shape = stablehlo.concatenate %0, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %1 = stablehlo.dynamic_broadcast_in_dim %y, %shape, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %2 = stablehlo.add %x, %1 : tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x4xf32 at input 0
//=  arg1: 4xf32 at input 1
//=  result0: 3x4xf32 at output 0
//=  launch @add_0(arg0, arg1, result0)
//=}
//=kernel @add_0 {
//=  in x0: 3x4xf32
//=  in x1: 4xf32
//=  out y0: 3x4xf32
//=  parallel (i0, i1) < (3, 4) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i1] : f32
//=    %4 = add %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
// -----
// a mean divides by the extent
// SHAPES: 16
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %1 = stablehlo.convert %size : (tensor<i32>) -> tensor<f32>
  %2 = stablehlo.divide %0, %1 : tensor<f32>
  return %2 : tensor<f32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 16xf32 at input 0
//=  result0: f32 at output 0
//=  launch @fused_reduce_divide_0(arg0, result0)
//=}
//=kernel @fused_reduce_divide_0 {
//=  in x0: 16xf32
//=  out y0: f32
//=  parallel (i0) < (1) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (16) onto (%1) with add {
//=      %4 = load x0[i3] : f32
//=      yield %4
//=    }
//=    %5 = 16.0 : f32
//=    %6 = divide %2, %5 : f32
//=    store %6, y0[]
//=  }
//=}
// -----
// flattened: the shape is computed from extents
// SHAPES: 2x6
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %2 = stablehlo.multiply %0, %1 : tensor<i32>
  %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
  %4 = stablehlo.negate %x : tensor<?x?xf32>
  %5 = stablehlo.dynamic_reshape %4, %3 : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %5 : tensor<?xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x6xf32 at input 0
//=  result0: 12xf32 at output 0
//=  launch @negate_0(arg0, result0)
//=}
//=kernel @negate_0 {
//=  in x0: 2x6xf32
//=  out y0: 2x6xf32
//=  parallel (i0, i1) < (2, 6) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = negate %2 : f32
//=    store %3, y0[i0, i1]
//=  }
//=}
