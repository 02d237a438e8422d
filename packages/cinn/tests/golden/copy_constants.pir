// pipeline: copy-constants
program @copy_constants(%x: tensor<[4, n], float32>) {
  %k = builtin.constant() {value = dense<tensor<[n, 3], float32>, 2.0>} : tensor<[n, 3], float32>
  %y = prim.dot_general(%x, %k) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 3], float32>
  %z = prim.add(%k, %k) : tensor<[n, 3], float32>
  return(%y, %z)
}
// ----- becomes
program @copy_constants(%x: tensor<[4, n], float32>) {
  %k = builtin.constant() {value = dense<tensor<[n, 3], float32>, 2.0>} : tensor<[n, 3], float32>
  %0 = prim.copy(%k) : tensor<[n, 3], float32>
  %y = prim.dot_general(%x, %0) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 3], float32>
  %z = prim.add(%k, %k) : tensor<[n, 3], float32>
  return(%y, %z)
}
