// channels last
func.func @main(%x: tensor<1x6x6x3xf32>, %k: tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x6x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x6x6x3xf32 at input 0
//=  arg1: 3x3x3x8xf32 at input 1
//=  result0: 1x4x4x8xf32 at output 0
//=  launch @convolution_0(arg0, arg1, result0)
//=}
//=kernel @convolution_0 {
//=  in x0: 1x6x6x3xf32
//=  in x1: 3x3x3x8xf32
//=  out y0: 4x4x8xf32
//=  parallel (i0, i1, i2, i3) < (1, 4, 4, 8) {
//=    %4 = 0.0 : f32
//=    %5 = reduction (i6, i7, i8) < (3, 3, 3) onto (%4) with add {
//=      %9 = load x0[i0, i1 + i6, i2 + i7, i8] : f32
//=      %10 = load x1[i6, i7, i8, i3] : f32
//=      %11 = multiply %9, %10 : f32
//=      yield %11
//=    }
//=    store %5, y0[i1, i2, i3]
//=  }
//=  contraction (m1 m4 m4 n8 k3 k3 k3) x0[l0, l1+l4, l2+l5, l6] * x1[l4, l5, l6, l3] in f32
//=  epilogue (%12, %13, %14, %15, %16) {
//=    store %12, y0[%14, %15, %16]
//=  }
//=}
// -----
// channels first, padded, with strides, then an activation
func.func @main(%x: tensor<1x3x6x6xf32>, %k: tensor<8x3x3x3xf32>) -> tensor<1x8x3x3xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x6x6xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x3x3xf32>
  %1 = stablehlo.tanh %0 : tensor<1x8x3x3xf32>
  return %1 : tensor<1x8x3x3xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x3x6x6xf32 at input 0
//=  arg1: 8x3x3x3xf32 at input 1
//=  result0: 1x8x3x3xf32 at output 0
//=  launch @fused_convolution_tanh_0(arg0, arg1, result0)
//=}
//=kernel @fused_convolution_tanh_0 {
//=  in x0: 1x3x6x6xf32
//=  in x1: 8x3x3x3xf32
//=  out y0: 8x3x3xf32
//=  parallel (i0, i1, i2, i3) < (1, 3, 3, 8) {
//=    %4 = 0.0 : f32
//=    %5 = reduction (i6, i7, i8) < (3, 3, 3) onto (%4) with add {
//=      %9 = i1*2 + i6 - 1 : i64
//=      %10 = 0 : i64
//=      %11 = compare %9, %10 direction=GE : i1
//=      %12 = 6 : i64
//=      %13 = compare %9, %12 direction=LT : i1
//=      %14 = and %11, %13 : i1
//=      %15 = i2*2 + i7 - 1 : i64
//=      %16 = 0 : i64
//=      %17 = compare %15, %16 direction=GE : i1
//=      %18 = 6 : i64
//=      %19 = compare %15, %18 direction=LT : i1
//=      %20 = and %17, %19 : i1
//=      %21 = and %14, %20 : i1
//=      %22 = if %21 {
//=        %23 = load x0[i0, i8, i1*2 + i6 - 1, i2*2 + i7 - 1] : f32
//=        yield %23
//=      } else {
//=        %24 = 0.0 : f32
//=        yield %24
//=      }
//=      %25 = load x1[i3, i8, i6, i7] : f32
//=      %26 = multiply %22, %25 : f32
//=      yield %26
//=    }
//=    %27 = tanh %5 : f32
//=    store %27, y0[i3, i1, i2]
//=  }
//=  contraction (m1 m3 m3 n8 k3 k3 k3) x0[l0, l6, 2*l1+l4+-1, 2*l2+l5+-1] * x1[l3, l6, l4, l5] in f32
//=  epilogue (%28, %29, %30, %31, %32) {
//=    %33 = tanh %28 : f32
//=    store %33, y0[%32, %30, %31]
//=  }
//=}
// -----
// depthwise
func.func @main(%x: tensor<1x5x5x4xf32>, %k: tensor<3x3x1x4xf32>) -> tensor<1x3x3x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<1x5x5x4xf32>, tensor<3x3x1x4xf32>) -> tensor<1x3x3x4xf32>
  return %0 : tensor<1x3x3x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x5x5x4xf32 at input 0
