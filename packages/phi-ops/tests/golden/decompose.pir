// pipeline: decompose{keep=[tanh]}
program @decompose(%x: tensor<[2, 3], float32>, %w: tensor<[3, 4], float32>) {
  %0 = phi.matmul(%x, %w) {transpose_x = false, transpose_y = false} : tensor<[2, 4], float32>
  %1 = phi.silu(%0) : tensor<[2, 4], float32>
  %2 = phi.tanh(%1) : tensor<[2, 4], float32>
  return(%2)
}
// ----- becomes
program @decompose(%x: tensor<[2, 3], float32>, %w: tensor<[3, 4], float32>) {
  %0 = prim.dot_general(%x, %w) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[2, 4], float32>
  %1 = prim.logistic(%0) : tensor<[2, 4], float32>
  %2 = prim.mul(%0, %1) : tensor<[2, 4], float32>
  %3 = phi.tanh(%2) : tensor<[2, 4], float32>
  return(%3)
}
