// Two slices became one that started beyond the operand.
module {
  func.func @main(%arg0: tensor<5x3xf32> {random.seed = 1 : i64}) -> tensor<0x3xf32> {
    %0 = stablehlo.slice %arg0 [3:5:3, 0:3] : (tensor<5x3xf32>) -> tensor<1x3xf32>
    %1 = stablehlo.slice %0 [1:1, 0:3] : (tensor<1x3xf32>) -> tensor<0x3xf32>
    return %1 : tensor<0x3xf32>
  }
}
