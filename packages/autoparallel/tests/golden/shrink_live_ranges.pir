// pipeline: shrink-live-ranges
program @gradients(%0: tensor<[4, 3], float32>, %1: tensor<[3, 3], float32>) state(%2 = "merged": tensor<[3, 3], float32>) {
  %3 = prim.tanh(%0) : tensor<[4, 3], float32>
  %4 = prim.dot_general(%0, %3) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[3, 3], float32>
  %5 = prim.dot_general(%3, %1) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 3], float32>
  %6 = prim.exp(%5) : tensor<[4, 3], float32>
  %7 = prim.reduce_sum(%3) {axes = (0,)} : tensor<[3], float32>
  %8 = prim.add(%2, %4) : tensor<[3, 3], float32>
  %9 = prim.broadcast(%7) {shape = (4, 3), axes = (1,)} : tensor<[4, 3], float32>
  %10 = prim.add(%9, %6) : tensor<[4, 3], float32>
  return(%6, %10; %8)
}
// ----- becomes
program @gradients(%0: tensor<[4, 3], float32>, %1: tensor<[3, 3], float32>) state(%2 = "merged": tensor<[3, 3], float32>) {
  %3 = prim.tanh(%0) : tensor<[4, 3], float32>
  %4 = prim.dot_general(%0, %3) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[3, 3], float32>
  %5 = prim.add(%2, %4) : tensor<[3, 3], float32>
  %6 = prim.dot_general(%3, %1) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 3], float32>
  %7 = prim.reduce_sum(%3) {axes = (0,)} : tensor<[3], float32>
  %8 = prim.exp(%6) : tensor<[4, 3], float32>
  %9 = prim.broadcast(%7) {shape = (4, 3), axes = (1,)} : tensor<[4, 3], float32>
  %10 = prim.add(%9, %8) : tensor<[4, 3], float32>
  return(%8, %10; %5)
}
