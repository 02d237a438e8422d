// pipeline: copy-results
program @copy_results(%0: tensor<[2], float32>) state(%1 = "s0": tensor<[2], float32>) {
  %2 = prim.neg(%0) : tensor<[2], float32>
  %3 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %4 = prim.broadcast(%3) {shape = (2,), axes = ()} : tensor<[2], float32>
  return(%0, %2, %2, %4; %1)
}
// ----- becomes
program @copy_results(%0: tensor<[2], float32>) state(%1 = "s0": tensor<[2], float32>) {
  %2 = prim.neg(%0) : tensor<[2], float32>
  %3 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %4 = prim.broadcast(%3) {shape = (2,), axes = ()} : tensor<[2], float32>
  %5 = prim.copy(%2) : tensor<[2], float32>
  %6 = prim.copy(%0) : tensor<[2], float32>
  return(%6, %5, %2, %4; %1)
}
