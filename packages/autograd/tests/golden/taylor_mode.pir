// pipeline: taylor-mode,dce
program @taylor_mode(%x: tensor<[5, 1], float32>) {
  %0 = prim.tanh(%x) : tensor<[5, 1], float32>
  %1 = ad.gradient(%0, %x) {counts = (1, 1, 0)} : tensor<[5, 1], float32>
  %2 = ad.gradient(%1, %x) {counts = (1, 1, 0)} : tensor<[5, 1], float32>
  return(%0, %1, %2)
}
// ----- becomes
program @taylor_mode(%x: tensor<[5, 1], float32>) {
  %0 = prim.tanh(%x) : tensor<[5, 1], float32>
  %1 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %2 = prim.broadcast(%1) {shape = (5, 1), axes = ()} : tensor<[5, 1], float32>
  %3 = prim.mul(%0, %0) : tensor<[5, 1], float32>
  %4 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %5 = prim.broadcast(%4) {shape = (5, 1), axes = ()} : tensor<[5, 1], float32>
  %6 = prim.sub(%5, %3) : tensor<[5, 1], float32>
  %7 = prim.mul(%2, %6) : tensor<[5, 1], float32>
  %8 = prim.reshape(%7) {shape = (5, 1, 1)} : tensor<[5, 1, 1], float32>
  %9 = prim.reshape(%8) {shape = (5, 1)} : tensor<[5, 1], float32>
  %10 = prim.mul(%7, %0) : tensor<[5, 1], float32>
  %11 = builtin.constant() {value = dense<tensor<[], float32>, 2.0>} : tensor<[], float32>
  %12 = prim.broadcast(%11) {shape = (5, 1), axes = ()} : tensor<[5, 1], float32>
  %13 = prim.mul(%10, %12) : tensor<[5, 1], float32>
  %14 = prim.neg(%13) : tensor<[5, 1], float32>
  %15 = prim.mul(%2, %14) : tensor<[5, 1], float32>
  %16 = prim.reshape(%15) {shape = (5, 1, 1)} : tensor<[5, 1, 1], float32>
  %17 = prim.reshape(%16) {shape = (5, 1)} : tensor<[5, 1], float32>
  return(%0, %9, %17)
}
