// bf16 is computed in f32 and rounded after each op
func.func @main(%x: tensor<8xbf16>, %y: tensor<8xbf16>) -> tensor<8xbf16> {
  %0 = stablehlo.multiply %x, %y : tensor<8xbf16>
  %1 = stablehlo.add %0, %x : tensor<8xbf16>
  return %1 : tensor<8xbf16>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8xbf16 at input 0
//=  arg1: 8xbf16 at input 1
//=  result0: 8xbf16 at output 0
//=  launch @fused_multiply_add_0(arg0, arg1, result0)
//=}
//=kernel @fused_multiply_add_0 {
//=  in x0: 8xbf16
//=  in x1: 8xbf16
//=  out y0: 8xbf16
//=  parallel (i0) < (8) {
//=    %1 = load x0[i0] : bf16
//=    %2 = load x1[i0] : bf16
//=    %3 = multiply %1, %2 : bf16
//=    %4 = add %3, %1 : bf16
//=    store %4, y0[i0]
//=  }
//=}
// -----
// f16 sums
func.func @main(%x: tensor<4x16xf16>) -> tensor<4xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x16xf16>, tensor<f16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x16xf16 at input 0
//=  result0: 4xf16 at output 0
//=  launch @reduce_0(arg0, result0)
//=}
//=kernel @reduce_0 {
//=  in x0: 4x16xf16
//=  out y0: 4xf16
//=  parallel (i0) < (4) {
//=    %1 = 0.0 : f16
//=    %2 = reduction (i3) < (16) onto (%1) with add {
//=      %4 = load x0[i0, i3] : f16
//=      yield %4
//=    }
//=    store %2, y0[i0]
//=  }
//=}
// -----
// f8 converted to f32
func.func @main(%x: tensor<8xf8E4M3FN>) -> tensor<8xf32> {
  %0 = stablehlo.convert %x : (tensor<8xf8E4M3FN>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8xf8E4M3FN at input 0
//=  result0: 8xf32 at output 0
//=  launch @convert_0(arg0, result0)
//=}
//=kernel @convert_0 {
//=  in x0: 8xf8E4M3FN
//=  out y0: 8xf32
//=  parallel (i0) < (8) {
//=    %1 = load x0[i0] : f8E4M3FN
//=    %2 = convert %1 dtype=f32 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// i4 wraps
func.func @main(%x: tensor<8xi4>, %y: tensor<8xi4>) -> tensor<8xi4> {
  %0 = stablehlo.add %x, %y : tensor<8xi4>
  return %0 : tensor<8xi4>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8xi4 at input 0
//=  arg1: 8xi4 at input 1
//=  result0: 8xi4 at output 0
//=  launch @add_0(arg0, arg1, result0)
//=}
//=kernel @add_0 {
//=  in x0: 8xi4
//=  in x1: 8xi4
//=  out y0: 8xi4
//=  parallel (i0) < (8) {
//=    %1 = load x0[i0] : i4
//=    %2 = load x1[i0] : i4
//=    %3 = add %1, %2 : i4
//=    store %3, y0[i0]
//=  }
//=}
// -----
// quantized elements are integers with a scale
func.func @main(%x: tensor<8x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<8x!quant.uniform<i8:f32, 0.25:0>> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<8x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<8xf32>
  %1 = stablehlo.tanh %0 : tensor<8xf32>
  %2 = stablehlo.uniform_quantize %1 : (tensor<8xf32>) -> tensor<8x!quant.uniform<i8:f32, 0.25:0>>
  return %2 : tensor<8x!quant.uniform<i8:f32, 0.25:0>>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8xi8 at input 0
//=  result0: 8xi8 at output 0
//=  launch @fused_subtract_multiply_tanh_divide_0(arg0, result0)
//=}
//=kernel @fused_subtract_multiply_tanh_divide_0 {
//=  in x0: 8xi8
//=  out y0: 8xi8
//=  parallel (i0) < (8) {
//=    %1 = -128.0 : f32
//=    %2 = load x0[i0] : i8
//=    %3 = convert %2 dtype=i32 : i32
//=    %4 = 3 : i32
//=    %5 = subtract %3, %4 : i32
//=    %6 = convert %5 dtype=f32 : f32
//=    %7 = 0.5 : f32
//=    %8 = multiply %6, %7 : f32
//=    %9 = tanh %8 : f32
//=    %10 = 0.25 : f32
//=    %11 = divide %9, %10 : f32
//=    %12 = 127.0 : f32
//=    %13 = clamp %1, %11, %12 : f32
//=    %14 = round_nearest_even %13 : f32
//=    %15 = convert %14 dtype=i8 : i8
//=    store %15, y0[i0]
//=  }
//=}
// -----
// bits are read as another type
func.func @main(%x: tensor<2x4xi8>) -> tensor<2xf32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<2x4xi8>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x4xi8 at input 0
//=  result0: 2xf32 at output 0
//=  launch @bitcast_convert_0(arg0, result0)
//=}
//=kernel @bitcast_convert_0 {
//=  in x0: 2x4xi8
//=  out y0: 2xf32
//=  parallel (i0) < (2) {
//=    %1 = load x0[i0, 0] : i8
//=    %2 = bitcast_convert %1 dtype=ui8 : ui8
//=    %3 = convert %2 dtype=ui32 : ui32
//=    %4 = load x0[i0, 1] : i8
//=    %5 = bitcast_convert %4 dtype=ui8 : ui8
//=    %6 = convert %5 dtype=ui32 : ui32
//=    %7 = 8 : ui32
//=    %8 = shift_left %6, %7 : ui32
//=    %9 = load x0[i0, 2] : i8
//=    %10 = bitcast_convert %9 dtype=ui8 : ui8
//=    %11 = convert %10 dtype=ui32 : ui32
//=    %12 = 16 : ui32
//=    %13 = shift_left %11, %12 : ui32
//=    %14 = load x0[i0, 3] : i8
//=    %15 = bitcast_convert %14 dtype=ui8 : ui8
//=    %16 = convert %15 dtype=ui32 : ui32
//=    %17 = 24 : ui32
//=    %18 = shift_left %16, %17 : ui32
//=    %19 = or %3, %8 : ui32
//=    %20 = or %19, %13 : ui32
//=    %21 = or %20, %18 : ui32
//=    %22 = bitcast_convert %21 dtype=f32 : f32
//=    store %22, y0[i0]
//=  }
//=}
// -----
// a bf16 contraction
func.func @main(%x: tensor<4x8xbf16>, %y: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4x8xbf16 at input 0
//=  arg1: 8x16xbf16 at input 1
//=  result0: 4x16xbf16 at output 0
//=  launch @dot_0(arg0, arg1, result0)
//=}
//=kernel @dot_0 {
//=  in x0: 4x8xbf16
//=  in x1: 8x16xbf16
//=  out y0: 4x16xbf16
//=  parallel (i0, i1) < (4, 16) {
//=    %2 = 0.0 : f32
//=    %3 = reduction (i4) < (8) onto (%2) with add {
//=      %5 = load x0[i0, i4] : bf16
//=      %6 = convert %5 dtype=f32 : f32
//=      %7 = load x1[i4, i1] : bf16
//=      %8 = convert %7 dtype=f32 : f32
//=      %9 = multiply %6, %8 : f32
//=      yield %9
//=    }
//=    %10 = convert %3 dtype=bf16 : bf16
//=    store %10, y0[i0, i1]
//=  }
//=  contraction (m4 n16 k8) x0[l0, l2] * x1[l2, l1] in f32
//=  epilogue (%11, %12, %13) {
//=    %14 = convert %11 dtype=bf16 : bf16
//=    store %14, y0[%12, %13]
//=  }
//=}
