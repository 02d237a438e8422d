// pipeline: expand-decompositions,simplify,cse,dce
program @expand_decompositions(%0: tensor<[2, 2], float32>) {
  %1 = prim.cholesky(%0) : tensor<[2, 2], float32>
  return(%1)
}
// ----- becomes
program @expand_decompositions(%0: tensor<[2, 2], float32>) {
  %1 = prim.reshape(%0) {shape = (1, 2, 2)} : tensor<[1, 2, 2], float32>
  %2 = prim.iota() {shape = (1, 2, 1), axis = 1, dtype = "int64"} : tensor<[1, 2, 1], int64>
  %3 = prim.iota() {shape = (2,), axis = 0, dtype = "int64"} : tensor<[2], int64>
  %4, %5 = control.scan(%3, %1) {inputs = 1, reverse = false} : tensor<[2, 1, 2], float32>, tensor<[1, 2, 2], float32> region (%6: tensor<[], int64>, %7: tensor<[1, 2, 2], float32>) {
    %8 = builtin.constant() {value = dense<tensor<[], int64>, 0>} : tensor<[], int64>
    %9 = prim.dynamic_slice(%7, %8, %6, %6) {sizes = (1, 1, 1)} : tensor<[1, 1, 1], float32>
    %10 = prim.sqrt(%9) : tensor<[1, 1, 1], float32>
    %11 = prim.broadcast(%6) {shape = (1, 2, 1), axes = ()} : tensor<[1, 2, 1], int64>
    %12 = prim.gt(%2, %11) : tensor<[1, 2, 1], bool>
    %13 = prim.dynamic_slice(%7, %8, %8, %6) {sizes = (1, 2, 1)} : tensor<[1, 2, 1], float32>
    %14 = prim.broadcast(%10) {shape = (1, 2, 1), axes = (0, 1, 2)} : tensor<[1, 2, 1], float32>
    %15 = prim.div(%13, %14) : tensor<[1, 2, 1], float32>
    %16 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
    %17 = prim.cast(%16) {dtype = "float32"} : tensor<[], float32>
    %18 = prim.broadcast(%17) {shape = (1, 2, 1), axes = ()} : tensor<[1, 2, 1], float32>
    %19 = prim.select(%12, %15, %18) : tensor<[1, 2, 1], float32>
    %20 = prim.eq(%2, %11) : tensor<[1, 2, 1], bool>
    %21 = prim.select(%20, %14, %19) : tensor<[1, 2, 1], float32>
    %22 = prim.reshape(%21) {shape = (1, 2)} : tensor<[1, 2], float32>
    %23 = prim.transpose(%21) {permutation = (0, 2, 1)} : tensor<[1, 1, 2], float32>
    %24 = prim.broadcast(%21) {shape = (1, 2, 2), axes = (0, 1, 2)} : tensor<[1, 2, 2], float32>
    %25 = prim.broadcast(%23) {shape = (1, 2, 2), axes = (0, 1, 2)} : tensor<[1, 2, 2], float32>
    %26 = prim.mul(%24, %25) : tensor<[1, 2, 2], float32>
    %27 = prim.sub(%7, %26) : tensor<[1, 2, 2], float32>
    control.yield(%22, %27)
  }
  %28 = prim.transpose(%4) {permutation = (1, 2, 0)} : tensor<[1, 2, 2], float32>
  %29 = prim.reshape(%28) {shape = (2, 2)} : tensor<[2, 2], float32>
  return(%29)
}
