// short rows
func.func @main(%x: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x8xi32>) -> tensor<2x8xi32>
  return %0 : tensor<2x8xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x8xi32 at input 0
//=  result0: 2x8xi32 at output 0
//=  launch @sort_0(arg0, result0)
//=}
//=kernel @sort_0 {
//=  in x0: 2x8xi32
//=  out y0: 2x8xi32
//=  parallel (i0) < (2) {
//=    scratch scratch2: 8xi32
//=    parallel (i1) < (8) {
//=      %2 = load x0[i0, i1] : i32
//=      store %2, scratch2[i1]
//=    }
//=    scratch scratch3: 8xi64
//=    scratch scratch4: 8xi64
//=    parallel (i3) < (8) {
//=      store i3, scratch3[i3]
//=    }
//=    parallel (i4) < (4) {
//=      %5 = i4*2 : i64
//=      %6 = 1 : i64
//=      %7 = add %5, %6 : i64
//=      %8 = 8 : i64
//=      %9 = minimum %7, %8 : i64
//=      %10 = 2 : i64
//=      %11 = add %5, %10 : i64
//=      %12 = 8 : i64
//=      %13 = minimum %11, %12 : i64
//=      %14 = subtract %13, %5 : i64
//=      %15, %16 = sequential (i17) < (%14) carry (%18, %19) = (%5, %9) {
//=        %20 = 7 : i64
//=        %21 = minimum %18, %20 : i64
//=        %22 = load scratch3[%21] : i64
//=        %23 = 7 : i64
//=        %24 = minimum %19, %23 : i64
//=        %25 = load scratch3[%24] : i64
//=        %26 = load scratch2[%25] : i32
//=        %27 = load scratch2[%22] : i32
//=        %28 = compare %18, %9 direction=LT : i1
//=        %29 = compare %19, %13 direction=LT : i1
//=        %30 = compare %26, %27 direction=LT : i1
//=        %31 = not %28 : i1
//=        %32 = or %31, %30 : i1
//=        %33 = and %29, %32 : i1
//=        %34 = select %33, %25, %22 : i64
//=        store %34, scratch4[i4*2 + i17]
//=        %35 = convert %33 dtype=i64 : i64
//=        %36 = 1 : i64
//=        %37 = subtract %36, %35 : i64
//=        %38 = add %18, %37 : i64
//=        %39 = add %19, %35 : i64
//=        yield %38, %39
//=      }
//=    }
//=    parallel (i40) < (2) {
//=      %41 = i40*4 : i64
//=      %42 = 2 : i64
//=      %43 = add %41, %42 : i64
//=      %44 = 8 : i64
//=      %45 = minimum %43, %44 : i64
//=      %46 = 4 : i64
//=      %47 = add %41, %46 : i64
//=      %48 = 8 : i64
//=      %49 = minimum %47, %48 : i64
//=      %50 = subtract %49, %41 : i64
//=      %51, %52 = sequential (i53) < (%50) carry (%54, %55) = (%41, %45) {
//=        %56 = 7 : i64
//=        %57 = minimum %54, %56 : i64
//=        %58 = load scratch4[%57] : i64
//=        %59 = 7 : i64
//=        %60 = minimum %55, %59 : i64
//=        %61 = load scratch4[%60] : i64
//=        %62 = load scratch2[%61] : i32
//=        %63 = load scratch2[%58] : i32
//=        %64 = compare %54, %45 direction=LT : i1
//=        %65 = compare %55, %49 direction=LT : i1
//=        %66 = compare %62, %63 direction=LT : i1
//=        %67 = not %64 : i1
//=        %68 = or %67, %66 : i1
//=        %69 = and %65, %68 : i1
//=        %70 = select %69, %61, %58 : i64
//=        store %70, scratch3[i40*4 + i53]
//=        %71 = convert %69 dtype=i64 : i64
//=        %72 = 1 : i64
//=        %73 = subtract %72, %71 : i64
//=        %74 = add %54, %73 : i64
//=        %75 = add %55, %71 : i64
//=        yield %74, %75
//=      }
//=    }
//=    %76 = 0 : i64
//=    %77 = 4 : i64
//=    %78 = 8 : i64
//=    %79 = minimum %77, %78 : i64
//=    %80 = 8 : i64
//=    %81 = 8 : i64
//=    %82 = minimum %80, %81 : i64
//=    %83, %84 = sequential (i85) < (%82) carry (%86, %87) = (%76, %79) {
//=      %88 = 7 : i64
//=      %89 = minimum %86, %88 : i64
//=      %90 = load scratch3[%89] : i64
//=      %91 = 7 : i64
//=      %92 = minimum %87, %91 : i64
//=      %93 = load scratch3[%92] : i64
//=      %94 = load scratch2[%93] : i32
//=      %95 = load scratch2[%90] : i32
//=      %96 = compare %86, %79 direction=LT : i1
//=      %97 = compare %87, %82 direction=LT : i1
//=      %98 = compare %94, %95 direction=LT : i1
//=      %99 = not %96 : i1
//=      %100 = or %99, %98 : i1
//=      %101 = and %97, %100 : i1
//=      %102 = select %101, %93, %90 : i64
//=      store %102, scratch4[i85]
//=      %103 = convert %101 dtype=i64 : i64
//=      %104 = 1 : i64
//=      %105 = subtract %104, %103 : i64
//=      %106 = add %86, %105 : i64
//=      %107 = add %87, %103 : i64
//=      yield %106, %107
//=    }
//=    parallel (i108) < (8) {
//=      %109 = load scratch4[i108] : i64
//=      %110 = load scratch2[%109] : i32
//=      store %110, y0[i0, i108]
//=    }
//=  }
//=}
// -----
// along the outer dimension, stable
func.func @main(%x: tensor<5x2xi32>) -> tensor<5x2xi32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<5x2xi32>) -> tensor<5x2xi32>
  return %0 : tensor<5x2xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 5x2xi32 at input 0
