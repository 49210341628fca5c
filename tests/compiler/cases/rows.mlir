// softmax is one kernel with one exponential
func.func @main(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<6x32xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<6xf32>) -> tensor<6x32xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<6x32xf32>
  %3 = stablehlo.exponential %2 : tensor<6x32xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x32xf32>, tensor<f32>) -> tensor<6xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<6xf32>) -> tensor<6x32xf32>
  %6 = stablehlo.divide %3, %5 : tensor<6x32xf32>
  return %6 : tensor<6x32xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 6x32xf32 at input 0
//=  result0: 6x32xf32 at output 0
//=  launch @fused_reduce_subtract_exponential_divide_0(arg0, result0)
//=}
//=kernel @fused_reduce_subtract_exponential_divide_0 {
//=  in x0: 6x32xf32
//=  out y0: 6x32xf32
//=  parallel (i0) < (6) {
//=    %1 = -inf : f32
//=    %2 = reduction (i3) < (32) onto (%1) with maximum {
//=      %4 = load x0[i0, i3] : f32
//=      yield %4
//=    }
//=    scratch scratch2: 32xf32
//=    parallel (i5) < (32) {
//=      %6 = load x0[i0, i5] : f32
//=      %7 = subtract %6, %2 : f32
//=      %8 = exponential %7 : f32
//=      store %8, scratch2[i5]
//=    }
//=    %9 = 0.0 : f32
//=    %10 = reduction (i11) < (32) onto (%9) with add {
//=      %12 = load scratch2[i11] : f32
//=      yield %12
//=    }
//=    parallel (i13) < (32) {
//=      %14 = load scratch2[i13] : f32
//=      %15 = divide %14, %10 : f32
//=      store %15, y0[i0, i13]
//=    }
//=  }
//=}
// -----
// layer normalization with scale and offset
func.func @main(%x: tensor<6x32xf32>, %scale: tensor<32xf32>, %offset: tensor<32xf32>) -> tensor<6x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<0.03125> : tensor<6xf32>
  %small = stablehlo.constant dense<1.0e-5> : tensor<6xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x32xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.multiply %0, %count : tensor<6xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<6xf32>) -> tensor<6x32xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<6x32xf32>
  %4 = stablehlo.multiply %3, %3 : tensor<6x32xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<6x32xf32>, tensor<f32>) -> tensor<6xf32>
  %6 = stablehlo.multiply %5, %count : tensor<6xf32>
  %7 = stablehlo.add %6, %small : tensor<6xf32>
  %8 = stablehlo.rsqrt %7 : tensor<6xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<6xf32>) -> tensor<6x32xf32>
  %10 = stablehlo.multiply %3, %9 : tensor<6x32xf32>
  %11 = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<32xf32>) -> tensor<6x32xf32>
  %12 = stablehlo.broadcast_in_dim %offset, dims = [1] : (tensor<32xf32>) -> tensor<6x32xf32>
  %13 = stablehlo.multiply %10, %11 : tensor<6x32xf32>
  %14 = stablehlo.add %13, %12 : tensor<6x32xf32>
  return %14 : tensor<6x32xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 6x32xf32 at input 0
