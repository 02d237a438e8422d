// pipeline: canonicalize
program @fold_constants(%x: tensor<[2, 3], float32>) {
  %0 = builtin.constant() {value = dense<tensor<[], float32>, 2.0>} : tensor<[], float32>
  %1 = prim.broadcast(%0) {shape = (2, 3), axes = ()} : tensor<[2, 3], float32>
  %2 = prim.cast(%0) {dtype = "int32"} : tensor<[], int32>
  %3 = prim.mul(%1, %1) : tensor<[2, 3], float32>
  %4 = prim.transpose(%3) {permutation = (1, 0)} : tensor<[3, 2], float32>
  %5 = prim.lt(%1, %3) : tensor<[2, 3], bool>
  %6 = prim.slice(%3) {start = (0, 0), limit = (0, 3), stride = (1, 1)} : tensor<[0, 3], float32>
  %7 = prim.add(%x, %3) : tensor<[2, 3], float32>
  return(%2, %4, %5, %6, %7)
}
// ----- becomes
program @fold_constants(%x: tensor<[2, 3], float32>) {
  %0 = builtin.constant() {value = dense<tensor<[], int32>, 2>} : tensor<[], int32>
  %1 = builtin.constant() {value = dense<tensor<[2, 3], float32>, 4.0>} : tensor<[2, 3], float32>
  %2 = builtin.constant() {value = dense<tensor<[3, 2], float32>, 4.0>} : tensor<[3, 2], float32>
  %3 = builtin.constant() {value = dense<tensor<[2, 3], bool>, true>} : tensor<[2, 3], bool>
  %4 = builtin.constant() {value = dense<tensor<[0, 3], float32>, 0x>} : tensor<[0, 3], float32>
  %5 = prim.add(%x, %1) : tensor<[2, 3], float32>
  return(%0, %2, %3, %4, %5)
}
