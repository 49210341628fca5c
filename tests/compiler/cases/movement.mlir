// pad with edges and between elements
func.func @main(%x: tensor<3x4xf32>, %value: tensor<f32>) -> tensor<6x7xf32> {
  %0 = stablehlo.pad %x, %value, low = [1, 0], high = [2, 0], interior = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<6x7xf32>
  return %0 : tensor<6x7xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x4xf32 at input 0
//=  arg1: f32 at input 1
//=  result0: 6x7xf32 at output 0
//=  launch @pad_0_padding(arg1, result0)
//=  launch @pad_0_operand(arg0, result0)
//=}
//=kernel @pad_0_padding {
//=  in x0: f32
//=  out y0: 6x7xf32
//=  parallel (i0, i1) < (6, 7) {
//=    %2 = load x0[] : f32
//=    store %2, y0[i0, i1]
//=  }
//=}
//=kernel @pad_0_operand {
//=  in x0: 3x4xf32
//=  inout z0: 6x7xf32
//=  parallel (i0, i1) < (3, 4) {
//=    %2 = load x0[i0, i1] : f32
//=    store %2, z0[i0 + 1, i1*2]
//=  }
//=}
// -----
// pad takes what its operand is computed from
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = stablehlo.pad %0, %zero, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4xf32 at input 0
//=  result0: 6xf32 at output 0
//=  launch @fused_exponential_pad_0_low0(result0)
//=  launch @fused_exponential_pad_0_high0(result0)
//=  launch @fused_exponential_pad_0_operand(arg0, result0)
//=}
//=kernel @fused_exponential_pad_0_low0 {
//=  out y0: 6xf32
//=  %0 = 0.0 : f32
//=  store %0, y0[0]
//=}
//=kernel @fused_exponential_pad_0_high0 {
//=  inout z0: 6xf32
//=  %0 = 0.0 : f32
//=  store %0, z0[5]
//=}
//=kernel @fused_exponential_pad_0_operand {
//=  in x0: 4xf32
//=  inout z0: 6xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = exponential %1 : f32
//=    store %2, z0[i0 + 1]
//=  }
//=}
// -----
// concatenate along the last dimension
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x2xf32>) -> tensor<3x6xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x4xf32 at input 0
//=  arg1: 3x2xf32 at input 1
//=  result0: 3x6xf32 at output 0
//=  launch @concatenate_0_piece0(arg0, result0)
//=  launch @concatenate_0_piece1(arg1, result0)
//=}
//=kernel @concatenate_0_piece0 {
//=  in x0: 3x4xf32
//=  out y0: 3x6xf32
//=  parallel (i0, i1) < (3, 4) {
//=    %2 = load x0[i0, i1] : f32
//=    store %2, y0[i0, i1]
//=  }
//=}
//=kernel @concatenate_0_piece1 {
//=  in x0: 3x2xf32
//=  inout z0: 3x6xf32
//=  parallel (i0, i1) < (3, 2) {
//=    %2 = load x0[i0, i1] : f32
//=    store %2, z0[i0, i1 + 4]
//=  }
//=}
// -----
// concatenate between elementwise ops: rotated halves
func.func @main(%x: tensor<3x8xf32>, %angle: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %0 = stablehlo.slice %x [0:3, 0:4] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.slice %x [0:3, 4:8] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %2 = stablehlo.negate %1 : tensor<3x4xf32>
  %3 = stablehlo.concatenate %2, %0, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  %4 = stablehlo.multiply %3, %angle : tensor<3x8xf32>
  return %4 : tensor<3x8xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x8xf32 at input 0
//=  arg1: 3x8xf32 at input 1
//=  result0: 3x8xf32 at output 0
//=  launch @fused_negate_concatenate_multiply_0(arg0, arg1, result0)
//=}
//=kernel @fused_negate_concatenate_multiply_0 {
//=  in x0: 3x8xf32
//=  in x1: 3x8xf32
//=  out y0: 3x8xf32
//=  parallel (i0, i1) < (3, 8) {
//=    %2 = 4 : i64
//=    %3 = compare i1, %2 direction=LT : i1
//=    %4 = if %3 {
//=      %5 = load x0[i0, i1 + 4] : f32
//=      %6 = negate %5 : f32
//=      yield %6
//=    } else {
//=      %7 = load x0[i0, i1 - 4] : f32
//=      yield %7
//=    }
//=    %8 = load x1[i0, i1] : f32
//=    %9 = multiply %4, %8 : f32
//=    store %9, y0[i0, i1]
//=  }
//=}
// -----
// slice and reverse are index expressions
func.func @main(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.slice %x [1:7:2, 0:4] : (tensor<8x4xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.reverse %0, dims = [1] : tensor<3x4xf32>
  %2 = stablehlo.negate %1 : tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8x4xf32 at input 0
//=  result0: 3x4xf32 at output 0
//=  launch @fused_reverse_negate_0(arg0, result0)
//=}
//=kernel @fused_reverse_negate_0 {
//=  in x0: 8x4xf32
//=  out y0: 3x4xf32
//=  parallel (i0, i1) < (3, 4) {
//=    %2 = load x0[i0*2 + 1, i1*-1 + 3] : f32
//=    %3 = negate %2 : f32
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// dynamic_slice clamps its start
func.func @main(%x: tensor<8x4xf32>, %i: tensor<i32>) -> tensor<2x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [2, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8x4xf32 at input 0
//=  arg1: i32 at input 1
//=  result0: 2x4xf32 at output 0
//=  launch @dynamic_slice_0(arg1, arg0, result0)
//=}
//=kernel @dynamic_slice_0 {
//=  in x0: i32
//=  in x1: 8x4xf32
//=  out y0: 2x4xf32
//=  parallel (i0, i1) < (2, 4) {
//=    %2 = load x0[] : i32
//=    %3 = 0 : i32
//=    %4 = 6 : i32
//=    %5 = clamp %3, %2, %4 : i32
//=    %6 = convert %5 dtype=i64 : i64
//=    %7 = load x1[%6 + i0, i1] : f32
//=    store %7, y0[i0, i1]
//=  }
//=}
// -----
// dynamic_update_slice writes into a copy
func.func @main(%x: tensor<8x4xf32>, %update: tensor<2x4xf32>, %i: tensor<i32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %update, %i, %zero : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 8x4xf32 at input 0
//=  arg1: 2x4xf32 at input 1
//=  arg2: i32 at input 2
//=  result0: 8x4xf32 at output 0
//=  copy arg0 to result0
//=  launch @dynamic_update_slice_0(result0, arg2, arg1)
//=}
//=kernel @dynamic_update_slice_0 {
//=  inout z0: 8x4xf32
//=  in x0: i32
//=  in x1: 2x4xf32
//=  %0 = load x0[] : i32
//=  %1 = 0 : i32
//=  %2 = 6 : i32
//=  %3 = clamp %1, %0, %2 : i32
//=  %4 = convert %3 dtype=i64 : i64
//=  parallel (i5, i6) < (2, 4) {
//=    %7 = load x1[i5, i6] : f32
//=    store %7, z0[%4 + i5, i6]
//=  }
//=}
// -----
// gather rows of a table, with what follows
func.func @main(%table: tensor<10x4xf32>, %ids: tensor<3x1xi32>) -> tensor<3x4xf32> {
  %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 10x4xf32 at input 0
//=  arg1: 3x1xi32 at input 1
//=  result0: 3x4xf32 at output 0
//=  launch @fused_gather_multiply_0(arg1, arg0, result0)
//=}
//=kernel @fused_gather_multiply_0 {
//=  in x0: 3xi32
//=  in x1: 10x4xf32
//=  out y0: 3x4xf32
//=  parallel (i0, i1) < (3, 4) {
//=    %2 = load x0[i0] : i32
//=    %3 = 0 : i32
//=    %4 = 9 : i32
//=    %5 = clamp %3, %2, %4 : i32
//=    %6 = convert %5 dtype=i64 : i64
//=    %7 = load x1[%6, i1] : f32
//=    %8 = multiply %7, %7 : f32
//=    store %8, y0[i0, i1]
//=  }
//=}
// -----
// scatter adds rows
func.func @main(%x: tensor<6x4xf32>, %ids: tensor<3x1xi32>, %rows: tensor<3x4xf32>) -> tensor<6x4xf32> {
  %0 = "stablehlo.scatter"(%x, %ids, %rows) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 6x4xf32 at input 0
//=  arg1: 3x1xi32 at input 1
//=  arg2: 3x4xf32 at input 2
//=  result0: 6x4xf32 at output 0
//=  copy arg0 to result0
//=  launch @scatter_0(result0, arg1, arg2)
//=}
//=kernel @scatter_0 {
//=  inout z0: 6x4xf32
//=  in x0: 3xi32
//=  in x1: 3x4xf32
//=  parallel (i0) < (3) {
//=    %1 = load x0[i0] : i32
//=    %2 = convert %1 dtype=i64 : i64
//=    parallel (i3) < (4) {
//=      %4 = 0 : i64
//=      %5 = compare %2, %4 direction=GE : i1
//=      %6 = 6 : i64
//=      %7 = compare %2, %6 direction=LT : i1
//=      %8 = and %5, %7 : i1
//=      if %8 {
//=        %9 = load x1[i0, i3] : f32
//=        update z0[%2, i3] with %9 by add
//=      } else {
//=      }
//=    }
//=  }
//=}
// -----
// scatter into zeros
func.func @main(%ids: tensor<3x1xi32>, %numbers: tensor<3xi32>) -> tensor<6xi32> {
  %zeros = stablehlo.constant dense<0> : tensor<6xi32>
  %0 = "stablehlo.scatter"(%zeros, %ids, %numbers) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<6xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<6xi32>
  return %0 : tensor<6xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x1xi32 at input 0
//=  arg1: 3xi32 at input 1
//=  result0: 6xi32 at output 0
//=  constant0: 6xi32 at constant
//=  copy constant0 to result0
//=  launch @scatter_0(result0, arg0, arg1)
//=}
//=kernel @scatter_0 {
//=  inout z0: 6xi32
//=  in x0: 3xi32
//=  in x1: 3xi32
//=  parallel (i0) < (3) {
//=    %1 = load x0[i0] : i32
//=    %2 = convert %1 dtype=i64 : i64
//=    %3 = 0 : i64
//=    %4 = compare %2, %3 direction=GE : i1
//=    %5 = 6 : i64
//=    %6 = compare %2, %5 direction=LT : i1
//=    %7 = and %4, %6 : i1
//=    if %7 {
//=      %8 = load x1[i0] : i32
//=      update z0[%2] with %8 combine (%9, %10) {
//=        yield %10
//=      }
//=    } else {
//=    }
//=  }
//=}
