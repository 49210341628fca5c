// along the innermost dimension
func.func @main(%x: tensor<3x5x8xf32>) -> tensor<3x5xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [2] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xf32 at input 0
//=  result0: 3x5xf32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xf32
//=  out y0: 3x5xf32
//=  parallel (i0, i1) < (3, 5) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i1, i4] : f32
//=      yield %5
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// along the outermost dimension
func.func @main(%x: tensor<3x5x8xf32>) -> tensor<5x8xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<5x8xf32>
  return %0 : tensor<5x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xf32 at input 0
//=  result0: 5x8xf32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xf32
//=  out y0: 5x8xf32
//=  parallel (i0, i1) < (5, 8) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (3) onto (%2) with add {
//=      %5 = load x0[i4, i0, i1] : f32
//=      yield %5
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// along the middle dimension
func.func @main(%x: tensor<3x5x8xf32>) -> tensor<3x8xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xf32 at input 0
//=  result0: 3x8xf32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xf32
//=  out y0: 3x8xf32
//=  parallel (i0, i1) < (3, 8) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (5) onto (%2) with add {
//=      %5 = load x0[i0, i4, i1] : f32
//=      yield %5
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// along the first and the last dimension
func.func @main(%x: tensor<3x5x8xf32>) -> tensor<5xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 2] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xf32 at input 0
//=  result0: 5xf32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xf32
//=  out y0: 5xf32
//=  parallel (i0) < (5) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3, i4) < (3, 8) onto (%1) with add {
//=      %5 = load x0[i3, i0, i4] : f32
//=      yield %5
//=    }
//=    store %2, y0[i0]
//=  }
//=}
// -----
// over everything
func.func @main(%x: tensor<3x5x8xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x5x8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xf32 at input 0
//=  result0: f32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xf32
//=  out y0: f32
//=  parallel (i0) < (1) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3, i4, i5) < (3, 5, 8) onto (%1) with add {
//=      %6 = load x0[i3, i4, i5] : f32
//=      yield %6
//=    }
//=    store %2, y0[]
//=  }
//=}
// -----
// of integers
func.func @main(%x: tensor<3x5x8xi32>) -> tensor<3x8xi32> {
  %init = stablehlo.constant dense<-2147483648> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [1] : (tensor<3x5x8xi32>, tensor<i32>) -> tensor<3x8xi32>
  return %0 : tensor<3x8xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xi32 at input 0
//=  result0: 3x8xi32 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xi32
//=  out y0: 3x8xi32
//=  parallel (i0, i1) < (3, 8) {
//=    %2 = -2147483648 : i32
//=    %3 = reduction (i4) < (5) onto (%2) with maximum {
//=      %5 = load x0[i0, i4, i1] : i32
//=      yield %5
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// of truth values
func.func @main(%x: tensor<3x5x8xi1>) -> tensor<3x5xi1> {
  %init = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.or across dimensions = [2] : (tensor<3x5x8xi1>, tensor<i1>) -> tensor<3x5xi1>
  return %0 : tensor<3x5xi1>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x5x8xi1 at input 0
//=  result0: 3x5xi1 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 3x5x8xi1
//=  out y0: 3x5xi1
//=  parallel (i0, i1) < (3, 5) {
//=    %2 = false : i1
//=    %3 = reduction (i4) < (8) onto (%2) with or {
//=      %5 = load x0[i0, i1, i4] : i1
//=      yield %5
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// over a dimension of extent 1 is elementwise
func.func @main(%x: tensor<4x1xf32>, %init: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x1xf32 at input 0
//=  arg1: f32 at input 1
//=  result0: 4xf32 at output 0
//=  launch @add_0(arg1, arg0, result0)
//=}
//=kernel @add_0 {
//=  in x0: f32
//=  in x1: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[] : f32
//=    %2 = load x1[i0] : f32
//=    %3 = add %1, %2 : f32
//=    store %3, y0[i0]
//=  }
//=}
// -----
// the operand's elementwise ops join, and so do the result's
func.func @main(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.subtract %x, %y : tensor<4x16xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4x16xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.sqrt %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x16xf32 at input 0
//=  arg1: 4x16xf32 at input 1
//=  result0: 4xf32 at output 0
//=  launch @fused_subtract_multiply_reduce_sqrt_0(arg0, arg1, result0)
//=}
//=kernel @fused_subtract_multiply_reduce_sqrt_0 {
//=  in x0: 4x16xf32
//=  in x1: 4x16xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (16) onto (%1) with add {
//=      %4 = load x0[i0, i3] : f32
//=      %5 = load x1[i0, i3] : f32
//=      %6 = subtract %4, %5 : f32
//=      %7 = multiply %6, %6 : f32
//=      yield %7
//=    }
//=    %8 = sqrt %2 : f32
//=    store %8, y0[i0]
//=  }
//=}
// -----
// two reductions of one operand share the loop
func.func @main(%x: tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x16xf32 at input 0
//=  result0: 4xf32 at output 0
//=  result1: 4xf32 at output 1
//=  launch @reduce_0(arg0, result1, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 4x16xf32
//=  out y0: 4xf32
//=  out y1: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = 0.0 : f32
//=    %2 = -inf : f32
//=    %3, %4 = reduction (i5) < (16) onto (%1, %2) {
//=      %6 = load x0[i0, i5] : f32
//=      yield %6, %6
//=    } combine (%7, %8, %9, %10) {
//=      %11 = add %7, %9 : f32
//=      %12 = maximum %8, %10 : f32
//=      yield %11, %12
//=    }
//=    store %4, y0[i0]
//=    store %3, y1[i0]
//=  }
//=}
// -----
// the index of the greatest element, by a combiner of two values
func.func @main(%x: tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %index = stablehlo.iota dim = 1 : tensor<4x16xi32>
  %0:2 = stablehlo.reduce(%x init: %low), (%index init: %zero) across dimensions = [1] : (tensor<4x16xf32>, tensor<4x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
    %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x16xf32 at input 0
//=  result0: 4xf32 at output 0
//=  result1: 4xi32 at output 1
//=  launch @reduce_0(arg0, result0, result1)
//=}
//=kernel @reduce_0 {
//=  in x0: 4x16xf32
//=  out y0: 4xf32
//=  out y1: 4xi32
//=  parallel (i0) < (4) {
//=    %1 = -inf : f32
//=    %2 = 0 : i32
//=    %3, %4 = sequential (i5) < (16) carry (%6, %7) = (%1, %2) {
//=      %8 = load x0[i0, i5] : f32
//=      %9 = convert i5 dtype=i32 : i32
//=      %10 = compare %6, %8 direction=GE : i1
//=      %11 = select %10, %6, %8 : f32
//=      %12 = select %10, %7, %9 : i32
//=      yield %11, %12
//=    }
//=    store %3, y0[i0]
//=    store %4, y1[i0]
//=  }
//=}
