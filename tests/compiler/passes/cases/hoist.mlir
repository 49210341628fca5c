// RUN: hoist
// a product of what never changes, with its operand; what is cheap stays
func.func @main(%w: tensor<2x2xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %v = %x, %same = %w) : tensor<i32>, tensor<2xf32>, tensor<2x2xf32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.negate %same : tensor<2x2xf32>
    %3 = stablehlo.dot_general %2, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %4 = stablehlo.abs %x : tensor<2xf32>
    %5 = stablehlo.add %4, %v : tensor<2xf32>
    %6 = stablehlo.add %3, %5 : tensor<2xf32>
    stablehlo.return %1, %6, %same : tensor<i32>, tensor<2xf32>, tensor<2x2xf32>
  }
  return %0#1 : tensor<2xf32>
}
//=module {
//=  func.func @main(%w: tensor<2x2xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %one = stablehlo.constant dense<1> : tensor<i32>
//=    %limit = stablehlo.constant dense<3> : tensor<i32>
//=    %0 = stablehlo.negate %w : tensor<2x2xf32>
//=    %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
//=    %2:3 = stablehlo.while(%i = %zero, %v = %x, %same = %w) : tensor<i32>, tensor<2xf32>, tensor<2x2xf32>
//=    cond {
//=      %3 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
//=      stablehlo.return %3 : tensor<i1>
//=    } do {
//=      %3 = stablehlo.add %i, %one : tensor<i32>
//=      %4 = stablehlo.abs %x : tensor<2xf32>
//=      %5 = stablehlo.add %4, %v : tensor<2xf32>
//=      %6 = stablehlo.add %1, %5 : tensor<2xf32>
//=      stablehlo.return %3, %6, %same : tensor<i32>, tensor<2xf32>, tensor<2x2xf32>
//=    }
//=    return %2#1 : tensor<2xf32>
//=  }
//=}
// -----
// out of two loops
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2xf32>
    cond {
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2:2 = stablehlo.while(%j = %zero, %u = %v) : tensor<i32>, tensor<2xf32>
      cond {
      %3 = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.add %j, %one : tensor<i32>
      %4 = stablehlo.tanh %x : tensor<2xf32>
      %5 = stablehlo.exponential %v : tensor<2xf32>
      %6 = stablehlo.multiply %4, %5 : tensor<2xf32>
      %7 = stablehlo.subtract %6, %u : tensor<2xf32>
      stablehlo.return %3, %7 : tensor<i32>, tensor<2xf32>
    }
    stablehlo.return %1, %2#1 : tensor<i32>, tensor<2xf32>
  }
  return %0#1 : tensor<2xf32>
}
//=module {
//=  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %one = stablehlo.constant dense<1> : tensor<i32>
//=    %limit = stablehlo.constant dense<3> : tensor<i32>
//=    %0 = stablehlo.tanh %x : tensor<2xf32>
//=    %1:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2xf32>
//=    cond {
//=      %2 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
//=      stablehlo.return %2 : tensor<i1>
//=    } do {
//=      %2 = stablehlo.add %i, %one : tensor<i32>
//=      %3 = stablehlo.exponential %v : tensor<2xf32>
//=      %4:2 = stablehlo.while(%j = %zero, %u = %v) : tensor<i32>, tensor<2xf32>
//=      cond {
//=        %5 = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
//=        stablehlo.return %5 : tensor<i1>
//=      } do {
//=        %5 = stablehlo.add %j, %one : tensor<i32>
//=        %6 = stablehlo.multiply %0, %3 : tensor<2xf32>
//=        %7 = stablehlo.subtract %6, %u : tensor<2xf32>
//=        stablehlo.return %5, %7 : tensor<i32>, tensor<2xf32>
//=      }
//=      stablehlo.return %2, %4#1 : tensor<i32>, tensor<2xf32>
//=    }
//=    return %1#1 : tensor<2xf32>
//=  }
//=}
