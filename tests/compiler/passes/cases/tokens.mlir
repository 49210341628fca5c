// RUN: erase-tokens
// made, joined and carried by a loop
func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.after_all %0 : !stablehlo.token
  %2:2 = stablehlo.while(%iterArg = %1, %iterArg_0 = %arg0) : !stablehlo.token, tensor<i32>
  cond {
    %c = stablehlo.constant dense<10> : tensor<i32>
    %3 = stablehlo.compare LT, %iterArg_0, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %c = stablehlo.constant dense<10> : tensor<i32>
    %3 = stablehlo.maximum %iterArg_0, %c : tensor<i32>
    stablehlo.return %iterArg, %3 : !stablehlo.token, tensor<i32>
  }
  return %2#1 : tensor<i32>
}
//=module {
//=  func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
//=    %c = stablehlo.constant dense<> : tensor<0xi1>
//=    %c_0 = stablehlo.constant dense<> : tensor<0xi1>
//=    %0:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %arg0) : tensor<0xi1>, tensor<i32>
//=    cond {
//=      %c_2 = stablehlo.constant dense<10> : tensor<i32>
//=      %1 = stablehlo.compare LT, %iterArg_1, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
//=      stablehlo.return %1 : tensor<i1>
//=    } do {
//=      %c_2 = stablehlo.constant dense<10> : tensor<i32>
//=      %1 = stablehlo.maximum %iterArg_1, %c_2 : tensor<i32>
//=      stablehlo.return %iterArg, %1 : tensor<0xi1>, tensor<i32>
//=    }
//=    return %0#1 : tensor<i32>
//=  }
//=}
// -----
// a program without tokens stays as it is
func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
  return %arg0 : tensor<i32>
}
//=module {
//=  func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
//=    return %arg0 : tensor<i32>
//=  }
//=}
