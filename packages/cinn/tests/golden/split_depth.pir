// pipeline: split-depth,simplify,cse,dce
program @split_depth(%0: tensor<[2, 4096, 3], float32>, %1: tensor<[4096, 2, 5], float32>) {
  %2 = prim.dot_general(%0, %1) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (0,), rhs_batch = (1,)} : tensor<[2, 3, 5], float32>
  return(%2)
}
// ----- becomes
program @split_depth(%0: tensor<[2, 4096, 3], float32>, %1: tensor<[4096, 2, 5], float32>) {
  %2 = prim.reshape(%0) {shape = (2, 8, 512, 3)} : tensor<[2, 8, 512, 3], float32>
  %3 = prim.reshape(%1) {shape = (8, 512, 2, 5)} : tensor<[8, 512, 2, 5], float32>
  %4 = prim.dot_general(%2, %3) {lhs_contract = (2,), rhs_contract = (1,), lhs_batch = (1, 0), rhs_batch = (0, 2), accumulate = ""} : tensor<[8, 2, 3, 5], float32>
  %5 = prim.reduce_sum(%4) {axes = (0,)} : tensor<[2, 3, 5], float32>
  return(%5)
}
