// pipeline: simplify,dce
program @simplify(%0: tensor<[2, 3], float32>, %1: tensor<[3, 4], float32>) {
  %2 = prim.slice(%0) {start = (0, 0), limit = (0, 3), stride = (1, 1)} : tensor<[0, 3], float32>
  %3 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %4 = prim.broadcast(%3) {shape = (2, 3), axes = ()} : tensor<[2, 3], float32>
  %5 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %6 = prim.broadcast(%5) {shape = (2, 3), axes = ()} : tensor<[2, 3], float32>
  %7 = prim.add(%4, %6) : tensor<[2, 3], float32>
  %8 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %9 = prim.broadcast(%8) {shape = (2, 3), axes = ()} : tensor<[2, 3], float32>
  %10 = prim.mul(%0, %9) : tensor<[2, 3], float32>
  %11 = prim.pow(%10, %7) : tensor<[2, 3], float32>
  %12 = prim.transpose(%1) {permutation = (1, 0)} : tensor<[4, 3], float32>
  %13 = prim.transpose(%12) {permutation = (1, 0)} : tensor<[3, 4], float32>
  %14 = prim.reduce_sum(%2) {axes = (0,)} : tensor<[3], float32>
  %15 = builtin.constant() {value = dense<tensor<[], float32>, 4.0>} : tensor<[], float32>
  %16 = prim.broadcast(%15) {shape = (2, 3), axes = ()} : tensor<[2, 3], float32>
  %17 = prim.div(%0, %16) : tensor<[2, 3], float32>
  %18 = prim.argmax(%0) {axis = 1, dtype = "int64"} : tensor<[2], int64>
  return(%11, %13, %14, %17, %18)
}
// ----- becomes
program @simplify(%0: tensor<[2, 3], float32>, %1: tensor<[3, 4], float32>) {
  %2 = prim.mul(%0, %0) : tensor<[2, 3], float32>
  %3 = builtin.constant() {value = dense<tensor<[3], float32>, 0.0>} : tensor<[3], float32>
  %4 = builtin.constant() {value = dense<tensor<[2, 3], float32>, 0.25>} : tensor<[2, 3], float32>
  %5 = prim.mul(%0, %4) : tensor<[2, 3], float32>
  %6 = prim.reduce_max(%0) {axes = (1,)} : tensor<[2], float32>
  %7 = prim.broadcast(%6) {shape = (2, 3), axes = (0,)} : tensor<[2, 3], float32>
  %8 = prim.eq(%0, %7) : tensor<[2, 3], bool>
  %9 = prim.is_nan(%0) : tensor<[2, 3], bool>
  %10 = prim.logical_or(%8, %9) : tensor<[2, 3], bool>
  %11 = prim.iota() {shape = (2, 3), axis = 1, dtype = "int64"} : tensor<[2, 3], int64>
  %12 = builtin.constant() {value = dense<tensor<[2, 3], int64>, 3>} : tensor<[2, 3], int64>
  %13 = prim.select(%10, %11, %12) : tensor<[2, 3], int64>
  %14 = prim.reduce_min(%13) {axes = (1,)} : tensor<[2], int64>
  return(%2, %1, %3, %5, %14)
}
