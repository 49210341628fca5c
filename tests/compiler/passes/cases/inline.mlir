// RUN: inline
// calls of calls become bodies
func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @four(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @four(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//=    %1 = stablehlo.add %0, %0 : tensor<4xf32>
//=    return %1 : tensor<4xf32>
//=  }
//=}
// -----
// a call inside a region, of a function with a region that holds a call
func.func private @negated(%arg0: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.negate %arg0 : tensor<i32>
  return %0 : tensor<i32>
}
func.func private @chosen(%arg0: tensor<i1>, %arg1: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.if"(%arg0) ({
    %1 = func.call @negated(%arg1) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }, {
    stablehlo.return %arg1 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0 : tensor<i32>
}
func.func @main(%arg0: tensor<i1>, %arg1: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.if"(%arg0) ({
    %1 = func.call @chosen(%arg0, %arg1) : (tensor<i1>, tensor<i32>) -> tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }, {
    %2 = func.call @negated(%arg1) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0 : tensor<i32>
}
//=module {
//=  func.func @main(%arg0: tensor<i1>, %arg1: tensor<i32>) -> tensor<i32> {
//=    %0 = "stablehlo.if"(%arg0) ({
//=      %1 = "stablehlo.if"(%arg0) ({
//=        %2 = stablehlo.negate %arg1 : tensor<i32>
//=        stablehlo.return %2 : tensor<i32>
//=      }, {
//=        stablehlo.return %arg1 : tensor<i32>
//=      }) : (tensor<i1>) -> tensor<i32>
//=      stablehlo.return %1 : tensor<i32>
//=    }, {
//=      %1 = stablehlo.negate %arg1 : tensor<i32>
//=      stablehlo.return %1 : tensor<i32>
//=    }) : (tensor<i1>) -> tensor<i32>
//=    return %0 : tensor<i32>
//=  }
//=}
// -----
// functions that main does not reach are gone, public ones too
func.func @other(%arg0: tensor<f32>) -> tensor<f32> {
  return %arg0 : tensor<f32>
}
func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
  return %arg0 : tensor<f32>
}
//=module {
//=  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
//=    return %arg0 : tensor<f32>
//=  }
//=}
