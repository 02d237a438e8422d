// pipeline: transforms-to-products,simplify,cse,dce
program @transforms_to_products(%0: tensor<[3, 4], complex64>) {
  %1 = prim.fft(%0) {axes = (1,), kind = "c2c", inverse = false, length = 0} : tensor<[3, 4], complex64>
  return(%1)
}
// ----- becomes
program @transforms_to_products(%0: tensor<[3, 4], complex64>) {
  %1 = prim.reshape(%0) {shape = (3, 4, 1)} : tensor<[3, 4, 1], complex64>
  %2 = builtin.constant() {value = dense<tensor<[4, 4], float32>, 0x0000803f0000803f0000803f0000803f0000803f00000080000080bf000000000000803f000080bf0000803f000080bf0000803f00000000000080bf00000080>} : tensor<[4, 4], float32>
  %3 = builtin.constant() {value = dense<tensor<[4, 4], float32>, 0x0000000000000000000000000000000000000000000080bf000000000000803f00000000000000000000000000000000000000000000803f00000000000080bf>} : tensor<[4, 4], float32>
  %4 = prim.complex(%2, %3) : tensor<[4, 4], complex64>
  %5 = prim.dot_general(%1, %4) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[3, 1, 4], complex64>
  %6 = prim.reshape(%5) {shape = (3, 4)} : tensor<[3, 4], complex64>
  return(%6)
}
