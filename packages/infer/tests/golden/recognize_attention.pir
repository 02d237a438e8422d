// pipeline: recognize-attention
program @by_hand(%query: tensor<[b, 2, s, 4], float32>, %key: tensor<[b, 2, s, 4], float32>, %value: tensor<[b, 2, s, 4], float32>) {
  %1 = prim.dot_general(%query, %key) {lhs_contract = (3,), rhs_contract = (3,), lhs_batch = (0, 1), rhs_batch = (0, 1), accumulate = ""} : tensor<[b, 2, s, s], float32>
  %2 = builtin.constant() {value = dense<tensor<[], float32>, 0.5>} : tensor<[], float32>
  %3 = prim.broadcast(%2) {shape = (dim<b>, 2, dim<s>, dim<s>), axes = ()} : tensor<[b, 2, s, s], float32>
  %4 = prim.mul(%1, %3) : tensor<[b, 2, s, s], float32>
  %5 = prim.iota() {shape = (dim<s>, dim<s>), axis = 0, dtype = "int64"} : tensor<[s, s], int64>
  %6 = prim.iota() {shape = (dim<s>, dim<s>), axis = 1, dtype = "int64"} : tensor<[s, s], int64>
  %7 = prim.le(%6, %5) : tensor<[s, s], bool>
  %8 = builtin.constant() {value = dense<tensor<[], float32>, -inf>} : tensor<[], float32>
  %9 = prim.broadcast(%8) {shape = (dim<b>, 2, dim<s>, dim<s>), axes = ()} : tensor<[b, 2, s, s], float32>
  %10 = prim.broadcast(%7) {shape = (dim<b>, 2, dim<s>, dim<s>), axes = (2, 3)} : tensor<[b, 2, s, s], bool>
  %11 = prim.select(%10, %4, %9) : tensor<[b, 2, s, s], float32>
  %12 = phi.softmax(%11) {axis = -1, dtype = none} : tensor<[b, 2, s, s], float32>
  %13 = prim.dot_general(%12, %value) {lhs_contract = (3,), rhs_contract = (2,), lhs_batch = (0, 1), rhs_batch = (0, 1), accumulate = ""} : tensor<[b, 2, s, 4], float32>
  return(%13)
}
// ----- becomes
program @by_hand(%query: tensor<[b, 2, s, 4], float32>, %key: tensor<[b, 2, s, 4], float32>, %value: tensor<[b, 2, s, 4], float32>) {
  %0 = prim.transpose(%query) {permutation = (0, 2, 1, 3)} : tensor<[b, s, 2, 4], float32>
  %1 = prim.transpose(%key) {permutation = (0, 2, 1, 3)} : tensor<[b, s, 2, 4], float32>
  %2 = prim.transpose(%value) {permutation = (0, 2, 1, 3)} : tensor<[b, s, 2, 4], float32>
  %3 = phi.scaled_dot_product_attention(%0, %1, %2) {dropout_p = 0.0, is_causal = true, training = false, backend = none, scale = 0.5, enable_gqa = true, window = none, softcap = 0.0, segments = (1, 1, 1, -1, -1)} : tensor<[b, s, 2, 4], float32>
  %4 = prim.transpose(%3) {permutation = (0, 2, 1, 3)} : tensor<[b, 2, s, 4], float32>
  return(%4)
}
