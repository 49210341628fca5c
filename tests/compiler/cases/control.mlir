// while
func.func @main(%x: tensor<40xf32>) -> tensor<40xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<40xf32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.cosine %v : tensor<40xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<40xf32>
  }
  return %0#1 : tensor<40xf32>
}
//=program @main (arena 65 bytes) {
//=  arg0: 40xf32 at input 0
//=  result0: 40xf32 at output 0
//=  constant0: i32 at constant
//=  t1: i32 at arena 0
//=  t0: i1 at arena 64
//=  copy constant0 to t1
//=  copy arg0 to result0
//=  while {
//=    launch @compare_0(t1, t0)
//=  } t0 {
//=    launch @add_0(t1, t1)
//=    launch @cosine_0(result0, result0)
//=  }
//=}
//=kernel @compare_0 {
//=  in x0: i32
//=  out y0: i1
//=  %0 = load x0[] : i32
//=  %1 = 5 : i32
//=  %2 = compare %0, %1 direction=LT : i1
//=  store %2, y0[]
//=}
//=kernel @add_0 {
//=  in x0: i32
//=  out y0: i32
//=  %0 = load x0[] : i32
//=  %1 = 1 : i32
//=  %2 = add %0, %1 : i32
//=  store %2, y0[]
//=}
//=kernel @cosine_0 {
//=  in x0: 40xf32
//=  out y0: 40xf32
//=  parallel (i0) < (40) {
//=    %1 = load x0[i0] : f32
//=    %2 = cosine %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// a loop that swaps its values needs a copy
func.func @main(%x: tensor<40xf32>, %y: tensor<40xf32>, %n: tensor<i32>) -> (tensor<40xf32>, tensor<40xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = stablehlo.while(%i = %n, %a = %x, %b = %y) : tensor<i32>, tensor<40xf32>, tensor<40xf32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %1, %b, %a : tensor<i32>, tensor<40xf32>, tensor<40xf32>
  }
  return %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>
}
//=program @main (arena 196 bytes) {
//=  arg0: 40xf32 at input 0
//=  arg1: 40xf32 at input 1
//=  arg2: i32 at input 2
//=  result0: 40xf32 at output 0
//=  result1: 40xf32 at output 1
//=  t1: i32 at arena 192
//=  t0: i1 at arena 0
//=  saved1: 40xf32 at arena 0
//=  copy arg2 to t1
//=  copy arg0 to result0
//=  copy arg1 to result1
//=  while {
//=    launch @compare_0(t1, t0)
//=  } t0 {
//=    launch @add_0(t1, t1)
//=    copy result0 to saved1
//=    copy result1 to result0
//=    copy saved1 to result1
//=  }
//=}
//=kernel @compare_0 {
//=  in x0: i32
//=  out y0: i1
//=  %0 = load x0[] : i32
//=  %1 = 3 : i32
//=  %2 = compare %0, %1 direction=LT : i1
//=  store %2, y0[]
//=}
//=kernel @add_0 {
//=  in x0: i32
//=  out y0: i32
//=  %0 = load x0[] : i32
//=  %1 = 1 : i32
//=  %2 = add %0, %1 : i32
//=  store %2, y0[]
//=}
// -----
// a loop updates its rows in place
func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4x40xf32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %v, %i, %zero, sizes = [1, 40] : (tensor<4x40xf32>, tensor<i32>, tensor<i32>) -> tensor<1x40xf32>
    %2 = stablehlo.negate %1 : tensor<1x40xf32>
    %3 = stablehlo.dynamic_update_slice %v, %2, %i, %zero : (tensor<4x40xf32>, tensor<1x40xf32>, tensor<i32>, tensor<i32>) -> tensor<4x40xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<4x40xf32>
  }
  return %0#1 : tensor<4x40xf32>
}
//=program @main (arena 196 bytes) {
//=  arg0: 4x40xf32 at input 0
//=  result0: 4x40xf32 at output 0
//=  constant0: i32 at constant
//=  t3: i32 at arena 192
//=  t0: i1 at arena 0
//=  t1: 1x40xf32 at arena 0
//=  copy constant0 to t3
//=  copy arg0 to result0
//=  while {
//=    launch @compare_0(t3, t0)
//=  } t0 {
//=    launch @dynamic_slice_0(t3, result0, t1)
//=    launch @dynamic_update_slice_0(result0, t3, t1)
//=    launch @add_0(t3, t3)
//=  }
//=}
//=kernel @compare_0 {
//=  in x0: i32
//=  out y0: i1
//=  %0 = load x0[] : i32
//=  %1 = 4 : i32
//=  %2 = compare %0, %1 direction=LT : i1
//=  store %2, y0[]
//=}
//=kernel @dynamic_slice_0 {
//=  in x0: i32
//=  in x1: 4x40xf32
//=  out y0: 40xf32
//=  parallel (i0) < (40) {
//=    %1 = load x0[] : i32
//=    %2 = 0 : i32
//=    %3 = 3 : i32
//=    %4 = clamp %2, %1, %3 : i32
//=    %5 = convert %4 dtype=i64 : i64
//=    %6 = load x1[%5, i0] : f32
//=    store %6, y0[i0]
//=  }
//=}
//=kernel @dynamic_update_slice_0 {
//=  inout z0: 4x40xf32
//=  in x0: i32
//=  in x1: 40xf32
//=  %0 = load x0[] : i32
//=  %1 = 0 : i32
//=  %2 = 3 : i32
//=  %3 = clamp %1, %0, %2 : i32
//=  %4 = convert %3 dtype=i64 : i64
//=  parallel (i5) < (40) {
//=    %6 = load x1[i5] : f32
//=    %7 = negate %6 : f32
//=    store %7, z0[%4, i5]
//=  }
//=}
//=kernel @add_0 {
//=  in x0: i32
//=  out y0: i32
//=  %0 = load x0[] : i32
//=  %1 = 1 : i32
//=  %2 = add %0, %1 : i32
//=  store %2, y0[]
//=}
// -----
// if
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: i1 at input 0
//=  arg1: 4xf32 at input 1
//=  result0: 4xf32 at output 0
//=  switch arg0 { case 0:
//=    copy arg1 to result0
//=  case 1:
//=    launch @negate_0(arg1, result0)
//=  }
//=}
//=kernel @negate_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = negate %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// case of three branches
func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: i32 at input 0
//=  arg1: 4xf32 at input 1
//=  result0: 4xf32 at output 0
//=  switch arg0 { case 0:
//=    launch @negate_0(arg1, result0)
//=  case 1:
//=    launch @add_0(arg1, result0)
//=  case 2:
//=    copy arg1 to result0
//=  }
//=}
//=kernel @negate_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = negate %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
//=kernel @add_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = add %1, %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// calls are inlined
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4xf32 at input 0
//=  result0: 4xf32 at output 0
//=  launch @add_0(arg0, result0)
//=}
//=kernel @add_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = add %1, %1 : f32
//=    %3 = add %2, %2 : f32
//=    store %3, y0[i0]
//=  }
//=}
// -----
// a barrier divides kernels without a copy
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<4xf32>
  %2 = stablehlo.exponential %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 4xf32 at input 0
