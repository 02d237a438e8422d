// pipeline: expand-indexed-products,simplify,cse,dce
program @expand_indexed_products(%0: tensor<[4, 3], float32>, %1: tensor<[2, 3, 5], float32>, %2: tensor<[3], int64>) {
  %3 = prim.grouped_dot(%0, %1, %2) {transposed = false} : tensor<[4, 5], float32>
  return(%3)
}
// ----- becomes
program @expand_indexed_products(%0: tensor<[4, 3], float32>, %1: tensor<[2, 3, 5], float32>, %2: tensor<[3], int64>) {
  %3 = prim.iota() {shape = (4, 3), axis = 0, dtype = "int64"} : tensor<[4, 3], int64>
  %4 = prim.broadcast(%2) {shape = (4, 3), axes = (1,)} : tensor<[4, 3], int64>
  %5 = prim.ge(%3, %4) : tensor<[4, 3], bool>
  %6 = prim.cast(%5) {dtype = "int64"} : tensor<[4, 3], int64>
  %7 = prim.reduce_sum(%6) {axes = (1,)} : tensor<[4], int64>
  %8 = builtin.constant() {value = dense<tensor<[4], int64>, 1>} : tensor<[4], int64>
  %9 = prim.sub(%7, %8) : tensor<[4], int64>
  %10 = builtin.constant() {value = dense<tensor<[4], int64>, 2>} : tensor<[4], int64>
  %11 = prim.lt(%9, %10) : tensor<[4], bool>
  %12 = builtin.constant() {value = dense<tensor<[4], int64>, -1>} : tensor<[4], int64>
  %13 = prim.select(%11, %9, %12) : tensor<[4], int64>
  %14 = prim.reshape(%13) {shape = (4, 1)} : tensor<[4, 1], int64>
  %15 = prim.gather(%1, %14) {axes = (0,), batch = 0} : tensor<[4, 3, 5], float32>
  %16 = prim.broadcast(%0) {shape = (4, 3, 5), axes = (0, 1)} : tensor<[4, 3, 5], float32>
  %17 = prim.mul(%16, %15) : tensor<[4, 3, 5], float32>
  %18 = prim.broadcast(%13) {shape = (4, 5), axes = (0,)} : tensor<[4, 5], int64>
  %19 = builtin.constant() {value = dense<tensor<[4, 5], int64>, 0>} : tensor<[4, 5], int64>
  %20 = prim.ge(%18, %19) : tensor<[4, 5], bool>
  %21 = prim.reduce_sum(%17) {axes = (1,)} : tensor<[4, 5], float32>
  %22 = builtin.constant() {value = dense<tensor<[4, 5], float32>, 0.0>} : tensor<[4, 5], float32>
  %23 = prim.select(%20, %21, %22) : tensor<[4, 5], float32>
  return(%23)
}
