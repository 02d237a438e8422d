// pipeline: split-complex
program @split_complex(%0: tensor<[2, 2], complex64>, %1: tensor<[2, 2], complex64>) {
  %2 = prim.mul(%0, %1) : tensor<[2, 2], complex64>
  %3 = prim.abs(%2) : tensor<[2, 2], float32>
  %4 = prim.exp(%0) : tensor<[2, 2], complex64>
  %5 = prim.reshape(%4) {shape = (4,)} : tensor<[4], complex64>
  %6 = prim.cast(%1) {dtype = "float32"} : tensor<[2, 2], float32>
  return(%3, %5, %6)
}
// ----- becomes
program @split_complex(%0: tensor<[2, 2], complex64>, %1: tensor<[2, 2], complex64>) {
  %2 = prim.real(%0) : tensor<[2, 2], float32>
  %3 = prim.imag(%0) : tensor<[2, 2], float32>
  %4 = prim.real(%1) : tensor<[2, 2], float32>
  %5 = prim.imag(%1) : tensor<[2, 2], float32>
  %6 = prim.mul(%2, %4) : tensor<[2, 2], float32>
  %7 = prim.mul(%3, %5) : tensor<[2, 2], float32>
  %8 = prim.sub(%6, %7) : tensor<[2, 2], float32>
  %9 = prim.mul(%2, %5) : tensor<[2, 2], float32>
  %10 = prim.mul(%3, %4) : tensor<[2, 2], float32>
  %11 = prim.add(%9, %10) : tensor<[2, 2], float32>
  %12 = prim.complex(%8, %11) : tensor<[2, 2], complex64>
  %13 = prim.abs(%8) : tensor<[2, 2], float32>
  %14 = prim.abs(%11) : tensor<[2, 2], float32>
  %15 = prim.maximum(%13, %14) : tensor<[2, 2], float32>
  %16 = prim.minimum(%13, %14) : tensor<[2, 2], float32>
  %17 = prim.div(%16, %15) : tensor<[2, 2], float32>
  %18 = prim.mul(%17, %17) : tensor<[2, 2], float32>
  %19 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %20 = prim.broadcast(%19) {shape = (2, 2), axes = ()} : tensor<[2, 2], float32>
  %21 = prim.add(%18, %20) : tensor<[2, 2], float32>
  %22 = prim.sqrt(%21) : tensor<[2, 2], float32>
  %23 = prim.mul(%15, %22) : tensor<[2, 2], float32>
  %24 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %25 = prim.broadcast(%24) {shape = (2, 2), axes = ()} : tensor<[2, 2], float32>
  %26 = prim.eq(%15, %25) : tensor<[2, 2], bool>
  %27 = prim.select(%26, %15, %23) : tensor<[2, 2], float32>
  %28 = prim.is_inf(%13) : tensor<[2, 2], bool>
  %29 = prim.is_inf(%14) : tensor<[2, 2], bool>
  %30 = prim.logical_or(%28, %29) : tensor<[2, 2], bool>
  %31 = builtin.constant() {value = dense<tensor<[], float32>, inf>} : tensor<[], float32>
  %32 = prim.broadcast(%31) {shape = (2, 2), axes = ()} : tensor<[2, 2], float32>
  %33 = prim.select(%30, %32, %27) : tensor<[2, 2], float32>
  %34 = prim.real(%0) : tensor<[2, 2], float32>
  %35 = prim.imag(%0) : tensor<[2, 2], float32>
  %36 = prim.exp(%34) : tensor<[2, 2], float32>
  %37 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %38 = prim.broadcast(%37) {shape = (2, 2), axes = ()} : tensor<[2, 2], float32>
  %39 = prim.eq(%35, %38) : tensor<[2, 2], bool>
  %40 = prim.sin(%35) : tensor<[2, 2], float32>
  %41 = prim.mul(%36, %40) : tensor<[2, 2], float32>
  %42 = prim.select(%39, %35, %41) : tensor<[2, 2], float32>
  %43 = prim.cos(%35) : tensor<[2, 2], float32>
  %44 = prim.mul(%36, %43) : tensor<[2, 2], float32>
  %45 = prim.complex(%44, %42) : tensor<[2, 2], complex64>
  %46 = prim.reshape(%44) {shape = (4,)} : tensor<[4], float32>
  %47 = prim.reshape(%42) {shape = (4,)} : tensor<[4], float32>
  %48 = prim.complex(%46, %47) : tensor<[4], complex64>
  %49 = prim.real(%1) : tensor<[2, 2], float32>
  %50 = prim.imag(%1) : tensor<[2, 2], float32>
  %51 = prim.cast(%49) {dtype = "float32"} : tensor<[2, 2], float32>
  return(%33, %48, %51)
}
