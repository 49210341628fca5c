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
//=  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//=    return %0 : tensor<4xf32>
//=  }
//=  func.func private @four(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//=    %1 = stablehlo.add %0, %0 : tensor<4xf32>
//=    return %1 : tensor<4xf32>
//=  }
//=  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
//=    %1 = stablehlo.add %0, %0 : tensor<4xf32>
//=    return %1 : tensor<4xf32>
//=  }
//=}
