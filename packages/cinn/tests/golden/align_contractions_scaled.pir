// pipeline: align-contractions
program @scales_of_groups(%0: tensor<[5, 64], float32>, %1: tensor<[6, 64], int8>, %2: tensor<[2, 6], float32>) {
  %3 = prim.reshape(%0) {shape = (5, 2, 32)} : tensor<[5, 2, 32], float32>
  %4 = prim.cast(%1) {dtype = "float32"} : tensor<[6, 64], float32>
  %5 = prim.reshape(%4) {shape = (6, 2, 32)} : tensor<[6, 2, 32], float32>
  %6 = prim.dot_general(%3, %5) {lhs_contract = (2,), rhs_contract = (2,), lhs_batch = (1,), rhs_batch = (1,), accumulate = "float32"} : tensor<[2, 5, 6], float32>
  %7 = prim.broadcast(%2) {shape = (2, 5, 6), axes = (0, 2)} : tensor<[2, 5, 6], float32>
  %8 = prim.mul(%6, %7) : tensor<[2, 5, 6], float32>
  %9 = prim.reduce_sum(%8) {axes = (0,)} : tensor<[5, 6], float32>
  return(%9)
}
// ----- becomes
program @scales_of_groups(%0: tensor<[5, 64], float32>, %1: tensor<[6, 64], int8>, %2: tensor<[2, 6], float32>) {
  %3 = prim.reshape(%0) {shape = (5, 2, 32)} : tensor<[5, 2, 32], float32>
  %4 = prim.cast(%1) {dtype = "float32"} : tensor<[6, 64], float32>
  %5 = prim.reshape(%4) {shape = (6, 2, 32)} : tensor<[6, 2, 32], float32>
  %6 = prim.dot_general(%3, %5) {lhs_contract = (2,), rhs_contract = (2,), lhs_batch = (1,), rhs_batch = (1,), accumulate = "float32"} : tensor<[2, 5, 6], float32>
  %7 = prim.broadcast(%2) {shape = (2, 5, 6), axes = (0, 2)} : tensor<[2, 5, 6], float32>
  %8 = prim.mul(%6, %7) : tensor<[2, 5, 6], float32>
  %9 = prim.reshape(%3) {shape = (5, 64)} : tensor<[5, 64], float32>
  %10 = prim.reshape(%5) {shape = (6, 64)} : tensor<[6, 64], float32>
  %11 = cinn.scaled_product(%9, %10, %2) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = (), accumulate = "float32"} : tensor<[5, 6], float32>
  return(%11)
}
