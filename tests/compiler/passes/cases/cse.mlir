// RUN: cse
// the same op on the same operands, commuted once
func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
  %1 = stablehlo.add %arg1, %arg0 : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
//=    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
//=    %1 = stablehlo.multiply %0, %0 : tensor<4xf32>
//=    return %1 : tensor<4xf32>
//=  }
//=}
// -----
// attributes tell ops apart
func.func @main(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x2xf32>
  %1 = stablehlo.reverse %arg0, dims = [1] : tensor<2x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}
//=module {
//=  func.func @main(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
//=    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x2xf32>
//=    %1 = stablehlo.reverse %arg0, dims = [1] : tensor<2x2xf32>
//=    %2 = stablehlo.add %0, %1 : tensor<2x2xf32>
//=    return %2 : tensor<2x2xf32>
//=  }
//=}
// -----
// complex maxima are not commuted
func.func @main(%arg0: tensor<4xcomplex<f32>>, %arg1: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %0 = stablehlo.maximum %arg0, %arg1 : tensor<4xcomplex<f32>>
  %1 = stablehlo.maximum %arg1, %arg0 : tensor<4xcomplex<f32>>
  return %0, %1 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
}
//=module {
//=  func.func @main(%arg0: tensor<4xcomplex<f32>>, %arg1: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
//=    %0 = stablehlo.maximum %arg0, %arg1 : tensor<4xcomplex<f32>>
//=    %1 = stablehlo.maximum %arg1, %arg0 : tensor<4xcomplex<f32>>
//=    return %0, %1 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
//=  }
//=}
