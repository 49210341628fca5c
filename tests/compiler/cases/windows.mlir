// max pooling
func.func @main(%x: tensor<1x6x6x4xf32>) -> tensor<1x3x3x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x6x6x4xf32>, tensor<f32>) -> tensor<1x3x3x4xf32>
  return %0 : tensor<1x3x3x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x6x6x4xf32 at input 0
//=  result0: 1x3x3x4xf32 at output 0
//=  launch @reduce_window_0(arg0, result0)
//=}
//=kernel @reduce_window_0 {
//=  in x0: 6x6x4xf32
//=  out y0: 3x3x4xf32
//=  parallel (i0, i1, i2) < (3, 3, 4) {
//=    %3 = -inf : f32
//=    %4 = reduction (i5, i6) < (2, 2) onto (%3) with maximum {
//=      %7 = load x0[i0*2 + i5, i1*2 + i6, i2] : f32
//=      yield %7
//=    }
//=    store %4, y0[i0, i1, i2]
//=  }
//=}
// -----
// average pooling with padding, divided afterwards
func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %nine = stablehlo.constant dense<9.0> : tensor<1x4x6x6xf32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 1, 3, 3>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x4x6x6xf32>, tensor<f32>) -> tensor<1x4x6x6xf32>
  %2 = stablehlo.divide %0, %nine : tensor<1x4x6x6xf32>
  return %2 : tensor<1x4x6x6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x4x6x6xf32 at input 0
//=  result0: 1x4x6x6xf32 at output 0
//=  launch @fused_reduce_window_divide_0(arg0, result0)
//=}
//=kernel @fused_reduce_window_divide_0 {
//=  in x0: 4x6x6xf32
//=  out y0: 4x6x6xf32
//=  parallel (i0, i1, i2) < (4, 6, 6) {
//=    %3 = 0.0 : f32
//=    %4 = reduction (i5, i6) < (3, 3) onto (%3) with add {
//=      %7 = i1 + i5 - 1 : i64
//=      %8 = 0 : i64
//=      %9 = compare %7, %8 direction=GE : i1
//=      %10 = 5 : i64
//=      %11 = compare %7, %10 direction=LE : i1
//=      %12 = and %9, %11 : i1
//=      %13 = i2 + i6 - 1 : i64
//=      %14 = 0 : i64
//=      %15 = compare %13, %14 direction=GE : i1
//=      %16 = 5 : i64
//=      %17 = compare %13, %16 direction=LE : i1
//=      %18 = and %12, %15 : i1
//=      %19 = and %18, %17 : i1
//=      %20 = if %19 {
//=        %21 = load x0[i0, i1 + i5 - 1, i2 + i6 - 1] : f32
//=        yield %21
//=      } else {
//=        yield %3
//=      }
//=      yield %20
//=    }
//=    %22 = 9.0 : f32
//=    %23 = divide %4, %22 : f32
//=    store %23, y0[i0, i1, i2]
//=  }
//=}
// -----
// a cumulative sum is a window as long as the row
func.func @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 8>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x8xf32 at input 0
//=  result0: 3x8xf32 at output 0
//=  launch @reduce_window_0(arg0, result0)
//=}
//=kernel @reduce_window_0 {
//=  in x0: 3x8xf32
//=  out y0: 3x8xf32
//=  parallel (i0) < (3) {
//=    %1 = 0.0 : f32
//=    %2 = sequential (i3) < (8) carry (%4) = (%1) {
//=      %5 = load x0[i0, i3] : f32
//=      %6 = add %4, %5 : f32
//=      store %6, y0[i0, i3]
//=      yield %6
//=    }
//=  }
//=}
// -----
// a dilated window over a dilated operand
func.func @main(%x: tensor<8xi32>) -> tensor<11xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>, base_dilations = array<i64: 2>, window_dilations = array<i64: 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<8xi32>, tensor<i32>) -> tensor<11xi32>
  return %0 : tensor<11xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8xi32 at input 0
//=  result0: 11xi32 at output 0
//=  launch @reduce_window_0(arg0, result0)
//=}
//=kernel @reduce_window_0 {
//=  in x0: 8xi32
//=  out y0: 11xi32
//=  parallel (i0) < (11) {
//=    %1 = 0 : i32
//=    %2 = reduction (i3) < (3) onto (%1) with add {
//=      %4 = i0 + i3*2 : i64
//=      %5 = 2 : i64
//=      %6 = remainder %4, %5 : i64
//=      %7 = 0 : i64
//=      %8 = compare %6, %7 direction=EQ : i1
//=      %9 = if %8 {
//=        %10 = load x0[i3 + i0//2] : i32
//=        yield %10
//=      } else {
//=        yield %1
//=      }
//=      yield %9
//=    }
//=    store %2, y0[i0]
//=  }
//=}
// -----
// select_and_scatter, the gradient of max pooling
func.func @main(%x: tensor<4x4xf32>, %source: tensor<2x2xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %source, %zero) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x4xf32 at input 0
//=  arg1: 2x2xf32 at input 1
//=  result0: 4x4xf32 at output 0
//=  launch @select_and_scatter_0_init(result0)
//=  launch @select_and_scatter_0(result0, arg0, arg1)
//=}
//=kernel @select_and_scatter_0_init {
//=  out y0: 4x4xf32
//=  parallel (i0, i1) < (4, 4) {
//=    %2 = 0.0 : f32
//=    store %2, y0[i0, i1]
//=  }
//=}
//=kernel @select_and_scatter_0 {
//=  inout z0: 4x4xf32
//=  in x0: 4x4xf32
//=  in x1: 2x2xf32
//=  parallel (i0, i1) < (2, 2) {
//=    %2 = 0 : i64
//=    %3 = 0 : i64
//=    %4 = false : i1
//=    %5 = 0.0 : f32
//=    %6, %7, %8, %9 = sequential (i10, i11) < (2, 2) carry (%12, %13, %14, %15) = (%4, %5, %2, %3) {
//=      %16 = load x0[i0*2 + i10, i1*2 + i11] : f32
//=      %17 = compare %13, %16 direction=GE : i1
//=      %18 = not %12 : i1
//=      %19 = not %17 : i1
//=      %20 = or %18, %19 : i1
//=      %21 = i0*2 + i10 : i64
//=      %22 = i1*2 + i11 : i64
//=      %23 = select %20, %16, %13 : f32
//=      %24 = select %20, %21, %14 : i64
//=      %25 = select %20, %22, %15 : i64
//=      %26 = true : i1
//=      yield %26, %23, %24, %25
//=    }
//=    %27 = load x1[i0, i1] : f32
//=    update z0[%8, %9] with %27 by add
//=  }
//=}
