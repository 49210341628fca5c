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
// -----
// integers that are rounded from numbers of iota are known
func.func @main() -> tensor<6xi32> {
  %0 = stablehlo.iota dim = 0 : tensor<6xf32>
  %1 = stablehlo.constant dense<5.000000e-01> : tensor<6xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<6xf32>
  %3 = stablehlo.convert %2 : (tensor<6xf32>) -> tensor<6xi32>
  return %3 : tensor<6xi32>
}
//=module {
//=  func.func @main() -> tensor<6xi32> {
//=    %0 = stablehlo.iota dim = 0 : tensor<6xf32>
//=    %cst = stablehlo.constant dense<5.000000e-01> : tensor<6xf32>
//=    %1 = stablehlo.multiply %0, %cst : tensor<6xf32>
//=    %c = stablehlo.constant dense<[0, 0, 1, 1, 2, 2]> : tensor<6xi32>
//=    return %c : tensor<6xi32>
//=  }
//=}
// -----
// and are computed if they are many, or depend on an argument
func.func @main(%arg0: tensor<6xf32>) -> (tensor<5000xi32>, tensor<6xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<5000xf32>
  %1 = stablehlo.convert %0 : (tensor<5000xf32>) -> tensor<5000xi32>
  %2 = stablehlo.iota dim = 0 : tensor<6xf32>
  %3 = stablehlo.multiply %2, %arg0 : tensor<6xf32>
  %4 = stablehlo.convert %3 : (tensor<6xf32>) -> tensor<6xi32>
  return %1, %4 : tensor<5000xi32>, tensor<6xi32>
}
//=module {
//=  func.func @main(%arg0: tensor<6xf32>) -> (tensor<5000xi32>, tensor<6xi32>) {
//=    %0 = stablehlo.iota dim = 0 : tensor<5000xf32>
//=    %1 = stablehlo.convert %0 : (tensor<5000xf32>) -> tensor<5000xi32>
//=    %2 = stablehlo.iota dim = 0 : tensor<6xf32>
//=    %3 = stablehlo.multiply %2, %arg0 : tensor<6xf32>
//=    %4 = stablehlo.convert %3 : (tensor<6xf32>) -> tensor<6xi32>
//=    return %1, %4 : tensor<5000xi32>, tensor<6xi32>
//=  }
//=}
