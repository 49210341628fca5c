// Philox, with what follows
func.func @main(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>) {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  %two = stablehlo.constant dense<2> : tensor<8xui32>
  %2 = stablehlo.shift_right_logical %1, %two : tensor<8xui32>
  return %0, %2 : tensor<2xui64>, tensor<8xui32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2xui64 at input 0
//=  result0: 2xui64 at output 0
//=  result1: 8xui32 at output 1
//=  t1: 8xui32 at output 1
//=  launch @rng_bit_generator_0(arg0, t1)
//=  launch @rng_bit_generator_0_state(arg0, result0)
//=  launch @shift_right_logical_0(t1, result1)
//=}
//=kernel @rng_bit_generator_0 {
//=  in x0: 2xui64
//=  out y0: 8xui32
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  parallel (i2) < (2) {
//=    %3 = convert i2 dtype=ui64 : ui64
//=    %4 = add %1, %3 : ui64
//=    %5 = compare %4, %1 direction=LT : i1
//=    %6 = convert %5 dtype=ui64 : ui64
//=    %7 = add %0, %6 : ui64
//=    %8 = convert %0 dtype=ui32 : ui32
//=    %9 = 32 : ui64
//=    %10 = shift_right_logical %0, %9 : ui64
//=    %11 = convert %10 dtype=ui32 : ui32
//=    %12 = convert %4 dtype=ui32 : ui32
//=    %13 = 32 : ui64
//=    %14 = shift_right_logical %4, %13 : ui64
//=    %15 = convert %14 dtype=ui32 : ui32
//=    %16 = convert %7 dtype=ui32 : ui32
//=    %17 = 32 : ui64
//=    %18 = shift_right_logical %7, %17 : ui64
//=    %19 = convert %18 dtype=ui32 : ui32
//=    %20 = convert %12 dtype=ui64 : ui64
//=    %21 = 3528531795 : ui64
//=    %22 = multiply %20, %21 : ui64
//=    %23 = convert %22 dtype=ui32 : ui32
//=    %24 = 32 : ui64
//=    %25 = shift_right_logical %22, %24 : ui64
//=    %26 = convert %25 dtype=ui32 : ui32
//=    %27 = convert %16 dtype=ui64 : ui64
//=    %28 = 3449720151 : ui64
//=    %29 = multiply %27, %28 : ui64
//=    %30 = convert %29 dtype=ui32 : ui32
//=    %31 = 32 : ui64
//=    %32 = shift_right_logical %29, %31 : ui64
//=    %33 = convert %32 dtype=ui32 : ui32
//=    %34 = xor %33, %15 : ui32
//=    %35 = xor %34, %8 : ui32
//=    %36 = xor %26, %19 : ui32
//=    %37 = xor %36, %11 : ui32
//=    %38 = 2654435769 : ui32
//=    %39 = add %8, %38 : ui32
//=    %40 = 3144134277 : ui32
//=    %41 = add %11, %40 : ui32
//=    %42 = convert %35 dtype=ui64 : ui64
//=    %43 = 3528531795 : ui64
//=    %44 = multiply %42, %43 : ui64
//=    %45 = convert %44 dtype=ui32 : ui32
//=    %46 = 32 : ui64
//=    %47 = shift_right_logical %44, %46 : ui64
//=    %48 = convert %47 dtype=ui32 : ui32
//=    %49 = convert %37 dtype=ui64 : ui64
//=    %50 = 3449720151 : ui64
//=    %51 = multiply %49, %50 : ui64
//=    %52 = convert %51 dtype=ui32 : ui32
//=    %53 = 32 : ui64
//=    %54 = shift_right_logical %51, %53 : ui64
//=    %55 = convert %54 dtype=ui32 : ui32
//=    %56 = xor %55, %30 : ui32
//=    %57 = xor %56, %39 : ui32
//=    %58 = xor %48, %23 : ui32
//=    %59 = xor %58, %41 : ui32
//=    %60 = 2654435769 : ui32
//=    %61 = add %39, %60 : ui32
//=    %62 = 3144134277 : ui32
//=    %63 = add %41, %62 : ui32
//=    %64 = convert %57 dtype=ui64 : ui64
//=    %65 = 3528531795 : ui64
//=    %66 = multiply %64, %65 : ui64
//=    %67 = convert %66 dtype=ui32 : ui32
//=    %68 = 32 : ui64
//=    %69 = shift_right_logical %66, %68 : ui64
//=    %70 = convert %69 dtype=ui32 : ui32
//=    %71 = convert %59 dtype=ui64 : ui64
//=    %72 = 3449720151 : ui64
//=    %73 = multiply %71, %72 : ui64
//=    %74 = convert %73 dtype=ui32 : ui32
//=    %75 = 32 : ui64
//=    %76 = shift_right_logical %73, %75 : ui64
//=    %77 = convert %76 dtype=ui32 : ui32
//=    %78 = xor %77, %52 : ui32
//=    %79 = xor %78, %61 : ui32
//=    %80 = xor %70, %45 : ui32
//=    %81 = xor %80, %63 : ui32
//=    %82 = 2654435769 : ui32
//=    %83 = add %61, %82 : ui32
//=    %84 = 3144134277 : ui32
//=    %85 = add %63, %84 : ui32
//=    %86 = convert %79 dtype=ui64 : ui64
//=    %87 = 3528531795 : ui64
//=    %88 = multiply %86, %87 : ui64
//=    %89 = convert %88 dtype=ui32 : ui32
//=    %90 = 32 : ui64
//=    %91 = shift_right_logical %88, %90 : ui64
//=    %92 = convert %91 dtype=ui32 : ui32
//=    %93 = convert %81 dtype=ui64 : ui64
//=    %94 = 3449720151 : ui64
//=    %95 = multiply %93, %94 : ui64
//=    %96 = convert %95 dtype=ui32 : ui32
//=    %97 = 32 : ui64
//=    %98 = shift_right_logical %95, %97 : ui64
//=    %99 = convert %98 dtype=ui32 : ui32
//=    %100 = xor %99, %74 : ui32
//=    %101 = xor %100, %83 : ui32
//=    %102 = xor %92, %67 : ui32
//=    %103 = xor %102, %85 : ui32
//=    %104 = 2654435769 : ui32
//=    %105 = add %83, %104 : ui32
//=    %106 = 3144134277 : ui32
//=    %107 = add %85, %106 : ui32
//=    %108 = convert %101 dtype=ui64 : ui64
//=    %109 = 3528531795 : ui64
//=    %110 = multiply %108, %109 : ui64
//=    %111 = convert %110 dtype=ui32 : ui32
//=    %112 = 32 : ui64
//=    %113 = shift_right_logical %110, %112 : ui64
//=    %114 = convert %113 dtype=ui32 : ui32
//=    %115 = convert %103 dtype=ui64 : ui64
//=    %116 = 3449720151 : ui64
//=    %117 = multiply %115, %116 : ui64
//=    %118 = convert %117 dtype=ui32 : ui32
//=    %119 = 32 : ui64
//=    %120 = shift_right_logical %117, %119 : ui64
//=    %121 = convert %120 dtype=ui32 : ui32
//=    %122 = xor %121, %96 : ui32
//=    %123 = xor %122, %105 : ui32
//=    %124 = xor %114, %89 : ui32
//=    %125 = xor %124, %107 : ui32
//=    %126 = 2654435769 : ui32
//=    %127 = add %105, %126 : ui32
//=    %128 = 3144134277 : ui32
//=    %129 = add %107, %128 : ui32
//=    %130 = convert %123 dtype=ui64 : ui64
//=    %131 = 3528531795 : ui64
//=    %132 = multiply %130, %131 : ui64
//=    %133 = convert %132 dtype=ui32 : ui32
//=    %134 = 32 : ui64
//=    %135 = shift_right_logical %132, %134 : ui64
//=    %136 = convert %135 dtype=ui32 : ui32
//=    %137 = convert %125 dtype=ui64 : ui64
//=    %138 = 3449720151 : ui64
//=    %139 = multiply %137, %138 : ui64
//=    %140 = convert %139 dtype=ui32 : ui32
//=    %141 = 32 : ui64
//=    %142 = shift_right_logical %139, %141 : ui64
//=    %143 = convert %142 dtype=ui32 : ui32
//=    %144 = xor %143, %118 : ui32
//=    %145 = xor %144, %127 : ui32
//=    %146 = xor %136, %111 : ui32
//=    %147 = xor %146, %129 : ui32
//=    %148 = 2654435769 : ui32
//=    %149 = add %127, %148 : ui32
//=    %150 = 3144134277 : ui32
//=    %151 = add %129, %150 : ui32
//=    %152 = convert %145 dtype=ui64 : ui64
//=    %153 = 3528531795 : ui64
//=    %154 = multiply %152, %153 : ui64
//=    %155 = convert %154 dtype=ui32 : ui32
//=    %156 = 32 : ui64
//=    %157 = shift_right_logical %154, %156 : ui64
//=    %158 = convert %157 dtype=ui32 : ui32
//=    %159 = convert %147 dtype=ui64 : ui64
//=    %160 = 3449720151 : ui64
//=    %161 = multiply %159, %160 : ui64
//=    %162 = convert %161 dtype=ui32 : ui32
//=    %163 = 32 : ui64
//=    %164 = shift_right_logical %161, %163 : ui64
//=    %165 = convert %164 dtype=ui32 : ui32
//=    %166 = xor %165, %140 : ui32
//=    %167 = xor %166, %149 : ui32
//=    %168 = xor %158, %133 : ui32
//=    %169 = xor %168, %151 : ui32
//=    %170 = 2654435769 : ui32
//=    %171 = add %149, %170 : ui32
//=    %172 = 3144134277 : ui32
//=    %173 = add %151, %172 : ui32
//=    %174 = convert %167 dtype=ui64 : ui64
//=    %175 = 3528531795 : ui64
//=    %176 = multiply %174, %175 : ui64
//=    %177 = convert %176 dtype=ui32 : ui32
//=    %178 = 32 : ui64
//=    %179 = shift_right_logical %176, %178 : ui64
//=    %180 = convert %179 dtype=ui32 : ui32
//=    %181 = convert %169 dtype=ui64 : ui64
//=    %182 = 3449720151 : ui64
//=    %183 = multiply %181, %182 : ui64
//=    %184 = convert %183 dtype=ui32 : ui32
//=    %185 = 32 : ui64
//=    %186 = shift_right_logical %183, %185 : ui64
//=    %187 = convert %186 dtype=ui32 : ui32
//=    %188 = xor %187, %162 : ui32
//=    %189 = xor %188, %171 : ui32
//=    %190 = xor %180, %155 : ui32
//=    %191 = xor %190, %173 : ui32
//=    %192 = 2654435769 : ui32
//=    %193 = add %171, %192 : ui32
//=    %194 = 3144134277 : ui32
//=    %195 = add %173, %194 : ui32
//=    %196 = convert %189 dtype=ui64 : ui64
//=    %197 = 3528531795 : ui64
//=    %198 = multiply %196, %197 : ui64
//=    %199 = convert %198 dtype=ui32 : ui32
//=    %200 = 32 : ui64
//=    %201 = shift_right_logical %198, %200 : ui64
//=    %202 = convert %201 dtype=ui32 : ui32
//=    %203 = convert %191 dtype=ui64 : ui64
//=    %204 = 3449720151 : ui64
//=    %205 = multiply %203, %204 : ui64
//=    %206 = convert %205 dtype=ui32 : ui32
//=    %207 = 32 : ui64
//=    %208 = shift_right_logical %205, %207 : ui64
//=    %209 = convert %208 dtype=ui32 : ui32
//=    %210 = xor %209, %184 : ui32
//=    %211 = xor %210, %193 : ui32
//=    %212 = xor %202, %177 : ui32
//=    %213 = xor %212, %195 : ui32
//=    %214 = 2654435769 : ui32
//=    %215 = add %193, %214 : ui32
//=    %216 = 3144134277 : ui32
//=    %217 = add %195, %216 : ui32
//=    %218 = convert %211 dtype=ui64 : ui64
//=    %219 = 3528531795 : ui64
//=    %220 = multiply %218, %219 : ui64
//=    %221 = convert %220 dtype=ui32 : ui32
//=    %222 = 32 : ui64
//=    %223 = shift_right_logical %220, %222 : ui64
//=    %224 = convert %223 dtype=ui32 : ui32
//=    %225 = convert %213 dtype=ui64 : ui64
//=    %226 = 3449720151 : ui64
//=    %227 = multiply %225, %226 : ui64
//=    %228 = convert %227 dtype=ui32 : ui32
//=    %229 = 32 : ui64
//=    %230 = shift_right_logical %227, %229 : ui64
//=    %231 = convert %230 dtype=ui32 : ui32
//=    %232 = xor %231, %206 : ui32
//=    %233 = xor %232, %215 : ui32
//=    %234 = xor %224, %199 : ui32
//=    %235 = xor %234, %217 : ui32
//=    %236 = 2654435769 : ui32
//=    %237 = add %215, %236 : ui32
//=    %238 = 3144134277 : ui32
//=    %239 = add %217, %238 : ui32
//=    store %233, y0[i2*4]
//=    store %228, y0[i2*4 + 1]
//=    store %235, y0[i2*4 + 2]
//=    store %221, y0[i2*4 + 3]
//=  }
//=}
//=kernel @rng_bit_generator_0_state {
//=  in x0: 2xui64
//=  out y0: 2xui64
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  %2 = 2 : ui64
//=  %3 = add %1, %2 : ui64
//=  %4 = compare %3, %1 direction=LT : i1
//=  %5 = convert %4 dtype=ui64 : ui64
//=  %6 = add %0, %5 : ui64
//=  store %0, y0[0]
//=  store %3, y0[1]
//=}
//=kernel @shift_right_logical_0 {
//=  in x0: 8xui32
//=  out y0: 8xui32
//=  parallel (i0) < (8) {
//=    %1 = load x0[i0] : ui32
//=    %2 = 2 : ui32
//=    %3 = shift_right_logical %1, %2 : ui32
//=    store %3, y0[i0]
//=  }
//=}
// -----
// Threefry
func.func @main(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %0, %1 : tensor<2xui64>, tensor<4xui32>
}
//=program @main (arena 0 bytes) {
//=  arg0: 2xui64 at input 0
//=  result0: 2xui64 at output 0
//=  result1: 4xui32 at output 1
//=  launch @rng_bit_generator_0(arg0, result1)
//=  launch @rng_bit_generator_0_state(arg0, result0)
//=}
//=kernel @rng_bit_generator_0 {
//=  in x0: 2xui64
//=  out y0: 4xui32
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  parallel (i2) < (2) {
//=    %3 = convert i2 dtype=ui64 : ui64
//=    %4 = add %1, %3 : ui64
//=    %5 = convert %0 dtype=ui32 : ui32
//=    %6 = 32 : ui64
//=    %7 = shift_right_logical %0, %6 : ui64
//=    %8 = convert %7 dtype=ui32 : ui32
//=    %9 = convert %4 dtype=ui32 : ui32
//=    %10 = 32 : ui64
//=    %11 = shift_right_logical %4, %10 : ui64
//=    %12 = convert %11 dtype=ui32 : ui32
//=    %13 = xor %5, %8 : ui32
//=    %14 = 466688986 : ui32
//=    %15 = xor %13, %14 : ui32
//=    %16 = add %9, %5 : ui32
//=    %17 = add %12, %8 : ui32
//=    %18 = add %16, %17 : ui32
//=    %19 = 13 : ui32
//=    %20 = shift_left %17, %19 : ui32
//=    %21 = 19 : ui32
//=    %22 = shift_right_logical %17, %21 : ui32
//=    %23 = or %20, %22 : ui32
//=    %24 = xor %18, %23 : ui32
//=    %25 = add %18, %24 : ui32
//=    %26 = 15 : ui32
//=    %27 = shift_left %24, %26 : ui32
//=    %28 = 17 : ui32
//=    %29 = shift_right_logical %24, %28 : ui32
//=    %30 = or %27, %29 : ui32
//=    %31 = xor %25, %30 : ui32
//=    %32 = add %25, %31 : ui32
//=    %33 = 26 : ui32
//=    %34 = shift_left %31, %33 : ui32
//=    %35 = 6 : ui32
//=    %36 = shift_right_logical %31, %35 : ui32
//=    %37 = or %34, %36 : ui32
//=    %38 = xor %32, %37 : ui32
//=    %39 = add %32, %38 : ui32
//=    %40 = 6 : ui32
//=    %41 = shift_left %38, %40 : ui32
//=    %42 = 26 : ui32
//=    %43 = shift_right_logical %38, %42 : ui32
//=    %44 = or %41, %43 : ui32
//=    %45 = xor %39, %44 : ui32
//=    %46 = add %39, %8 : ui32
//=    %47 = add %45, %15 : ui32
//=    %48 = 1 : ui32
//=    %49 = add %47, %48 : ui32
//=    %50 = add %46, %49 : ui32
//=    %51 = 17 : ui32
//=    %52 = shift_left %49, %51 : ui32
//=    %53 = 15 : ui32
//=    %54 = shift_right_logical %49, %53 : ui32
//=    %55 = or %52, %54 : ui32
//=    %56 = xor %50, %55 : ui32
//=    %57 = add %50, %56 : ui32
//=    %58 = 29 : ui32
//=    %59 = shift_left %56, %58 : ui32
//=    %60 = 3 : ui32
//=    %61 = shift_right_logical %56, %60 : ui32
//=    %62 = or %59, %61 : ui32
//=    %63 = xor %57, %62 : ui32
//=    %64 = add %57, %63 : ui32
//=    %65 = 16 : ui32
//=    %66 = shift_left %63, %65 : ui32
//=    %67 = 16 : ui32
//=    %68 = shift_right_logical %63, %67 : ui32
//=    %69 = or %66, %68 : ui32
//=    %70 = xor %64, %69 : ui32
//=    %71 = add %64, %70 : ui32
//=    %72 = 24 : ui32
//=    %73 = shift_left %70, %72 : ui32
//=    %74 = 8 : ui32
//=    %75 = shift_right_logical %70, %74 : ui32
//=    %76 = or %73, %75 : ui32
//=    %77 = xor %71, %76 : ui32
//=    %78 = add %71, %15 : ui32
//=    %79 = add %77, %5 : ui32
//=    %80 = 2 : ui32
//=    %81 = add %79, %80 : ui32
//=    %82 = add %78, %81 : ui32
//=    %83 = 13 : ui32
//=    %84 = shift_left %81, %83 : ui32
//=    %85 = 19 : ui32
//=    %86 = shift_right_logical %81, %85 : ui32
//=    %87 = or %84, %86 : ui32
//=    %88 = xor %82, %87 : ui32
//=    %89 = add %82, %88 : ui32
//=    %90 = 15 : ui32
//=    %91 = shift_left %88, %90 : ui32
//=    %92 = 17 : ui32
//=    %93 = shift_right_logical %88, %92 : ui32
//=    %94 = or %91, %93 : ui32
//=    %95 = xor %89, %94 : ui32
//=    %96 = add %89, %95 : ui32
//=    %97 = 26 : ui32
//=    %98 = shift_left %95, %97 : ui32
//=    %99 = 6 : ui32
//=    %100 = shift_right_logical %95, %99 : ui32
//=    %101 = or %98, %100 : ui32
//=    %102 = xor %96, %101 : ui32
//=    %103 = add %96, %102 : ui32
//=    %104 = 6 : ui32
//=    %105 = shift_left %102, %104 : ui32
//=    %106 = 26 : ui32
//=    %107 = shift_right_logical %102, %106 : ui32
//=    %108 = or %105, %107 : ui32
//=    %109 = xor %103, %108 : ui32
//=    %110 = add %103, %5 : ui32
//=    %111 = add %109, %8 : ui32
//=    %112 = 3 : ui32
//=    %113 = add %111, %112 : ui32
//=    %114 = add %110, %113 : ui32
//=    %115 = 17 : ui32
//=    %116 = shift_left %113, %115 : ui32
//=    %117 = 15 : ui32
//=    %118 = shift_right_logical %113, %117 : ui32
//=    %119 = or %116, %118 : ui32
//=    %120 = xor %114, %119 : ui32
//=    %121 = add %114, %120 : ui32
//=    %122 = 29 : ui32
//=    %123 = shift_left %120, %122 : ui32
//=    %124 = 3 : ui32
//=    %125 = shift_right_logical %120, %124 : ui32
//=    %126 = or %123, %125 : ui32
//=    %127 = xor %121, %126 : ui32
//=    %128 = add %121, %127 : ui32
//=    %129 = 16 : ui32
//=    %130 = shift_left %127, %129 : ui32
//=    %131 = 16 : ui32
//=    %132 = shift_right_logical %127, %131 : ui32
//=    %133 = or %130, %132 : ui32
//=    %134 = xor %128, %133 : ui32
//=    %135 = add %128, %134 : ui32
//=    %136 = 24 : ui32
//=    %137 = shift_left %134, %136 : ui32
//=    %138 = 8 : ui32
//=    %139 = shift_right_logical %134, %138 : ui32
//=    %140 = or %137, %139 : ui32
//=    %141 = xor %135, %140 : ui32
//=    %142 = add %135, %8 : ui32
//=    %143 = add %141, %15 : ui32
//=    %144 = 4 : ui32
//=    %145 = add %143, %144 : ui32
//=    %146 = add %142, %145 : ui32
//=    %147 = 13 : ui32
//=    %148 = shift_left %145, %147 : ui32
//=    %149 = 19 : ui32
//=    %150 = shift_right_logical %145, %149 : ui32
//=    %151 = or %148, %150 : ui32
//=    %152 = xor %146, %151 : ui32
//=    %153 = add %146, %152 : ui32
//=    %154 = 15 : ui32
//=    %155 = shift_left %152, %154 : ui32
//=    %156 = 17 : ui32
//=    %157 = shift_right_logical %152, %156 : ui32
//=    %158 = or %155, %157 : ui32
//=    %159 = xor %153, %158 : ui32
//=    %160 = add %153, %159 : ui32
//=    %161 = 26 : ui32
//=    %162 = shift_left %159, %161 : ui32
//=    %163 = 6 : ui32
//=    %164 = shift_right_logical %159, %163 : ui32
//=    %165 = or %162, %164 : ui32
//=    %166 = xor %160, %165 : ui32
//=    %167 = add %160, %166 : ui32
//=    %168 = 6 : ui32
//=    %169 = shift_left %166, %168 : ui32
//=    %170 = 26 : ui32
//=    %171 = shift_right_logical %166, %170 : ui32
//=    %172 = or %169, %171 : ui32
//=    %173 = xor %167, %172 : ui32
//=    %174 = add %167, %15 : ui32
//=    %175 = add %173, %5 : ui32
//=    %176 = 5 : ui32
//=    %177 = add %175, %176 : ui32
//=    store %174, y0[i2*2]
//=    store %177, y0[i2*2 + 1]
//=  }
//=}
//=kernel @rng_bit_generator_0_state {
//=  in x0: 2xui64
//=  out y0: 2xui64
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  %2 = 2 : ui64
//=  %3 = add %1, %2 : ui64
//=  store %0, y0[0]
//=  store %3, y0[1]
//=}
// -----
// numbers from a state that the program does not see
func.func @main(%low: tensor<f32>, %high: tensor<f32>) -> tensor<8xf32> {
  %shape = stablehlo.constant dense<8> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
//=program @main (arena 152 bytes) {
//=  arg0: f32 at input 0
//=  arg1: f32 at input 1
//=  result0: 8xf32 at output 0
//=  t0: 3xui64 at arena 64
//=  t2: 8xui32 at arena 0
//=  t1: 3xui64 at arena 128
//=  call @trivium.random_state() {} to (t0)
//=  launch @rng_bit_generator_0(t0, t2)
//=  launch @rng_bit_generator_0_state(t0, t1)
//=  launch @fused_shift_right_logical_multiply_subtract_add_0(arg0, t2, arg1, result0)
//=}
//=kernel @rng_bit_generator_0 {
//=  in x0: 3xui64
//=  out y0: 8xui32
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  %2 = load x0[2] : ui64
//=  parallel (i3) < (2) {
//=    %4 = convert i3 dtype=ui64 : ui64
//=    %5 = add %1, %4 : ui64
//=    %6 = compare %5, %1 direction=LT : i1
//=    %7 = convert %6 dtype=ui64 : ui64
//=    %8 = add %2, %7 : ui64
//=    %9 = convert %0 dtype=ui32 : ui32
//=    %10 = 32 : ui64
//=    %11 = shift_right_logical %0, %10 : ui64
//=    %12 = convert %11 dtype=ui32 : ui32
//=    %13 = convert %5 dtype=ui32 : ui32
//=    %14 = 32 : ui64
//=    %15 = shift_right_logical %5, %14 : ui64
//=    %16 = convert %15 dtype=ui32 : ui32
//=    %17 = convert %8 dtype=ui32 : ui32
//=    %18 = 32 : ui64
//=    %19 = shift_right_logical %8, %18 : ui64
//=    %20 = convert %19 dtype=ui32 : ui32
//=    %21 = convert %13 dtype=ui64 : ui64
//=    %22 = 3528531795 : ui64
//=    %23 = multiply %21, %22 : ui64
//=    %24 = convert %23 dtype=ui32 : ui32
//=    %25 = 32 : ui64
//=    %26 = shift_right_logical %23, %25 : ui64
//=    %27 = convert %26 dtype=ui32 : ui32
//=    %28 = convert %17 dtype=ui64 : ui64
//=    %29 = 3449720151 : ui64
//=    %30 = multiply %28, %29 : ui64
//=    %31 = convert %30 dtype=ui32 : ui32
//=    %32 = 32 : ui64
//=    %33 = shift_right_logical %30, %32 : ui64
//=    %34 = convert %33 dtype=ui32 : ui32
//=    %35 = xor %34, %16 : ui32
//=    %36 = xor %35, %9 : ui32
//=    %37 = xor %27, %20 : ui32
//=    %38 = xor %37, %12 : ui32
//=    %39 = 2654435769 : ui32
//=    %40 = add %9, %39 : ui32
//=    %41 = 3144134277 : ui32
//=    %42 = add %12, %41 : ui32
//=    %43 = convert %36 dtype=ui64 : ui64
//=    %44 = 3528531795 : ui64
//=    %45 = multiply %43, %44 : ui64
//=    %46 = convert %45 dtype=ui32 : ui32
//=    %47 = 32 : ui64
//=    %48 = shift_right_logical %45, %47 : ui64
//=    %49 = convert %48 dtype=ui32 : ui32
//=    %50 = convert %38 dtype=ui64 : ui64
//=    %51 = 3449720151 : ui64
//=    %52 = multiply %50, %51 : ui64
//=    %53 = convert %52 dtype=ui32 : ui32
//=    %54 = 32 : ui64
//=    %55 = shift_right_logical %52, %54 : ui64
//=    %56 = convert %55 dtype=ui32 : ui32
//=    %57 = xor %56, %31 : ui32
//=    %58 = xor %57, %40 : ui32
//=    %59 = xor %49, %24 : ui32
//=    %60 = xor %59, %42 : ui32
//=    %61 = 2654435769 : ui32
//=    %62 = add %40, %61 : ui32
//=    %63 = 3144134277 : ui32
//=    %64 = add %42, %63 : ui32
//=    %65 = convert %58 dtype=ui64 : ui64
//=    %66 = 3528531795 : ui64
//=    %67 = multiply %65, %66 : ui64
//=    %68 = convert %67 dtype=ui32 : ui32
//=    %69 = 32 : ui64
//=    %70 = shift_right_logical %67, %69 : ui64
//=    %71 = convert %70 dtype=ui32 : ui32
//=    %72 = convert %60 dtype=ui64 : ui64
//=    %73 = 3449720151 : ui64
//=    %74 = multiply %72, %73 : ui64
//=    %75 = convert %74 dtype=ui32 : ui32
//=    %76 = 32 : ui64
//=    %77 = shift_right_logical %74, %76 : ui64
//=    %78 = convert %77 dtype=ui32 : ui32
//=    %79 = xor %78, %53 : ui32
//=    %80 = xor %79, %62 : ui32
//=    %81 = xor %71, %46 : ui32
//=    %82 = xor %81, %64 : ui32
//=    %83 = 2654435769 : ui32
//=    %84 = add %62, %83 : ui32
//=    %85 = 3144134277 : ui32
//=    %86 = add %64, %85 : ui32
//=    %87 = convert %80 dtype=ui64 : ui64
//=    %88 = 3528531795 : ui64
//=    %89 = multiply %87, %88 : ui64
//=    %90 = convert %89 dtype=ui32 : ui32
//=    %91 = 32 : ui64
//=    %92 = shift_right_logical %89, %91 : ui64
//=    %93 = convert %92 dtype=ui32 : ui32
//=    %94 = convert %82 dtype=ui64 : ui64
//=    %95 = 3449720151 : ui64
//=    %96 = multiply %94, %95 : ui64
//=    %97 = convert %96 dtype=ui32 : ui32
//=    %98 = 32 : ui64
//=    %99 = shift_right_logical %96, %98 : ui64
//=    %100 = convert %99 dtype=ui32 : ui32
//=    %101 = xor %100, %75 : ui32
//=    %102 = xor %101, %84 : ui32
//=    %103 = xor %93, %68 : ui32
//=    %104 = xor %103, %86 : ui32
//=    %105 = 2654435769 : ui32
//=    %106 = add %84, %105 : ui32
//=    %107 = 3144134277 : ui32
//=    %108 = add %86, %107 : ui32
//=    %109 = convert %102 dtype=ui64 : ui64
//=    %110 = 3528531795 : ui64
//=    %111 = multiply %109, %110 : ui64
//=    %112 = convert %111 dtype=ui32 : ui32
//=    %113 = 32 : ui64
//=    %114 = shift_right_logical %111, %113 : ui64
//=    %115 = convert %114 dtype=ui32 : ui32
//=    %116 = convert %104 dtype=ui64 : ui64
//=    %117 = 3449720151 : ui64
//=    %118 = multiply %116, %117 : ui64
//=    %119 = convert %118 dtype=ui32 : ui32
//=    %120 = 32 : ui64
//=    %121 = shift_right_logical %118, %120 : ui64
//=    %122 = convert %121 dtype=ui32 : ui32
//=    %123 = xor %122, %97 : ui32
//=    %124 = xor %123, %106 : ui32
//=    %125 = xor %115, %90 : ui32
//=    %126 = xor %125, %108 : ui32
//=    %127 = 2654435769 : ui32
//=    %128 = add %106, %127 : ui32
//=    %129 = 3144134277 : ui32
//=    %130 = add %108, %129 : ui32
//=    %131 = convert %124 dtype=ui64 : ui64
//=    %132 = 3528531795 : ui64
//=    %133 = multiply %131, %132 : ui64
//=    %134 = convert %133 dtype=ui32 : ui32
//=    %135 = 32 : ui64
//=    %136 = shift_right_logical %133, %135 : ui64
//=    %137 = convert %136 dtype=ui32 : ui32
//=    %138 = convert %126 dtype=ui64 : ui64
//=    %139 = 3449720151 : ui64
//=    %140 = multiply %138, %139 : ui64
//=    %141 = convert %140 dtype=ui32 : ui32
//=    %142 = 32 : ui64
//=    %143 = shift_right_logical %140, %142 : ui64
//=    %144 = convert %143 dtype=ui32 : ui32
//=    %145 = xor %144, %119 : ui32
//=    %146 = xor %145, %128 : ui32
//=    %147 = xor %137, %112 : ui32
//=    %148 = xor %147, %130 : ui32
//=    %149 = 2654435769 : ui32
//=    %150 = add %128, %149 : ui32
//=    %151 = 3144134277 : ui32
//=    %152 = add %130, %151 : ui32
//=    %153 = convert %146 dtype=ui64 : ui64
//=    %154 = 3528531795 : ui64
//=    %155 = multiply %153, %154 : ui64
//=    %156 = convert %155 dtype=ui32 : ui32
//=    %157 = 32 : ui64
//=    %158 = shift_right_logical %155, %157 : ui64
//=    %159 = convert %158 dtype=ui32 : ui32
//=    %160 = convert %148 dtype=ui64 : ui64
//=    %161 = 3449720151 : ui64
//=    %162 = multiply %160, %161 : ui64
//=    %163 = convert %162 dtype=ui32 : ui32
//=    %164 = 32 : ui64
//=    %165 = shift_right_logical %162, %164 : ui64
//=    %166 = convert %165 dtype=ui32 : ui32
//=    %167 = xor %166, %141 : ui32
//=    %168 = xor %167, %150 : ui32
//=    %169 = xor %159, %134 : ui32
//=    %170 = xor %169, %152 : ui32
//=    %171 = 2654435769 : ui32
//=    %172 = add %150, %171 : ui32
//=    %173 = 3144134277 : ui32
//=    %174 = add %152, %173 : ui32
//=    %175 = convert %168 dtype=ui64 : ui64
//=    %176 = 3528531795 : ui64
//=    %177 = multiply %175, %176 : ui64
//=    %178 = convert %177 dtype=ui32 : ui32
//=    %179 = 32 : ui64
//=    %180 = shift_right_logical %177, %179 : ui64
//=    %181 = convert %180 dtype=ui32 : ui32
//=    %182 = convert %170 dtype=ui64 : ui64
//=    %183 = 3449720151 : ui64
//=    %184 = multiply %182, %183 : ui64
//=    %185 = convert %184 dtype=ui32 : ui32
//=    %186 = 32 : ui64
//=    %187 = shift_right_logical %184, %186 : ui64
//=    %188 = convert %187 dtype=ui32 : ui32
//=    %189 = xor %188, %163 : ui32
//=    %190 = xor %189, %172 : ui32
//=    %191 = xor %181, %156 : ui32
//=    %192 = xor %191, %174 : ui32
//=    %193 = 2654435769 : ui32
//=    %194 = add %172, %193 : ui32
//=    %195 = 3144134277 : ui32
//=    %196 = add %174, %195 : ui32
//=    %197 = convert %190 dtype=ui64 : ui64
//=    %198 = 3528531795 : ui64
//=    %199 = multiply %197, %198 : ui64
//=    %200 = convert %199 dtype=ui32 : ui32
//=    %201 = 32 : ui64
//=    %202 = shift_right_logical %199, %201 : ui64
//=    %203 = convert %202 dtype=ui32 : ui32
//=    %204 = convert %192 dtype=ui64 : ui64
//=    %205 = 3449720151 : ui64
//=    %206 = multiply %204, %205 : ui64
//=    %207 = convert %206 dtype=ui32 : ui32
//=    %208 = 32 : ui64
//=    %209 = shift_right_logical %206, %208 : ui64
//=    %210 = convert %209 dtype=ui32 : ui32
//=    %211 = xor %210, %185 : ui32
//=    %212 = xor %211, %194 : ui32
//=    %213 = xor %203, %178 : ui32
//=    %214 = xor %213, %196 : ui32
//=    %215 = 2654435769 : ui32
//=    %216 = add %194, %215 : ui32
//=    %217 = 3144134277 : ui32
//=    %218 = add %196, %217 : ui32
//=    %219 = convert %212 dtype=ui64 : ui64
//=    %220 = 3528531795 : ui64
//=    %221 = multiply %219, %220 : ui64
//=    %222 = convert %221 dtype=ui32 : ui32
//=    %223 = 32 : ui64
//=    %224 = shift_right_logical %221, %223 : ui64
//=    %225 = convert %224 dtype=ui32 : ui32
//=    %226 = convert %214 dtype=ui64 : ui64
//=    %227 = 3449720151 : ui64
//=    %228 = multiply %226, %227 : ui64
//=    %229 = convert %228 dtype=ui32 : ui32
//=    %230 = 32 : ui64
//=    %231 = shift_right_logical %228, %230 : ui64
//=    %232 = convert %231 dtype=ui32 : ui32
//=    %233 = xor %232, %207 : ui32
//=    %234 = xor %233, %216 : ui32
//=    %235 = xor %225, %200 : ui32
//=    %236 = xor %235, %218 : ui32
//=    %237 = 2654435769 : ui32
//=    %238 = add %216, %237 : ui32
//=    %239 = 3144134277 : ui32
//=    %240 = add %218, %239 : ui32
//=    store %234, y0[i3*4]
//=    store %229, y0[i3*4 + 1]
//=    store %236, y0[i3*4 + 2]
//=    store %222, y0[i3*4 + 3]
//=  }
//=}
//=kernel @rng_bit_generator_0_state {
//=  in x0: 3xui64
//=  out y0: 3xui64
//=  %0 = load x0[0] : ui64
//=  %1 = load x0[1] : ui64
//=  %2 = load x0[2] : ui64
//=  %3 = 2 : ui64
//=  %4 = add %1, %3 : ui64
//=  %5 = compare %4, %1 direction=LT : i1
//=  %6 = convert %5 dtype=ui64 : ui64
//=  %7 = add %2, %6 : ui64
//=  store %0, y0[0]
//=  store %4, y0[1]
//=  store %7, y0[2]
//=}
//=kernel @fused_shift_right_logical_multiply_subtract_add_0 {
//=  in x0: f32
//=  in x1: 8xui32
//=  in x2: f32
//=  out y0: 8xf32
//=  parallel (i0) < (8) {
//=    %1 = load x0[] : f32
//=    %2 = 1.0 : f32
//=    %3 = load x1[i0] : ui32
//=    %4 = 8 : ui32
//=    %5 = shift_right_logical %3, %4 : ui32
//=    %6 = convert %5 dtype=f32 : f32
//=    %7 = 5.960464477539063e-08 : f32
//=    %8 = multiply %6, %7 : f32
//=    %9 = subtract %2, %8 : f32
//=    %10 = multiply %1, %9 : f32
//=    %11 = load x2[] : f32
//=    %12 = multiply %11, %8 : f32
//=    %13 = add %10, %12 : f32
//=    %14 = maximum %13, %1 : f32
//=    %15 = compare %14, %11 direction=LT : i1
//=    %16 = select %15, %14, %1 : f32
//=    store %16, y0[i0]
//=  }
//=}
