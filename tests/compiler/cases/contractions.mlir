// a matrix product
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8x16xf32 at input 1
//=  result0: 4x16xf32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xf32
//=  in x1: 8x16xf32
//=  out y0: 4x16xf32
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : f32
//=      %6 = load x1[i4, i1] : f32
//=      %7 = multiply %5, %6 : f32
//=      yield %7
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  epilogue (%8, %9, %10) {
//=    store %8, y0[%9, %10]
//=  }
//=}
// -----
// bias and activation are the epilogue
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x16xf32>
  %3 = stablehlo.logistic %2 : tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8x16xf32 at input 1
//=  arg2: 16xf32 at input 2
//=  result0: 4x16xf32 at output 0
//=  launch @fused_dot_add_logistic_0(arg0, arg1, arg2, result0)
//=}
//=kernel @fused_dot_add_logistic_0 {
//=  in x0: 4x8xf32
//=  in x1: 8x16xf32
//=  in x2: 16xf32
//=  out y0: 4x16xf32
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : f32
//=      %6 = load x1[i4, i1] : f32
//=      %7 = multiply %5, %6 : f32
//=      yield %7
//=    }
//=    %8 = load x2[i1] : f32
//=    %9 = add %3, %8 : f32
//=    %10 = logistic %9 : f32
//=    store %10, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  epilogue (%11, %12, %13) {
//=    %14 = load x2[%13] : f32
//=    %15 = add %11, %14 : f32
//=    %16 = logistic %15 : f32
//=    store %16, y0[%12, %13]
//=  }
//=}
// -----
// an operand that takes arithmetic is computed first
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xi8>, %scale: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.convert %y : (tensor<8x16xi8>) -> tensor<8x16xf32>
  %1 = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<8x16xf32>
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}
//=program @main (arena 512 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8x16xi8 at input 1
//=  arg2: 16xf32 at input 2
//=  result0: 4x16xf32 at output 0
//=  t0: 8x16xf32 at arena 0
//=  launch @multiply_0(arg1, arg2, t0)
//=  launch @dot_0(arg0, t0, result0)
//=}
//=kernel @multiply_0 {
//=  in x0: 8x16xi8
//=  in x1: 16xf32
//=  out y0: 8x16xf32
//=  parallel (i0, i1) < (8, 16) {
//=    %2 = load x0[i0, i1] : i8
//=    %3 = convert %2 dtype=f32 : f32
//=    %4 = load x1[i1] : f32
//=    %5 = multiply %3, %4 : f32
//=    store %5, y0[i0, i1]
//=  }
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xf32
//=  in x1: 8x16xf32
//=  out y0: 4x16xf32
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : f32
//=      %6 = load x1[i4, i1] : f32
//=      %7 = multiply %5, %6 : f32
//=      yield %7
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  epilogue (%8, %9, %10) {
//=    store %8, y0[%9, %10]
//=  }
//=}
// -----
// a batch with a transposed operand and result
func.func @main(%x: tensor<2x4x8xf32>, %y: tensor<2x6x8xf32>) -> tensor<4x2x6xf32> {
  %0 = stablehlo.transpose %y, dims = [0, 2, 1] : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %1 = stablehlo.dot_general %x, %0, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<2x4x6xf32>) -> tensor<4x2x6xf32>
  return %2 : tensor<4x2x6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x4x8xf32 at input 0
//=  arg1: 2x6x8xf32 at input 1
//=  result0: 4x2x6xf32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 2x4x8xf32
//=  in x1: 2x6x8xf32
//=  out y0: 4x2x6xf32
//=  parallel (i0, i1, i2) < (2, 4, 6) {
//=    %3 = 0.0 : f32
//=    %4 = reduction (i5) < (8) onto (%3) with add {
//=      %6 = load x0[i0, i1, i5] : f32
//=      %7 = load x1[i0, i2, i5] : f32
//=      %8 = multiply %6, %7 : f32
//=      yield %8
//=    }
//=    store %4, y0[i1, i0, i2]
//=  }
//=  contraction (batch2 m4 n6 k8) x0[l0, l1, l3] * x1[l0, l2, l3] in f32
//=  epilogue (%9, %10, %11, %12) {
//=    store %9, y0[%11, %10, %12]
//=  }
//=}
// -----
// integers are converted to the type of their sums
func.func @main(%x: tensor<4x8xi8>, %y: tensor<8x4xi8>) -> tensor<4x4xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x8xi8>, tensor<8x4xi8>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xi8 at input 0
//=  arg1: 8x4xi8 at input 1
//=  result0: 4x4xi32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xi8
//=  in x1: 8x4xi8
//=  out y0: 4x4xi32
//=  parallel (i0, i1) < (4, 4) {
//=    %2 = 0 : i32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : i8
//=      %6 = convert %5 dtype=i32 : i32
//=      %7 = load x1[i4, i1] : i8
//=      %8 = convert %7 dtype=i32 : i32
//=      %9 = multiply %6, %8 : i32
//=      yield %9
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=  contraction (m4 n4 k8) x0[l0, l2] * x1[l2, l1] in i32
//=  epilogue (%10, %11, %12) {
//=    store %10, y0[%11, %12]
//=  }
//=}
// -----
// a vector product
func.func @main(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 16xf32 at input 0
//=  arg1: 16xf32 at input 1
//=  result0: f32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 16xf32
//=  in x1: 16xf32
//=  out y0: f32
//=  parallel (i0) < (1) {
//=    %1 = 0.0 : f32
//=    %2 = reduction (i3) < (16) onto (%1) with add {
//=      %4 = load x0[i3] : f32
//=      %5 = load x1[i3] : f32
//=      %6 = multiply %4, %5 : f32
//=      yield %6
//=    }
//=    store %2, y0[]
//=  }
//=  contraction (k16) x0[l0] * x1[l0] in f32
//=  epilogue (%7) {
//=    store %7, y0[]
//=  }
//=}
// -----
// a product whose rows a softmax reads is a kernel of its own
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.exponential %0 : tensor<4x16xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %4 = stablehlo.divide %1, %3 : tensor<4x16xf32>
  return %4 : tensor<4x16xf32>
}
//=program @main (arena 256 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8x16xf32 at input 1
//=  result0: 4x16xf32 at output 0
//=  t0: 4x16xf32 at arena 0
//=  launch @dot_0(arg0, arg1, t0)
//=  launch @fused_exponential_reduce_divide_0(t0, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xf32
//=  in x1: 8x16xf32
//=  out y0: 4x16xf32
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : f32
//=      %6 = load x1[i4, i1] : f32
//=      %7 = multiply %5, %6 : f32
//=      yield %7
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  epilogue (%8, %9, %10) {
//=    store %8, y0[%9, %10]
//=  }
//=}
//=kernel @fused_exponential_reduce_divide_0 {
//=  in x0: 4x16xf32
//=  out y0: 4x16xf32
//=  parallel (i0) < (4) {
//=    scratch scratch2: 16xf32
//=    parallel (i1) < (16) {
//=      %2 = load x0[i0, i1] : f32
//=      %3 = exponential %2 : f32
//=      store %3, scratch2[i1]
//=    }
//=    %4 = 0.0 : f32
//=    %5 = reduction (i6) < (16) onto (%4) with add {
//=      %7 = load scratch2[i6] : f32
//=      yield %7
//=    }
//=    parallel (i8) < (16) {
//=      %9 = load scratch2[i8] : f32
//=      %10 = divide %9, %5 : f32
//=      store %10, y0[i0, i8]
//=    }
//=  }
//=}
// -----
// over an empty dimension every sum is zero
func.func @main(%x: tensor<4x0xf32>, %y: tensor<0x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x0xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x0xf32 at input 0
//=  arg1: 0x4xf32 at input 1
//=  result0: 4x4xf32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x0xf32
//=  in x1: 0x4xf32
//=  out y0: 4x4xf32
//=  parallel (i0, i1) < (4, 4) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (0) onto (%2) with add {
//=      %5 = 0 : i64
//=      %6 = compare i4, %5 direction=GE : i1
//=      %7 = -1 : i64
//=      %8 = compare i4, %7 direction=LE : i1
//=      %9 = and %6, %8 : i1
//=      %10 = 0 : i64
//=      %11 = compare i4, %10 direction=GE : i1
//=      %12 = -1 : i64
//=      %13 = compare i4, %12 direction=LE : i1
//=      %14 = and %11, %13 : i1
//=      %15 = and %9, %14 : i1
//=      %16 = if %15 {
//=        %17 = load x0[i0, i4] : f32
//=        %18 = load x1[i4, i1] : f32
//=        %19 = multiply %17, %18 : f32
//=        yield %19
//=      } else {
//=        yield %2
//=      }
//=      yield %16
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// an algorithm that rounds its operands has a prologue for each
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xf32 at input 0
//=  arg1: 8x16xf32 at input 1
//=  result0: 4x16xf32 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xf32
//=  in x1: 8x16xf32
//=  out y0: 4x16xf32
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : f32
//=      %6 = 0.0 : f32
//=      %7 = convert %5 dtype=bf16 : bf16
//=      %8 = convert %7 dtype=f32 : f32
//=      %9 = add %6, %8 : f32
//=      %10 = is_finite %8 : i1
//=      %11 = subtract %5, %8 : f32
//=      %12 = 0.0 : f32
//=      %13 = select %10, %11, %12 : f32
//=      %14 = load x1[i4, i1] : f32
//=      %15 = 0.0 : f32
//=      %16 = convert %14 dtype=bf16 : bf16
//=      %17 = convert %16 dtype=f32 : f32
//=      %18 = add %15, %17 : f32
//=      %19 = is_finite %17 : i1
//=      %20 = subtract %14, %17 : f32
//=      %21 = 0.0 : f32
//=      %22 = select %19, %20, %21 : f32
//=      %23 = multiply %9, %18 : f32
//=      yield %23
//=    }
//=    store %3, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  lhs_prologue (%24, %25, %26, %27) {
//=    %28 = 0.0 : f32
//=    %29 = convert %24 dtype=bf16 : bf16
//=    %30 = convert %29 dtype=f32 : f32
//=    %31 = add %28, %30 : f32
//=    %32 = is_finite %30 : i1
//=    %33 = subtract %24, %30 : f32
//=    %34 = 0.0 : f32
//=    %35 = select %32, %33, %34 : f32
//=    yield %31
//=  }
//=  rhs_prologue (%36, %37, %38, %39) {
//=    %40 = 0.0 : f32
//=    %41 = convert %36 dtype=bf16 : bf16
//=    %42 = convert %41 dtype=f32 : f32
//=    %43 = add %40, %42 : f32
//=    %44 = is_finite %42 : i1
//=    %45 = subtract %36, %42 : f32
//=    %46 = 0.0 : f32
//=    %47 = select %44, %45, %46 : f32
//=    yield %43
//=  }
//=  epilogue (%48, %49, %50) {
//=    store %48, y0[%49, %50]
//=  }
//=}
