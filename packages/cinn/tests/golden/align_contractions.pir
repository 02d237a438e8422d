// pipeline: align-contractions
program @align_contractions(%0: tensor<[3, 4, 5], float32>, %1: tensor<[2, 3, 5], float32>, %2: tensor<[4, 5, 6], float32>) {
  %3 = prim.dot_general(%0, %1) {lhs_contract = (0, 2), rhs_contract = (1, 2), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 2], float32>
  %4 = prim.dot_general(%0, %2) {lhs_contract = (1, 2), rhs_contract = (0, 1), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[3, 6], float32>
  return(%3, %4)
}
// ----- becomes
program @align_contractions(%0: tensor<[3, 4, 5], float32>, %1: tensor<[2, 3, 5], float32>, %2: tensor<[4, 5, 6], float32>) {
  %3 = prim.transpose(%0) {permutation = (1, 0, 2)} : tensor<[4, 3, 5], float32>
  %4 = prim.dot_general(%3, %1) {lhs_contract = (1, 2), rhs_contract = (1, 2), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 2], float32>
  %5 = prim.dot_general(%0, %2) {lhs_contract = (1, 2), rhs_contract = (0, 1), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[3, 6], float32>
  return(%4, %5)
}
