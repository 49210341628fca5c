// a chain is one kernel
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<4x8xf32>
  %1 = stablehlo.multiply %0, %x : tensor<4x8xf32>
  %2 = stablehlo.tanh %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 4x8xf32 at input 1
//=  result0: 4x8xf32 at output 0
//=  launch @fused_add_multiply_tanh_0(arg0, arg1, result0)
//=}
//=kernel @fused_add_multiply_tanh_0 {
//=  in x0: 4x8xf32
//=  in x1: 4x8xf32
//=  out y0: 4x8xf32
//=  parallel (i0, i1) < (4, 8) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i0, i1] : f32
//=    %4 = add %2, %3 : f32
//=    %5 = multiply %4, %2 : f32
//=    %6 = tanh %5 : f32
//=    store %6, y0[i0, i1]
//=  }
//=}
// -----
// a value that is used twice is computed once
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = stablehlo.exponential %x : tensor<16xf32>
  %1 = stablehlo.sine %0 : tensor<16xf32>
  %2 = stablehlo.cosine %0 : tensor<16xf32>
  %3 = stablehlo.subtract %1, %2 : tensor<16xf32>
  return %3 : tensor<16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 16xf32 at input 0
//=  result0: 16xf32 at output 0
//=  launch @fused_exponential_sine_cosine_subtract_0(arg0, result0)
//=}
//=kernel @fused_exponential_sine_cosine_subtract_0 {
//=  in x0: 16xf32
//=  out y0: 16xf32
//=  parallel (i0) < (16) {
//=    %1 = load x0[i0] : f32
//=    %2 = exponential %1 : f32
//=    %3 = sine %2 : f32
//=    %4 = cosine %2 : f32
//=    %5 = subtract %3, %4 : f32
//=    store %5, y0[i0]
//=  }
//=}
// -----
// a result that is also read is stored by the kernel that computes it
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = stablehlo.exponential %x : tensor<16xf32>
  %1 = stablehlo.negate %0 : tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 16xf32 at input 0
//=  result0: 16xf32 at output 0
//=  result1: 16xf32 at output 1
//=  launch @fused_exponential_negate_0(arg0, result1, result0)
//=}
//=kernel @fused_exponential_negate_0 {
//=  in x0: 16xf32
//=  out y0: 16xf32
//=  out y1: 16xf32
//=  parallel (i0) < (16) {
//=    %1 = load x0[i0] : f32
//=    %2 = exponential %1 : f32
//=    %3 = negate %2 : f32
//=    store %3, y0[i0]
//=    store %2, y1[i0]
//=  }
//=}
// -----
// ops that share no values are kernels of their own
func.func @main(%x: tensor<16xf32>, %y: tensor<4xf32>) -> (tensor<16xf32>, tensor<4xf32>) {
  %0 = stablehlo.negate %x : tensor<16xf32>
  %1 = stablehlo.negate %y : tensor<4xf32>
  return %0, %1 : tensor<16xf32>, tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 16xf32 at input 0
//=  arg1: 4xf32 at input 1
//=  result0: 16xf32 at output 0
//=  result1: 4xf32 at output 1
//=  launch @negate_0(arg0, result0)
//=  launch @negate_1(arg1, result1)
//=}
//=kernel @negate_0 {
//=  in x0: 16xf32
//=  out y0: 16xf32
//=  parallel (i0) < (16) {
//=    %1 = load x0[i0] : f32
//=    %2 = negate %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
//=kernel @negate_1 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = negate %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// a choice by a comparison with a constant
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<3x5xf32>
  %0 = stablehlo.compare GT, %x, %zero : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
  %1 = stablehlo.select %0, %x, %zero : tensor<3x5xi1>, tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5xf32 at input 0
//=  result0: 3x5xf32 at output 0
//=  launch @fused_compare_select_0(arg0, result0)
//=}
//=kernel @fused_compare_select_0 {
//=  in x0: 3x5xf32
//=  out y0: 3x5xf32
//=  parallel (i0, i1) < (3, 5) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = 0.0 : f32
//=    %4 = compare %2, %3 direction=GT : i1
//=    %5 = select %4, %2, %3 : f32
//=    store %5, y0[i0, i1]
//=  }
//=}
// -----
// a scalar program has no loop
func.func @main(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.divide %x, %y : tensor<i32>
  %1 = stablehlo.clamp %y, %0, %x : tensor<i32>
  return %1 : tensor<i32>
}
//=program @main (arena 0 bytes) {
//=  arg0: i32 at input 0
//=  arg1: i32 at input 1
//=  result0: i32 at output 0
//=  launch @fused_divide_clamp_0(arg1, arg0, result0)
//=}
//=kernel @fused_divide_clamp_0 {
//=  in x0: i32
//=  in x1: i32
//=  out y0: i32
//=  %0 = load x0[] : i32
//=  %1 = load x1[] : i32
//=  %2 = divide %1, %0 : i32
//=  %3 = clamp %0, %2, %1 : i32
//=  store %3, y0[]
//=}
// -----
// an empty result needs no kernel
func.func @main(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %0 = stablehlo.exponential %x : tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 0x4xf32 at input 0
//=  result0: 0x4xf32 at output 0
//=}
// -----
// map computes its region for each element
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    %2 = stablehlo.add %1, %a : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 6xf32 at input 0
//=  arg1: 6xf32 at input 1
//=  result0: 6xf32 at output 0
//=  launch @map_0(arg0, arg1, result0)
//=}
//=kernel @map_0 {
//=  in x0: 6xf32
//=  in x1: 6xf32
//=  out y0: 6xf32
//=  parallel (i0) < (6) {
//=    %1 = load x0[i0] : f32
//=    %2 = load x1[i0] : f32
//=    %3 = multiply %1, %2 : f32
//=    %4 = add %3, %1 : f32
//=    store %4, y0[i0]
//=  }
//=}
