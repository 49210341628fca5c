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
//=        %26 = compare %18, %9 direction=LT : i1
//=        %27 = compare %19, %13 direction=LT : i1
//=        %28 = not %26 : i1
//=        %29 = load scratch2[%25] : i32
//=        %30 = load scratch2[%22] : i32
//=        %31 = compare %29, %30 direction=LT : i1
//=        %32 = or %28, %31 : i1
//=        %33 = and %27, %32 : i1
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
//=        %62 = compare %54, %45 direction=LT : i1
//=        %63 = compare %55, %49 direction=LT : i1
//=        %64 = not %62 : i1
//=        %65 = load scratch2[%61] : i32
//=        %66 = load scratch2[%58] : i32
//=        %67 = compare %65, %66 direction=LT : i1
//=        %68 = or %64, %67 : i1
//=        %69 = and %63, %68 : i1
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
//=      %94 = compare %86, %79 direction=LT : i1
//=      %95 = compare %87, %82 direction=LT : i1
//=      %96 = not %94 : i1
//=      %97 = load scratch2[%93] : i32
//=      %98 = load scratch2[%90] : i32
//=      %99 = compare %97, %98 direction=LT : i1
//=      %100 = or %96, %99 : i1
//=      %101 = and %95, %100 : i1
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
//=        %26 = compare %18, %9 direction=LT : i1
//=        %27 = compare %19, %13 direction=LT : i1
//=        %28 = not %26 : i1
//=        %29 = load scratch2[%25] : i32
//=        %30 = load scratch2[%22] : i32
//=        %31 = compare %29, %30 direction=GT : i1
//=        %32 = or %28, %31 : i1
//=        %33 = and %27, %32 : i1
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
//=        %62 = compare %54, %45 direction=LT : i1
//=        %63 = compare %55, %49 direction=LT : i1
//=        %64 = not %62 : i1
//=        %65 = load scratch2[%61] : i32
//=        %66 = load scratch2[%58] : i32
//=        %67 = compare %65, %66 direction=GT : i1
//=        %68 = or %64, %67 : i1
//=        %69 = and %63, %68 : i1
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
//=      %94 = compare %86, %79 direction=LT : i1
//=      %95 = compare %87, %82 direction=LT : i1
//=      %96 = not %94 : i1
//=      %97 = load scratch2[%93] : i32
//=      %98 = load scratch2[%90] : i32
//=      %99 = compare %97, %98 direction=GT : i1
//=      %100 = or %96, %99 : i1
//=      %101 = and %95, %100 : i1
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
//=  scratch scratch4: 6xi32
//=  parallel (i0) < (6) {
//=    %1 = load x0[i0] : i32
//=    store %1, scratch4[i0]
//=  }
//=  scratch scratch5: 6xf32
//=  parallel (i2) < (6) {
//=    %3 = load x1[i2] : f32
//=    store %3, scratch5[i2]
//=  }
//=  scratch scratch6: 6xi64
//=  scratch scratch7: 6xi64
//=  parallel (i4) < (6) {
//=    store i4, scratch6[i4]
//=  }
//=  parallel (i5) < (3) {
//=    %6 = i5*2 : i64
//=    %7 = 1 : i64
//=    %8 = add %6, %7 : i64
//=    %9 = 6 : i64
//=    %10 = minimum %8, %9 : i64
//=    %11 = 2 : i64
//=    %12 = add %6, %11 : i64
//=    %13 = 6 : i64
//=    %14 = minimum %12, %13 : i64
//=    %15 = subtract %14, %6 : i64
//=    %16, %17 = sequential (i18) < (%15) carry (%19, %20) = (%6, %10) {
//=      %21 = 5 : i64
//=      %22 = minimum %19, %21 : i64
//=      %23 = load scratch6[%22] : i64
//=      %24 = 5 : i64
//=      %25 = minimum %20, %24 : i64
//=      %26 = load scratch6[%25] : i64
//=      %27 = compare %19, %10 direction=LT : i1
//=      %28 = compare %20, %14 direction=LT : i1
//=      %29 = not %27 : i1
//=      %30 = load scratch4[%26] : i32
//=      %31 = load scratch4[%23] : i32
//=      %32 = load scratch5[%26] : f32
//=      %33 = load scratch5[%23] : f32
//=      %34 = compare %30, %31 direction=LT : i1
//=      %35 = or %29, %34 : i1
//=      %36 = and %28, %35 : i1
//=      %37 = select %36, %26, %23 : i64
//=      store %37, scratch7[i5*2 + i18]
//=      %38 = convert %36 dtype=i64 : i64
//=      %39 = 1 : i64
//=      %40 = subtract %39, %38 : i64
//=      %41 = add %19, %40 : i64
//=      %42 = add %20, %38 : i64
//=      yield %41, %42
//=    }
//=  }
//=  parallel (i43) < (2) {
//=    %44 = i43*4 : i64
//=    %45 = 2 : i64
//=    %46 = add %44, %45 : i64
//=    %47 = 6 : i64
//=    %48 = minimum %46, %47 : i64
//=    %49 = 4 : i64
//=    %50 = add %44, %49 : i64
//=    %51 = 6 : i64
//=    %52 = minimum %50, %51 : i64
//=    %53 = subtract %52, %44 : i64
//=    %54, %55 = sequential (i56) < (%53) carry (%57, %58) = (%44, %48) {
//=      %59 = 5 : i64
//=      %60 = minimum %57, %59 : i64
//=      %61 = load scratch7[%60] : i64
//=      %62 = 5 : i64
//=      %63 = minimum %58, %62 : i64
//=      %64 = load scratch7[%63] : i64
//=      %65 = compare %57, %48 direction=LT : i1
//=      %66 = compare %58, %52 direction=LT : i1
//=      %67 = not %65 : i1
//=      %68 = load scratch4[%64] : i32
//=      %69 = load scratch4[%61] : i32
//=      %70 = load scratch5[%64] : f32
//=      %71 = load scratch5[%61] : f32
//=      %72 = compare %68, %69 direction=LT : i1
//=      %73 = or %67, %72 : i1
//=      %74 = and %66, %73 : i1
//=      %75 = select %74, %64, %61 : i64
//=      store %75, scratch6[i43*4 + i56]
//=      %76 = convert %74 dtype=i64 : i64
//=      %77 = 1 : i64
//=      %78 = subtract %77, %76 : i64
//=      %79 = add %57, %78 : i64
//=      %80 = add %58, %76 : i64
//=      yield %79, %80
//=    }
//=  }
//=  %81 = 0 : i64
//=  %82 = 4 : i64
//=  %83 = 6 : i64
//=  %84 = minimum %82, %83 : i64
//=  %85 = 8 : i64
//=  %86 = 6 : i64
//=  %87 = minimum %85, %86 : i64
//=  %88, %89 = sequential (i90) < (%87) carry (%91, %92) = (%81, %84) {
//=    %93 = 5 : i64
//=    %94 = minimum %91, %93 : i64
//=    %95 = load scratch6[%94] : i64
//=    %96 = 5 : i64
//=    %97 = minimum %92, %96 : i64
//=    %98 = load scratch6[%97] : i64
//=    %99 = compare %91, %84 direction=LT : i1
//=    %100 = compare %92, %87 direction=LT : i1
//=    %101 = not %99 : i1
//=    %102 = load scratch4[%98] : i32
//=    %103 = load scratch4[%95] : i32
//=    %104 = load scratch5[%98] : f32
//=    %105 = load scratch5[%95] : f32
//=    %106 = compare %102, %103 direction=LT : i1
//=    %107 = or %101, %106 : i1
//=    %108 = and %100, %107 : i1
//=    %109 = select %108, %98, %95 : i64
//=    store %109, scratch7[i90]
//=    %110 = convert %108 dtype=i64 : i64
//=    %111 = 1 : i64
//=    %112 = subtract %111, %110 : i64
//=    %113 = add %91, %112 : i64
//=    %114 = add %92, %110 : i64
//=    yield %113, %114
//=  }
//=  parallel (i115) < (6) {
//=    %116 = load scratch7[i115] : i64
//=    %117 = load scratch4[%116] : i32
//=    store %117, y0[i115]
//=    %118 = load scratch5[%116] : f32
//=    store %118, y1[i115]
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
//=        %26 = compare %18, %9 direction=LT : i1
//=        %27 = compare %19, %13 direction=LT : i1
//=        %28 = not %26 : i1
//=        %29 = load scratch3[%25] : f32
//=        %30 = load scratch3[%22] : f32
//=        %31 = compare %29, %30 direction=GT total_order=True : i1
//=        %32 = or %28, %31 : i1
//=        %33 = and %27, %32 : i1
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
//=        %62 = compare %54, %45 direction=LT : i1
//=        %63 = compare %55, %49 direction=LT : i1
//=        %64 = not %62 : i1
//=        %65 = load scratch3[%61] : f32
//=        %66 = load scratch3[%58] : f32
//=        %67 = compare %65, %66 direction=GT total_order=True : i1
//=        %68 = or %64, %67 : i1
//=        %69 = and %63, %68 : i1
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
//=      %94 = compare %86, %79 direction=LT : i1
//=      %95 = compare %87, %82 direction=LT : i1
//=      %96 = not %94 : i1
//=      %97 = load scratch3[%93] : f32
//=      %98 = load scratch3[%90] : f32
//=      %99 = compare %97, %98 direction=GT total_order=True : i1
//=      %100 = or %96, %99 : i1
//=      %101 = and %95, %100 : i1
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
