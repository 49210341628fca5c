// arithmetic is on pairs
func.func @main(%x: tensor<4xcomplex<f32>>, %y: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.multiply %x, %y : tensor<4xcomplex<f32>>
  %1 = stablehlo.add %0, %y : tensor<4xcomplex<f32>>
  return %1 : tensor<4xcomplex<f32>>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x2xf32 at input 0
//=  arg1: 4x2xf32 at input 1
//=  result0: 4x2xf32 at output 0
//=  launch @fused_multiply_add_0(arg0, arg1, result0)
//=}
//=kernel @fused_multiply_add_0 {
//=  in x0: 4x2xf32
//=  in x1: 4x2xf32
//=  out y0: 4x2xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0, 0] : f32
//=    %2 = load x0[i0, 1] : f32
//=    %3 = load x1[i0, 0] : f32
//=    %4 = load x1[i0, 1] : f32
//=    %5 = multiply %1, %3 : f32
//=    %6 = multiply %2, %4 : f32
//=    %7 = subtract %5, %6 : f32
//=    %8 = multiply %1, %4 : f32
//=    %9 = multiply %2, %3 : f32
//=    %10 = add %8, %9 : f32
//=    %11 = add %7, %3 : f32
//=    %12 = add %10, %4 : f32
//=    store %11, y0[i0, 0]
//=    store %12, y0[i0, 1]
//=  }
//=}
// -----
// parts join and part
func.func @main(%re: tensor<4xf32>, %im: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.complex %re, %im : tensor<4xcomplex<f32>>
  %1 = stablehlo.multiply %0, %0 : tensor<4xcomplex<f32>>
  %2 = stablehlo.real %1 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %3 = stablehlo.abs %1 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
//=program @main (arena 32 bytes) {
//=  arg0: 4xf32 at input 0
//=  arg1: 4xf32 at input 1
//=  result0: 4xf32 at output 0
//=  result1: 4xf32 at output 1
//=  t1: 4x2xf32 at arena 0
//=  launch @fused_complex_multiply_real_0(arg0, arg1, result0, t1)
//=  launch @abs_0(t1, result1)
//=}
//=kernel @fused_complex_multiply_real_0 {
//=  in x0: 4xf32
//=  in x1: 4xf32
//=  out y0: 4xf32
//=  out y1: 4x2xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = load x1[i0] : f32
//=    %3 = multiply %1, %1 : f32
//=    %4 = multiply %2, %2 : f32
//=    %5 = subtract %3, %4 : f32
//=    %6 = multiply %1, %2 : f32
//=    %7 = multiply %2, %1 : f32
//=    %8 = add %6, %7 : f32
//=    store %5, y0[i0]
//=    store %5, y1[i0, 0]
//=    store %8, y1[i0, 1]
//=  }
//=}
//=kernel @abs_0 {
//=  in x0: 4x2xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0, 0] : f32
//=    %2 = load x0[i0, 1] : f32
//=    %3 = abs %1 : f32
//=    %4 = abs %2 : f32
//=    %5 = maximum %3, %4 : f32
//=    %6 = minimum %3, %4 : f32
//=    %7 = divide %6, %5 : f32
//=    %8 = multiply %7, %7 : f32
//=    %9 = 1.0 : f32
//=    %10 = add %8, %9 : f32
//=    %11 = sqrt %10 : f32
//=    %12 = multiply %5, %11 : f32
//=    %13 = inf : f32
//=    %14 = compare %5, %13 direction=EQ : i1
//=    %15 = 0.0 : f32
//=    %16 = compare %5, %15 direction=EQ : i1
//=    %17 = or %16, %14 : i1
//=    %18 = select %17, %5, %12 : f32
//=    store %18, y0[i0]
//=  }
//=}
// -----
// a sum
func.func @main(%x: tensor<3x4xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x4x2xf32 at input 0
//=  result0: 3x2xf32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x4x2xf32
//=  out y0: 3x2xf32
//=  parallel (i0) < (3) {
//=    %1 = 0.0 : f32
//=    %2 = 0.0 : f32
//=    %3, %4 = reduction (i5) < (4) onto (%1, %2) {
//=      %6 = load x0[i0, i5, 0] : f32
//=      %7 = load x0[i0, i5, 1] : f32
//=      yield %6, %7
//=    } combine (%8, %9, %10, %11) {
//=      %12 = add %8, %10 : f32
//=      %13 = add %9, %11 : f32
//=      yield %12, %13
//=    }
//=    store %3, y0[i0, 0]
//=    store %4, y0[i0, 1]
//=  }
//=}
// -----
// a matrix product
func.func @main(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
  return %0 : tensor<2x2xcomplex<f32>>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x3x2xf32 at input 0
//=  arg1: 3x2x2xf32 at input 1
//=  result0: 2x2x2xf32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 2x3x2xf32
//=  in x1: 3x2x2xf32
//=  out y0: 2x2x2xf32
//=  parallel (i0, i1) < (2, 2) {
//=    %2 = 0.0 : f32
//=    %3 = 0.0 : f32
//=    %4, %5 = reduction (i6) < (3) onto (%2, %3) {
//=      %7 = load x0[i0, i6, 0] : f32
//=      %8 = load x0[i0, i6, 1] : f32
//=      %9 = load x1[i6, i1, 0] : f32
//=      %10 = load x1[i6, i1, 1] : f32
//=      %11 = multiply %7, %9 : f32
//=      %12 = multiply %8, %10 : f32
//=      %13 = subtract %11, %12 : f32
//=      %14 = multiply %7, %10 : f32
//=      %15 = multiply %8, %9 : f32
//=      %16 = add %14, %15 : f32
//=      yield %13, %16
//=    } combine (%17, %18, %19, %20) {
//=      %21 = add %17, %19 : f32
//=      %22 = add %18, %20 : f32
//=      yield %21, %22
//=    }
//=    store %4, y0[i0, i1, 0]
//=    store %5, y0[i0, i1, 1]
//=  }
//=}
