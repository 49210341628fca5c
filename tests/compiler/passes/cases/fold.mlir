// RUN: fold
// constants are computed, through a chain
func.func @main() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.constant dense<3> : tensor<2xi32>
  %2 = stablehlo.multiply %0, %1 : tensor<2xi32>
  %3 = stablehlo.negate %2 : tensor<2xi32>
  return %3 : tensor<2xi32>
}
//=module {
//=  func.func @main() -> tensor<2xi32> {
//=    %c = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
//=    %c_0 = stablehlo.constant dense<3> : tensor<2xi32>
//=    %c_1 = stablehlo.constant dense<[3, 6]> : tensor<2xi32>
//=    %c_2 = stablehlo.constant dense<[-3, -6]> : tensor<2xi32>
//=    return %c_2 : tensor<2xi32>
//=  }
//=}
// -----
// a splat is computed once, however large
func.func @main() -> tensor<1000x1000xf32> {
  %0 = stablehlo.constant dense<2.0> : tensor<1000x1000xf32>
  %1 = stablehlo.sqrt %0 : tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}
//=module {
//=  func.func @main() -> tensor<1000x1000xf32> {
//=    %cst = stablehlo.constant dense<2.000000e+00> : tensor<1000x1000xf32>
//=    %cst_0 = stablehlo.constant dense<1.41421354> : tensor<1000x1000xf32>
//=    return %cst_0 : tensor<1000x1000xf32>
//=  }
//=}
