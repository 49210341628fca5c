// a row is added to every row
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8xf32 at input 1
//=  result0: 4x8xf32 at output 0
//=  launch @add_0(arg0, arg1, result0)
//=}
//=kernel @add_0 {
//=  in x0: 4x8xf32
//=  in x1: 8xf32
//=  out y0: 4x8xf32
//=  parallel (i0, i1) < (4, 8) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i1] : f32
//=    %4 = add %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
// -----
// a column is added to every column
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %y, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 4x1xf32 at input 1
//=  result0: 4x8xf32 at output 0
//=  launch @add_0(arg0, arg1, result0)
//=}
//=kernel @add_0 {
//=  in x0: 4x8xf32
//=  in x1: 4xf32
//=  out y0: 4x8xf32
//=  parallel (i0, i1) < (4, 8) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i0] : f32
//=    %4 = add %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
// -----
// what is expensive is computed before it is broadcast
func.func @main(%x: tensor<64x128xf32>, %y: tensor<128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.exponential %y : tensor<128xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<128xf32>) -> tensor<64x128xf32>
  %2 = stablehlo.multiply %x, %1 : tensor<64x128xf32>
  return %2 : tensor<64x128xf32>
}
//=program @main (arena 512 bytes) {
//=  arg0: 64x128xf32 at input 0
//=  arg1: 128xf32 at input 1
//=  result0: 64x128xf32 at output 0
//=  t0: 128xf32 at arena 0
//=  launch @exponential_0(arg1, t0)
//=  launch @multiply_0(arg0, t0, result0)
//=}
//=kernel @exponential_0 {
//=  in x0: 128xf32
//=  out y0: 128xf32
//=  parallel (i0) < (128) {
//=    %1 = load x0[i0] : f32
//=    %2 = exponential %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
//=kernel @multiply_0 {
//=  in x0: 64x128xf32
//=  in x1: 128xf32
//=  out y0: 64x128xf32
//=  parallel (i0, i1) < (64, 128) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i1] : f32
//=    %4 = multiply %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
// -----
// what is cheap is computed again for every row
func.func @main(%x: tensor<64x128xf32>, %y: tensor<128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.negate %y : tensor<128xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<128xf32>) -> tensor<64x128xf32>
  %2 = stablehlo.multiply %x, %1 : tensor<64x128xf32>
  return %2 : tensor<64x128xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 64x128xf32 at input 0
//=  arg1: 128xf32 at input 1
//=  result0: 64x128xf32 at output 0
//=  launch @fused_negate_multiply_0(arg0, arg1, result0)
//=}
//=kernel @fused_negate_multiply_0 {
//=  in x0: 64x128xf32
//=  in x1: 128xf32
//=  out y0: 64x128xf32
//=  parallel (i0, i1) < (64, 128) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i1] : f32
//=    %4 = negate %3 : f32
//=    %5 = multiply %2, %4 : f32
//=    store %5, y0[i0, i1]
//=  }
//=}
// -----
// positions are numbers, not buffers
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x4xi32>
  %1 = stablehlo.iota dim = 1 : tensor<4x4xi32>
  %2 = stablehlo.compare GE, %0, %1 : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
  %zero = stablehlo.constant dense<0.0> : tensor<4x4xf32>
  %3 = stablehlo.select %2, %x, %zero : tensor<4x4xi1>, tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x4xf32 at input 0
//=  result0: 4x4xf32 at output 0
//=  launch @fused_compare_select_0(arg0, result0)
//=}
//=kernel @fused_compare_select_0 {
//=  in x0: 4x4xf32
//=  out y0: 4x4xf32
//=  parallel (i0, i1) < (4, 4) {
//=    %2 = convert i0 dtype=i32 : i32
//=    %3 = convert i1 dtype=i32 : i32
//=    %4 = compare %2, %3 direction=GE : i1
//=    %5 = load x0[i0, i1] : f32
//=    %6 = 0.0 : f32
//=    %7 = select %4, %5, %6 : f32
//=    store %7, y0[i0, i1]
//=  }
//=}
// -----
// transpose and reshape are index expressions
func.func @main(%x: tensor<4x6xf32>, %y: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x4xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.add %1, %y : tensor<3x8xf32>
  return %2 : tensor<3x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x6xf32 at input 0
//=  arg1: 3x8xf32 at input 1
//=  result0: 3x8xf32 at output 0
//=  launch @add_0(arg0, arg1, result0)
//=}
//=kernel @add_0 {
//=  in x0: 4x6xf32
//=  in x1: 3x8xf32
//=  out y0: 3x8xf32
//=  parallel (i0, i1) < (3, 8) {
//=    %2 = load x0[i1%4, i0*2 + i1//4] : f32
//=    %3 = load x1[i0, i1] : f32
//=    %4 = add %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