//=  result0: 5x2xi32 at output 0
//=  launch @sort_0(arg0, result0)
//=}
//=kernel @sort_0 {
//=  in x0: 5x2xi32
//=  out y0: 5x2xi32
//=  parallel (i0) < (2) {
//=    scratch scratch2: 5xi32
//=    parallel (i1) < (5) {
//=      %2 = load x0[i1, i0] : i32
//=      store %2, scratch2[i1]
//=    }
//=    scratch scratch3: 5xi64
//=    scratch scratch4: 5xi64
//=    parallel (i3) < (5) {
//=      store i3, scratch3[i3]
//=    }
//=    parallel (i4) < (3) {
//=      %5 = i4*2 : i64
//=      %6 = 1 : i64
//=      %7 = add %5, %6 : i64
//=      %8 = 5 : i64
//=      %9 = minimum %7, %8 : i64
//=      %10 = 2 : i64
//=      %11 = add %5, %10 : i64
//=      %12 = 5 : i64
//=      %13 = minimum %11, %12 : i64
//=      %14 = subtract %13, %5 : i64
//=      %15, %16 = sequential (i17) < (%14) carry (%18, %19) = (%5, %9) {
//=        %20 = 4 : i64
//=        %21 = minimum %18, %20 : i64
//=        %22 = load scratch3[%21] : i64
//=        %23 = 4 : i64
//=        %24 = minimum %19, %23 : i64
//=        %25 = load scratch3[%24] : i64
//=        %26 = load scratch2[%25] : i32
//=        %27 = load scratch2[%22] : i32
//=        %28 = compare %18, %9 direction=LT : i1
//=        %29 = compare %19, %13 direction=LT : i1
//=        %30 = compare %26, %27 direction=GT : i1
//=        %31 = not %28 : i1
//=        %32 = or %31, %30 : i1
//=        %33 = and %29, %32 : i1
//=        %34 = select %33, %25, %22 : i64
//=        store %34, scratch4[i4*2 + i17]
//=        %35 = convert %33 dtype=i64 : i64
//=        %36 = 1 : i64
//=        %37 = subtract %36, %35 : i64
//=        %38 = add %18, %37 : i64
//=        %39 = add %19, %35 : i64
//=        yield %38, %39
//=      }
//=    }
//=    parallel (i40) < (2) {
//=      %41 = i40*4 : i64
//=      %42 = 2 : i64
//=      %43 = add %41, %42 : i64
//=      %44 = 5 : i64
//=      %45 = minimum %43, %44 : i64
//=      %46 = 4 : i64
//=      %47 = add %41, %46 : i64
//=      %48 = 5 : i64
//=      %49 = minimum %47, %48 : i64
//=      %50 = subtract %49, %41 : i64
//=      %51, %52 = sequential (i53) < (%50) carry (%54, %55) = (%41, %45) {
//=        %56 = 4 : i64
//=        %57 = minimum %54, %56 : i64
//=        %58 = load scratch4[%57] : i64
//=        %59 = 4 : i64
//=        %60 = minimum %55, %59 : i64
//=        %61 = load scratch4[%60] : i64
//=        %62 = load scratch2[%61] : i32
//=        %63 = load scratch2[%58] : i32
//=        %64 = compare %54, %45 direction=LT : i1
//=        %65 = compare %55, %49 direction=LT : i1
//=        %66 = compare %62, %63 direction=GT : i1
//=        %67 = not %64 : i1
//=        %68 = or %67, %66 : i1
//=        %69 = and %65, %68 : i1
//=        %70 = select %69, %61, %58 : i64
//=        store %70, scratch3[i40*4 + i53]
//=        %71 = convert %69 dtype=i64 : i64
//=        %72 = 1 : i64
//=        %73 = subtract %72, %71 : i64
//=        %74 = add %54, %73 : i64
//=        %75 = add %55, %71 : i64
//=        yield %74, %75
//=      }
//=    }
//=    %76 = 0 : i64
//=    %77 = 4 : i64
//=    %78 = 5 : i64
//=    %79 = minimum %77, %78 : i64
//=    %80 = 8 : i64
//=    %81 = 5 : i64
//=    %82 = minimum %80, %81 : i64
//=    %83, %84 = sequential (i85) < (%82) carry (%86, %87) = (%76, %79) {
//=      %88 = 4 : i64
//=      %89 = minimum %86, %88 : i64
//=      %90 = load scratch3[%89] : i64
//=      %91 = 4 : i64
//=      %92 = minimum %87, %91 : i64
//=      %93 = load scratch3[%92] : i64
//=      %94 = load scratch2[%93] : i32
//=      %95 = load scratch2[%90] : i32
//=      %96 = compare %86, %79 direction=LT : i1
//=      %97 = compare %87, %82 direction=LT : i1
//=      %98 = compare %94, %95 direction=GT : i1
//=      %99 = not %96 : i1
//=      %100 = or %99, %98 : i1
//=      %101 = and %97, %100 : i1
//=      %102 = select %101, %93, %90 : i64
//=      store %102, scratch4[i85]
//=      %103 = convert %101 dtype=i64 : i64
//=      %104 = 1 : i64
//=      %105 = subtract %104, %103 : i64
//=      %106 = add %86, %105 : i64
//=      %107 = add %87, %103 : i64
//=      yield %106, %107
//=    }
//=    parallel (i108) < (5) {
//=      %109 = load scratch4[i108] : i64
//=      %110 = load scratch2[%109] : i32
//=      store %110, y0[i108, i0]
//=    }
//=  }
//=}
// -----
// keys with the values that belong to them
func.func @main(%keys: tensor<6xi32>, %x: tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>) {
  %0:2 = "stablehlo.sort"(%keys, %x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<6xi32>, tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<6xi32>, tensor<6xf32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 6xi32 at input 0
//=  arg1: 6xf32 at input 1
//=  result0: 6xi32 at output 0
//=  result1: 6xf32 at output 1
//=  launch @sort_0(arg0, arg1, result0, result1)
//=}
//=kernel @sort_0 {
//=  in x0: 6xi32
//=  in x1: 6xf32
//=  out y0: 6xi32
//=  out y1: 6xf32
//=  parallel (i0) < (1) {
//=    scratch scratch4: 6xi32
//=    parallel (i1) < (6) {
//=      %2 = load x0[i1] : i32
//=      store %2, scratch4[i1]
//=    }
//=    scratch scratch5: 6xf32
//=    parallel (i3) < (6) {
//=      %4 = load x1[i3] : f32
//=      store %4, scratch5[i3]
//=    }
//=    scratch scratch6: 6xi64
//=    scratch scratch7: 6xi64
//=    parallel (i5) < (6) {
//=      store i5, scratch6[i5]
//=    }
//=    parallel (i6) < (3) {
//=      %7 = i6*2 : i64
//=      %8 = 1 : i64
//=      %9 = add %7, %8 : i64
//=      %10 = 6 : i64
//=      %11 = minimum %9, %10 : i64
//=      %12 = 2 : i64
//=      %13 = add %7, %12 : i64
//=      %14 = 6 : i64
//=      %15 = minimum %13, %14 : i64
//=      %16 = subtract %15, %7 : i64
//=      %17, %18 = sequential (i19) < (%16) carry (%20, %21) = (%7, %11) {
//=        %22 = 5 : i64
//=        %23 = minimum %20, %22 : i64
//=        %24 = load scratch6[%23] : i64
//=        %25 = 5 : i64
//=        %26 = minimum %21, %25 : i64
//=        %27 = load scratch6[%26] : i64
//=        %28 = load scratch4[%27] : i32
//=        %29 = load scratch5[%27] : f32
//=        %30 = load scratch4[%24] : i32
//=        %31 = load scratch5[%24] : f32
//=        %32 = compare %20, %11 direction=LT : i1
//=        %33 = compare %21, %15 direction=LT : i1
//=        %34 = compare %28, %30 direction=LT : i1
//=        %35 = not %32 : i1
//=        %36 = or %35, %34 : i1
//=        %37 = and %33, %36 : i1
//=        %38 = select %37, %27, %24 : i64
//=        store %38, scratch7[i6*2 + i19]
//=        %39 = convert %37 dtype=i64 : i64
//=        %40 = 1 : i64
//=        %41 = subtract %40, %39 : i64
//=        %42 = add %20, %41 : i64
//=        %43 = add %21, %39 : i64
//=        yield %42, %43
//=      }
//=    }
//=    parallel (i44) < (2) {
//=      %45 = i44*4 : i64
//=      %46 = 2 : i64
//=      %47 = add %45, %46 : i64
//=      %48 = 6 : i64
//=      %49 = minimum %47, %48 : i64
//=      %50 = 4 : i64
//=      %51 = add %45, %50 : i64
//=      %52 = 6 : i64
//=      %53 = minimum %51, %52 : i64
//=      %54 = subtract %53, %45 : i64
//=      %55, %56 = sequential (i57) < (%54) carry (%58, %59) = (%45, %49) {
//=        %60 = 5 : i64
//=        %61 = minimum %58, %60 : i64
//=        %62 = load scratch7[%61] : i64
//=        %63 = 5 : i64
//=        %64 = minimum %59, %63 : i64
//=        %65 = load scratch7[%64] : i64
//=        %66 = load scratch4[%65] : i32
//=        %67 = load scratch5[%65] : f32
//=        %68 = load scratch4[%62] : i32
//=        %69 = load scratch5[%62] : f32
//=        %70 = compare %58, %49 direction=LT : i1
//=        %71 = compare %59, %53 direction=LT : i1
//=        %72 = compare %66, %68 direction=LT : i1
//=        %73 = not %70 : i1
//=        %74 = or %73, %72 : i1
//=        %75 = and %71, %74 : i1
//=        %76 = select %75, %65, %62 : i64
//=        store %76, scratch6[i44*4 + i57]
//=        %77 = convert %75 dtype=i64 : i64
//=        %78 = 1 : i64
//=        %79 = subtract %78, %77 : i64
//=        %80 = add %58, %79 : i64
//=        %81 = add %59, %77 : i64
//=        yield %80, %81
//=      }
//=    }
//=    %82 = 0 : i64
//=    %83 = 4 : i64
//=    %84 = 6 : i64
//=    %85 = minimum %83, %84 : i64
//=    %86 = 8 : i64
//=    %87 = 6 : i64
//=    %88 = minimum %86, %87 : i64
//=    %89, %90 = sequential (i91) < (%88) carry (%92, %93) = (%82, %85) {
//=      %94 = 5 : i64
//=      %95 = minimum %92, %94 : i64
//=      %96 = load scratch6[%95] : i64
//=      %97 = 5 : i64
//=      %98 = minimum %93, %97 : i64
//=      %99 = load scratch6[%98] : i64
//=      %100 = load scratch4[%99] : i32
//=      %101 = load scratch5[%99] : f32
//=      %102 = load scratch4[%96] : i32
//=      %103 = load scratch5[%96] : f32
//=      %104 = compare %92, %85 direction=LT : i1
//=      %105 = compare %93, %88 direction=LT : i1
//=      %106 = compare %100, %102 direction=LT : i1
//=      %107 = not %104 : i1
//=      %108 = or %107, %106 : i1
//=      %109 = and %105, %108 : i1
//=      %110 = select %109, %99, %96 : i64
//=      store %110, scratch7[i91]
//=      %111 = convert %109 dtype=i64 : i64
//=      %112 = 1 : i64
//=      %113 = subtract %112, %111 : i64
//=      %114 = add %92, %113 : i64
//=      %115 = add %93, %111 : i64
//=      yield %114, %115
//=    }
//=    parallel (i116) < (6) {
//=      %117 = load scratch7[i116] : i64
//=      %118 = load scratch4[%117] : i32
//=      %119 = load scratch5[%117] : f32
//=      store %118, y0[i116]
//=      store %119, y1[i116]
//=    }
//=  }
//=}
// -----
// the greatest elements, by top_k
func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %0, %1 = chlo.top_k(%x, k = 3) : tensor<2x8xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xi32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2x8xf32 at input 0
//=  result0: 2x3xf32 at output 0
//=  result1: 2x3xi32 at output 1
//=  launch @top_k_0(arg0, result0, result1)
//=}
//=kernel @top_k_0 {
//=  in x0: 2x8xf32
//=  out y0: 2x3xf32
//=  out y1: 2x3xi32
//=  parallel (i0) < (2) {
//=    scratch scratch3: 8xf32
//=    parallel (i1) < (8) {
//=      %2 = load x0[i0, i1] : f32
//=      store %2, scratch3[i1]
//=    }
//=    scratch scratch4: 8xi64
//=    scratch scratch5: 8xi64
//=    parallel (i3) < (8) {
//=      store i3, scratch4[i3]
//=    }
//=    parallel (i4) < (4) {
//=      %5 = i4*2 : i64
//=      %6 = 1 : i64
//=      %7 = add %5, %6 : i64
//=      %8 = 8 : i64
//=      %9 = minimum %7, %8 : i64
//=      %10 = 2 : i64
//=      %11 = add %5, %10 : i64
//=      %12 = 8 : i64
//=      %13 = minimum %11, %12 : i64
//=      %14 = subtract %13, %5 : i64
//=      %15, %16 = sequential (i17) < (%14) carry (%18, %19) = (%5, %9) {
//=        %20 = 7 : i64
//=        %21 = minimum %18, %20 : i64
//=        %22 = load scratch4[%21] : i64
//=        %23 = 7 : i64
//=        %24 = minimum %19, %23 : i64
//=        %25 = load scratch4[%24] : i64
//=        %26 = load scratch3[%25] : f32
//=        %27 = load scratch3[%22] : f32
//=        %28 = compare %18, %9 direction=LT : i1
//=        %29 = compare %19, %13 direction=LT : i1
//=        %30 = compare %26, %27 direction=GT total_order=True : i1
//=        %31 = not %28 : i1
//=        %32 = or %31, %30 : i1
//=        %33 = and %29, %32 : i1
//=        %34 = select %33, %25, %22 : i64
//=        store %34, scratch5[i4*2 + i17]
//=        %35 = convert %33 dtype=i64 : i64
//=        %36 = 1 : i64
//=        %37 = subtract %36, %35 : i64
//=        %38 = add %18, %37 : i64
//=        %39 = add %19, %35 : i64
//=        yield %38, %39
//=      }
//=    }
//=    parallel (i40) < (2) {
//=      %41 = i40*4 : i64
//=      %42 = 2 : i64
//=      %43 = add %41, %42 : i64
//=      %44 = 8 : i64
//=      %45 = minimum %43, %44 : i64
//=      %46 = 4 : i64
//=      %47 = add %41, %46 : i64
//=      %48 = 8 : i64
//=      %49 = minimum %47, %48 : i64
//=      %50 = subtract %49, %41 : i64
//=      %51, %52 = sequential (i53) < (%50) carry (%54, %55) = (%41, %45) {
//=        %56 = 7 : i64
//=        %57 = minimum %54, %56 : i64
//=        %58 = load scratch5[%57] : i64
//=        %59 = 7 : i64
//=        %60 = minimum %55, %59 : i64
//=        %61 = load scratch5[%60] : i64
//=        %62 = load scratch3[%61] : f32
//=        %63 = load scratch3[%58] : f32
//=        %64 = compare %54, %45 direction=LT : i1
//=        %65 = compare %55, %49 direction=LT : i1
//=        %66 = compare %62, %63 direction=GT total_order=True : i1
//=        %67 = not %64 : i1
//=        %68 = or %67, %66 : i1
//=        %69 = and %65, %68 : i1
//=        %70 = select %69, %61, %58 : i64
//=        store %70, scratch4[i40*4 + i53]
//=        %71 = convert %69 dtype=i64 : i64
//=        %72 = 1 : i64
//=        %73 = subtract %72, %71 : i64
//=        %74 = add %54, %73 : i64
//=        %75 = add %55, %71 : i64
//=        yield %74, %75
//=      }
//=    }
//=    %76 = 0 : i64
//=    %77 = 4 : i64
//=    %78 = 8 : i64
//=    %79 = minimum %77, %78 : i64
//=    %80 = 8 : i64
//=    %81 = 8 : i64
//=    %82 = minimum %80, %81 : i64
//=    %83, %84 = sequential (i85) < (%82) carry (%86, %87) = (%76, %79) {
//=      %88 = 7 : i64
//=      %89 = minimum %86, %88 : i64
//=      %90 = load scratch4[%89] : i64
//=      %91 = 7 : i64
//=      %92 = minimum %87, %91 : i64
//=      %93 = load scratch4[%92] : i64
//=      %94 = load scratch3[%93] : f32
//=      %95 = load scratch3[%90] : f32
//=      %96 = compare %86, %79 direction=LT : i1
//=      %97 = compare %87, %82 direction=LT : i1
//=      %98 = compare %94, %95 direction=GT total_order=True : i1
//=      %99 = not %96 : i1
//=      %100 = or %99, %98 : i1
//=      %101 = and %97, %100 : i1
//=      %102 = select %101, %93, %90 : i64
//=      store %102, scratch5[i85]
//=      %103 = convert %101 dtype=i64 : i64
//=      %104 = 1 : i64
//=      %105 = subtract %104, %103 : i64
//=      %106 = add %86, %105 : i64
//=      %107 = add %87, %103 : i64
//=      yield %106, %107
//=    }
//=    parallel (i108) < (3) {
//=      %109 = load scratch5[i108] : i64
//=      %110 = load scratch3[%109] : f32
//=      store %110, y0[i0, i108]
//=      %111 = convert %109 dtype=i32 : i32
//=      store %111, y1[i0, i108]
//=    }
//=  }
//=}
