// RUN: first-places
// the first token of a layer's result
func.func @main(%x: tensor<2x5x3xi32>, %w: tensor<3x4xi32>, %r: tensor<2x5x4xi32>, %b: tensor<4xi32>) -> tensor<2x1x4xi32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x5x3xi32>, tensor<3x4xi32>) -> tensor<2x5x4xi32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<4xi32>) -> tensor<2x5x4xi32>
  %2 = stablehlo.add %0, %1 : tensor<2x5x4xi32>
  %3 = stablehlo.add %2, %r : tensor<2x5x4xi32>
  %4 = stablehlo.slice %3 [0:2, 0:1, 0:4] : (tensor<2x5x4xi32>) -> tensor<2x1x4xi32>
  return %4 : tensor<2x1x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<2x5x3xi32>, %w: tensor<3x4xi32>, %r: tensor<2x5x4xi32>, %b: tensor<4xi32>) -> tensor<2x1x4xi32> {
//=    %0 = stablehlo.slice %x [0:2, 0:1, 0:3] : (tensor<2x5x3xi32>) -> tensor<2x1x3xi32>
//=    %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (tensor<2x1x3xi32>, tensor<3x4xi32>) -> tensor<2x1x4xi32>
//=    %2 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<4xi32>) -> tensor<2x1x4xi32>
//=    %3 = stablehlo.add %1, %2 : tensor<2x1x4xi32>
//=    %4 = stablehlo.slice %r [0:2, 0:1, 0:4] : (tensor<2x5x4xi32>) -> tensor<2x1x4xi32>
//=    %5 = stablehlo.add %3, %4 : tensor<2x1x4xi32>
//=    %6 = stablehlo.slice %5 [0:2, 0:1, 0:4] : (tensor<2x1x4xi32>) -> tensor<2x1x4xi32>
//=    return %6 : tensor<2x1x4xi32>
//=  }
//=}
// -----
// the union of what several uses need, also through a product of products and a sum
func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> (tensor<2x4xi32>, tensor<2xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<6x4xi32>) -> tensor<4x6xi32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x6xi32>, tensor<i32>) -> tensor<6xi32>
  %3 = stablehlo.slice %0 [0:3:2, 0:4] : (tensor<6x4xi32>) -> tensor<2x4xi32>
  %4 = stablehlo.slice %2 [0:2] : (tensor<6xi32>) -> tensor<2xi32>
  return %3, %4 : tensor<2x4xi32>, tensor<2xi32>
}
//=module {
//=  func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> (tensor<2x4xi32>, tensor<2xi32>) {
//=    %zero = stablehlo.constant dense<0> : tensor<i32>
//=    %0 = stablehlo.slice %x [0:3, 0:3] : (tensor<6x3xi32>) -> tensor<3x3xi32>
//=    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<3x3xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
//=    %2 = stablehlo.slice %1 [0:2, 0:4] : (tensor<3x4xi32>) -> tensor<2x4xi32>
//=    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x4xi32>) -> tensor<4x2xi32>
//=    %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x2xi32>, tensor<i32>) -> tensor<2xi32>
//=    %5 = stablehlo.slice %1 [0:3:2, 0:4] : (tensor<3x4xi32>) -> tensor<2x4xi32>
//=    %6 = stablehlo.slice %4 [0:2] : (tensor<2xi32>) -> tensor<2xi32>
//=    return %5, %6 : tensor<2x4xi32>, tensor<2xi32>
//=  }
//=}
// -----
// unless all of it is used elsewhere
func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> (tensor<1x4xi32>, tensor<6x4xi32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  %1 = stablehlo.negate %0 : tensor<6x4xi32>
  %2 = stablehlo.slice %1 [0:1, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
  return %2, %0 : tensor<1x4xi32>, tensor<6x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> (tensor<1x4xi32>, tensor<6x4xi32>) {
//=    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
//=    %1 = stablehlo.negate %0 : tensor<6x4xi32>
//=    %2 = stablehlo.slice %1 [0:1, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
//=    return %2, %0 : tensor<1x4xi32>, tensor<6x4xi32>
//=  }
//=}
// -----
// or what is used does not come first
func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> tensor<1x4xi32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  %1 = stablehlo.slice %0 [5:6, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
  return %1 : tensor<1x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> tensor<1x4xi32> {
//=    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
//=    %1 = stablehlo.slice %0 [5:6, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
//=    return %1 : tensor<1x4xi32>
//=  }
//=}
// -----
// an op that mixes the places in between needs all of its operand
func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> tensor<1x4xi32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<6x4xi32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [1] : (tensor<6x4xi32>, tensor<3x4xi32>) -> tensor<6x3xi32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  %4 = stablehlo.slice %3 [0:1, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
  return %4 : tensor<1x4xi32>
}
//=module {
//=  func.func @main(%x: tensor<6x3xi32>, %w: tensor<3x4xi32>) -> tensor<1x4xi32> {
//=    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x3xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
//=    %1 = stablehlo.reverse %0, dims = [0] : tensor<6x4xi32>
//=    %2 = stablehlo.slice %1 [0:1, 0:4] : (tensor<6x4xi32>) -> tensor<1x4xi32>
//=    %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [1] : (tensor<1x4xi32>, tensor<3x4xi32>) -> tensor<1x3xi32>
//=    %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<1x3xi32>, tensor<3x4xi32>) -> tensor<1x4xi32>
//=    %5 = stablehlo.slice %4 [0:1, 0:4] : (tensor<1x4xi32>) -> tensor<1x4xi32>
//=    return %5 : tensor<1x4xi32>
//=  }
//=}