//=  arg1: 32xf32 at input 1
//=  arg2: 32xf32 at input 2
//=  result0: 6x32xf32 at output 0
//=  launch @fused_reduce_multiply_subtract_add_0(arg0, arg1, arg2, result0)
//=}
//=kernel @fused_reduce_multiply_subtract_add_0 {
//=  in x0: 6x32xf32
//=  in x1: 32xf32
//=  in x2: 32xf32
//=  out y0: 6x32xf32
//=  parallel (i0) < (6) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (32) onto (%1) with add {
//=      %4 = load x0[i0, i3] : f32
//=      yield %4
//=    }
//=    %5 = 0.03125 : f32
//=    %6 = multiply %2, %5 : f32
//=    %7 = reduction (i8) < (32) onto (%1) with add {
//=      %9 = load x0[i0, i8] : f32
//=      %10 = subtract %9, %6 : f32
//=      %11 = multiply %10, %10 : f32
//=      yield %11
//=    }
//=    %12 = multiply %7, %5 : f32
//=    %13 = 9.999999747378752e-06 : f32
//=    %14 = add %12, %13 : f32
//=    %15 = rsqrt %14 : f32
//=    parallel (i16) < (32) {
//=      %17 = load x0[i0, i16] : f32
//=      %18 = subtract %17, %6 : f32
//=      %19 = multiply %18, %15 : f32
//=      %20 = load x1[i16] : f32
//=      %21 = multiply %19, %20 : f32
//=      %22 = load x2[i16] : f32
//=      %23 = add %21, %22 : f32
//=      store %23, y0[i0, i16]
//=    }
//=  }
//=}
// -----
// along the outer dimension, the lanes are columns and the sums are kernels of their own
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<8x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.divide %0, %2 : tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
//=program @main (arena 16 bytes) {
//=  arg0: 8x4xf32 at input 0
//=  result0: 8x4xf32 at output 0
//=  t0: 8x4xf32 at output 0
//=  t1: 4xf32 at arena 0
//=  launch @exponential_0(arg0, t0)
//=  launch @reduce_0(t0, t1)
//=  launch @divide_0(t0, t1, result0)
//=}
//=kernel @exponential_0 {
//=  in x0: 8x4xf32
//=  out y0: 8x4xf32
//=  parallel (i0, i1) < (8, 4) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = exponential %2 : f32
//=    store %3, y0[i0, i1]
//=  }
//=}
//=kernel @reduce_0 {
//=  in x0: 8x4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (8) onto (%1) with add {
//=      %4 = load x0[i3, i0] : f32
//=      yield %4
//=    }
//=    store %2, y0[i0]
//=  }
//=}
//=kernel @divide_0 {
//=  in x0: 8x4xf32
//=  in x1: 4xf32
//=  out y0: 8x4xf32
//=  parallel (i0, i1) < (8, 4) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = load x1[i1] : f32
//=    %4 = divide %2, %3 : f32
//=    store %4, y0[i0, i1]
//=  }
//=}
// -----
// a row's sum that is a result too
func.func @main(%x: tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %2 = stablehlo.divide %x, %1 : tensor<4x16xf32>
  return %0, %2 : tensor<4xf32>, tensor<4x16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x16xf32 at input 0
//=  result0: 4xf32 at output 0
//=  result1: 4x16xf32 at output 1
//=  launch @fused_reduce_divide_0(arg0, result0, result1)
//=}
//=kernel @fused_reduce_divide_0 {
//=  in x0: 4x16xf32
//=  out y0: 4xf32
//=  out y1: 4x16xf32
//=  parallel (i0) < (4) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (16) onto (%1) with add {
//=      %4 = load x0[i0, i3] : f32
//=      yield %4
//=    }
//=    store %2, y0[i0]
//=    parallel (i5) < (16) {
//=      %6 = load x0[i0, i5] : f32
//=      %7 = divide %6, %2 : f32
//=      store %7, y1[i0, i5]
//=    }
//=  }
//=}
// -----
// a causal mask is part of the row
func.func @main(%x: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %lows = stablehlo.constant dense<0xFF800000> : tensor<2x4x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %row = stablehlo.iota dim = 1 : tensor<2x4x4xi32>
  %column = stablehlo.iota dim = 2 : tensor<2x4x4xi32>
  %mask = stablehlo.compare GE, %row, %column : (tensor<2x4x4xi32>, tensor<2x4x4xi32>) -> tensor<2x4x4xi1>
  %masked = stablehlo.select %mask, %x, %lows : tensor<2x4x4xi1>, tensor<2x4x4xf32>
  %0 = stablehlo.reduce(%masked init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x4xf32>
  %2 = stablehlo.subtract %masked, %1 : tensor<2x4x4xf32>
  %3 = stablehlo.exponential %2 : tensor<2x4x4xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x4xf32>
  %6 = stablehlo.divide %3, %5 : tensor<2x4x4xf32>
  return %6 : tensor<2x4x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x4x4xf32 at input 0
//=  result0: 2x4x4xf32 at output 0
//=  launch @fused_compare_select_reduce_subtract_0(arg0, result0)
//=}
//=kernel @fused_compare_select_reduce_subtract_0 {
//=  in x0: 2x4x4xf32
//=  out y0: 2x4x4xf32
//=  parallel (i0, i1) < (2, 4) {
//=    %2 = -inf : f32
//=    %3 = reduction (i4) < (4) onto (%2) with maximum {
//=      %5 = convert i1 dtype=i32 : i32
//=      %6 = convert i4 dtype=i32 : i32
//=      %7 = compare %5, %6 direction=GE : i1
//=      %8 = load x0[i0, i1, i4] : f32
//=      %9 = -inf : f32
//=      %10 = select %7, %8, %9 : f32
//=      yield %10
//=    }
//=    scratch scratch2: 4xf32
//=    parallel (i11) < (4) {
//=      %12 = convert i1 dtype=i32 : i32
//=      %13 = convert i11 dtype=i32 : i32
//=      %14 = compare %12, %13 direction=GE : i1
//=      %15 = load x0[i0, i1, i11] : f32
//=      %16 = -inf : f32
//=      %17 = select %14, %15, %16 : f32
//=      %18 = subtract %17, %3 : f32
//=      %19 = exponential %18 : f32
//=      store %19, scratch2[i11]
//=    }
//=    %20 = 0.0 : f32
//=    %21 = reduction (i22) < (4) onto (%20) with add {
//=      %23 = load scratch2[i22] : f32
//=      yield %23
//=    }
//=    parallel (i24) < (4) {
//=      %25 = load scratch2[i24] : f32
//=      %26 = divide %25, %21 : f32
//=      store %26, y0[i0, i1, i24]
//=    }
//=  }
//=}