//=  arg1: 3x3x1x4xf32 at input 1
//=  result0: 1x3x3x4xf32 at output 0
//=  launch @convolution_0(arg0, arg1, result0)
//=}
//=kernel @convolution_0 {
//=  in x0: 1x5x5x4xf32
//=  in x1: 3x3x1x4xf32
//=  out y0: 3x3x4xf32
//=  parallel (i0, i1, i2, i3, i4) < (4, 1, 3, 3, 1) {
//=    %5 = 0.0 : f32
//=    %6 = reduction (i7, i8, i9) < (3, 3, 1) onto (%5) with add {
//=      %10 = load x0[i1, i2 + i7, i3 + i8, i9 + i0] : f32
//=      %11 = load x1[i7, i8, i9, i4 + i0] : f32
//=      %12 = multiply %10, %11 : f32
//=      yield %12
//=    }
//=    store %6, y0[i2, i3, i0 + i4]
//=  }
//=  contraction (batch4 m1 m3 m3 n1 k3 k3 k1) x0[l1, l2+l5, l3+l6, l7+l0] * x1[l5, l6, l7, l4+l0] in f32
//=  epilogue (%13, %14, %15, %16, %17, %18) {
//=    store %13, y0[%16, %17, %14 + %18]
//=  }
//=}
// -----
// transposed: the operand is dilated
func.func @main(%x: tensor<1x3x3x2xf32>, %k: tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x3x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32>
  return %0 : tensor<1x5x5x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x3x3x2xf32 at input 0
//=  arg1: 3x3x2x4xf32 at input 1
//=  result0: 1x5x5x4xf32 at output 0
//=  launch @convolution_0(arg0, arg1, result0)
//=}
//=kernel @convolution_0 {
//=  in x0: 1x3x3x2xf32
//=  in x1: 3x3x2x4xf32
//=  out y0: 5x5x4xf32
//=  parallel (i0, i1, i2, i3) < (1, 5, 5, 4) {
//=    %4 = 0.0 : f32
//=    %5 = reduction (i6, i7, i8) < (3, 3, 2) onto (%4) with add {
//=      %9 = i1 + i6 - 1 : i64
//=      %10 = 0 : i64
//=      %11 = compare %9, %10 direction=GE : i1
//=      %12 = 6 : i64
//=      %13 = compare %9, %12 direction=LT : i1
//=      %14 = and %11, %13 : i1
//=      %15 = 2 : i64
//=      %16 = remainder %9, %15 : i64
//=      %17 = 0 : i64
//=      %18 = compare %16, %17 direction=EQ : i1
//=      %19 = and %14, %18 : i1
//=      %20 = i2 + i7 - 1 : i64
//=      %21 = 0 : i64
//=      %22 = compare %20, %21 direction=GE : i1
//=      %23 = 6 : i64
//=      %24 = compare %20, %23 direction=LT : i1
//=      %25 = and %22, %24 : i1
//=      %26 = 2 : i64
//=      %27 = remainder %20, %26 : i64
//=      %28 = 0 : i64
//=      %29 = compare %27, %28 direction=EQ : i1
//=      %30 = and %25, %29 : i1
//=      %31 = and %19, %30 : i1
//=      %32 = if %31 {
//=        %33 = load x0[i0, (i1 + i6 + 1)//2 - 1, (i2 + i7 + 1)//2 - 1, i8] : f32
//=        yield %33
//=      } else {
//=        %34 = 0.0 : f32
//=        yield %34
//=      }
//=      %35 = load x1[i6, i7, i8, i3] : f32
//=      %36 = multiply %32, %35 : f32
//=      yield %36
//=    }
//=    store %5, y0[i1, i2, i3]
//=  }
//=  contraction (m1 m5 m5 n4 k3 k3 k2) x0[l0, (l1+l4+-1)/2, (l2+l5+-1)/2, l6] * x1[l4, l5, l6, l3] in f32
//=  epilogue (%37, %38, %39, %40, %41) {
//=    store %37, y0[%39, %40, %41]
//=  }
//=}
// -----
// a dilated kernel that is read backwards
func.func @main(%x: tensor<1x7x2xf32>, %k: tensor<3x2x4xf32>) -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {rhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x7x2xf32>, tensor<3x2x4xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 1x7x2xf32 at input 0
//=  arg1: 3x2x4xf32 at input 1
//=  result0: 1x3x4xf32 at output 0
//=  launch @convolution_0(arg0, arg1, result0)
//=}
//=kernel @convolution_0 {
//=  in x0: 1x7x2xf32
//=  in x1: 3x2x4xf32
//=  out y0: 3x4xf32
//=  parallel (i0, i1, i2) < (1, 3, 4) {
//=    %3 = 0.0 : f32
//=    %4 = reduction (i5, i6) < (3, 2) onto (%3) with add {
//=      %7 = load x0[i0, i1 + i5*2, i6] : f32
//=      %8 = load x1[i5*-1 + 2, i6, i2] : f32
//=      %9 = multiply %7, %8 : f32
//=      yield %9
//=    }
//=    store %4, y0[i1, i2]
//=  }
//=  contraction (m1 m3 n4 k3 k2) x0[l0, l1+2*l3, l4] * x1[-1*l3+2, l4, l2] in f32
//=  epilogue (%10, %11, %12, %13) {
//=    store %10, y0[%12, %13]
//=  }
//=}
// -----
// groups of the batch
func.func @main(%x: tensor<2x4x4xf32>, %k: tensor<3x4x2xf32>) -> tensor<1x2x2xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<2x4x4xf32>, tensor<3x4x2xf32>) -> tensor<1x2x2xf32>
  return %0 : tensor<1x2x2xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x4x4xf32 at input 0
//=  arg1: 3x4x2xf32 at input 1
//=  result0: 1x2x2xf32 at output 0
//=  launch @convolution_0(arg0, arg1, result0)
//=}
//=kernel @convolution_0 {
//=  in x0: 2x4x4xf32
//=  in x1: 3x4x2xf32
//=  out y0: 2x2xf32
//=  parallel (i0, i1, i2, i3) < (2, 1, 2, 1) {
//=    %4 = 0.0 : f32
//=    %5 = reduction (i6, i7) < (3, 4) onto (%4) with add {
//=      %8 = load x0[i1 + i0, i2 + i6, i7] : f32
//=      %9 = load x1[i6, i7, i3 + i0] : f32
//=      %10 = multiply %8, %9 : f32
//=      yield %10
//=    }
//=    store %5, y0[i2, i0 + i3]
//=  }
//=  contraction (batch2 m1 m2 n1 k3 k4) x0[l1+l0, l2+l4, l5] * x1[l4, l5, l3+l0] in f32
//=  epilogue (%11, %12, %13, %14, %15) {
//=    store %11, y0[%14, %12 + %15]
//=  }
//=}