//=  result0: 4xf32 at output 0
//=  t0: 4xf32 at output 0
//=  launch @negate_0(arg0, t0)
//=  launch @exponential_0(t0, result0)
//=}
//=kernel @negate_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = negate %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
//=kernel @exponential_0 {
//=  in x0: 4xf32
//=  out y0: 4xf32
//=  parallel (i0) < (4) {
//=    %1 = load x0[i0] : f32
//=    %2 = exponential %1 : f32
//=    store %2, y0[i0]
//=  }
//=}
// -----
// a factorization is a call of the host
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<3x3xf32>
  %1 = stablehlo.negate %0 : tensor<3x3xf32>
  return %1 : tensor<3x3xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 3x3xf32 at input 0
//=  result0: 3x3xf32 at output 0
//=  t0: 3x3xf32 at output 0
//=  call @cholesky(arg0) {batch = 1, order = 3, lower = 1} to (t0)
//=  launch @negate_0(t0, result0)
//=}
//=kernel @negate_0 {
//=  in x0: 3x3xf32
//=  out y0: 3x3xf32
//=  parallel (i0, i1) < (3, 3) {
//=    %2 = load x0[i0, i1] : f32
//=    %3 = negate %2 : f32
//=    store %3, y0[i0, i1]
//=  }
//=}
// -----
// while over scalars
func.func @main(%x: tensor<f32>, %table: tensor<9xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<9> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.dynamic_slice %table, %i, sizes = [1] : (tensor<9xf32>, tensor<i32>) -> tensor<1xf32>
    %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
    %4 = stablehlo.add %v, %3 : tensor<f32>
    stablehlo.return %1, %4 : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}
//=program @main (arena 65 bytes) {
//=  arg0: f32 at input 0
//=  arg1: 9xf32 at input 1
//=  result0: f32 at output 0
//=  constant0: i32 at constant
//=  carried0: i32 at arena 0
//=  t0: i1 at arena 64
//=  copy constant0 to carried0
//=  copy arg0 to result0
//=  while {
//=    launch @compare_0(carried0, t0)
//=  } t0 {
//=    launch @while_0(carried0, result0, arg1)
//=  }
//=}
//=kernel @compare_0 {
//=  in x0: i32
//=  out y0: i1
//=  %0 = load x0[] : i32
//=  %1 = 9 : i32
//=  %2 = compare %0, %1 direction=LT : i1
//=  store %2, y0[]
//=}
//=kernel @while_0 {
//=  inout z0: i32
//=  inout z1: f32
//=  in x0: 9xf32
//=  parallel (i0) < (1) {
//=    %1 = 9 : i32
//=    %2 = 1 : i32
//=    %3 = load x0[0] : f32
//=    %4 = load x0[1] : f32
//=    %5 = load x0[2] : f32
//=    %6 = load x0[3] : f32
//=    %7 = load x0[4] : f32
//=    %8 = load x0[5] : f32
//=    %9 = load x0[6] : f32
//=    %10 = load x0[7] : f32
//=    %11 = load x0[8] : f32
//=    %12 = load z0[] : i32
//=    %13 = load z1[] : f32
//=    %14 = 0 : i64
//=    %15, %16, %17 = while (%18, %19, %20) = (%12, %13, %14) {
//=      %21 = compare %18, %1 direction=LT : i1
//=      %22 = 4096 : i64
//=      %23 = compare %20, %22 direction=LT : i1
//=      %24 = and %21, %23 : i1
//=      yield %24
//=    } do {
//=      %25 = add %18, %2 : i32
//=      %26 = 0 : i32
//=      %27 = 8 : i32
//=      %28 = clamp %26, %18, %27 : i32
//=      %29 = convert %28 dtype=i64 : i64
//=      %30 = load x0[%29] : f32
//=      %31 = add %19, %30 : f32
//=      %32 = 1 : i64
//=      %33 = add %20, %32 : i64
//=      yield %25, %31, %33
//=    }
//=    store %15, z0[]
//=    store %16, z1[]
//=  }
//=}
