// RUN: dce
// a chain that nobody uses, and a private function that nobody calls
func.func private @unused(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %arg0 : tensor<4xf32>
  %1 = stablehlo.abs %0 : tensor<4xf32>
  return %arg0 : tensor<4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    return %arg0 : tensor<4xf32>
//=  }
//=}
// -----
// a private entry, which nobody calls either
func.func private @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
//=module {
//=  func.func private @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
//=    return %arg0 : tensor<4xf32>
//=  }
//=}
