// Products whose last bits lie below the smallest number: rounded once or twice, they differ.
module {
  func.func @main(%arg0: tensor<3x3xf64> {random.seed = 1066988060 : i64}, %arg1: tensor<3x3x3xui64> {random.seed = 3 : i64}) -> tensor<3x3x3xf64> {
    %0 = stablehlo.bitcast_convert %arg1 : (tensor<3x3x3xui64>) -> tensor<3x3x3xf64>
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [2] x [0] : (tensor<3x3x3xf64>, tensor<3x3xf64>) -> tensor<3x3x3xf64>
    return %1 : tensor<3x3x3xf64>
  }
}

