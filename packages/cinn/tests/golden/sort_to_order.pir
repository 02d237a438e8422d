// pipeline: sort-to-order
program @sort_to_order(%0: tensor<[3, 40], float32>, %1: tensor<[40, 3], float32>) {
  %2 = prim.iota() {shape = (3, 40), axis = 1, dtype = "int64"} : tensor<[3, 40], int64>
  %3, %4 = prim.sort(%0, %2) {axis = 1, keys = 1, descending = false, stable = true} : tensor<[3, 40], float32>, tensor<[3, 40], int64>
  %5 = prim.sort(%1) {axis = 0, keys = 1, descending = true, stable = true} : tensor<[40, 3], float32>
  %6 = prim.slice(%5) {start = (0, 0), limit = (2, 3), stride = (1, 1)} : tensor<[2, 3], float32>
  return(%3, %4, %6)
}
// ----- becomes
program @sort_to_order(%0: tensor<[3, 40], float32>, %1: tensor<[40, 3], float32>) {
  %2 = prim.iota() {shape = (3, 40), axis = 1, dtype = "int64"} : tensor<[3, 40], int64>
  %3 = cinn.order(%0) {axis = 1, descending = false} : tensor<[3, 40], int32>
  %4 = prim.transpose(%0) {permutation = (0, 1)} : tensor<[3, 40], float32>
  %5 = prim.transpose(%3) {permutation = (0, 1)} : tensor<[3, 40], int32>
  %6 = prim.reshape(%5) {shape = (3, 40, 1)} : tensor<[3, 40, 1], int32>
  %7 = prim.gather(%4, %6) {axes = (1,), batch = 1} : tensor<[3, 40], float32>
  %8 = prim.transpose(%7) {permutation = (0, 1)} : tensor<[3, 40], float32>
  %9 = prim.cast(%3) {dtype = "int64"} : tensor<[3, 40], int64>
  %10 = cinn.order(%1) {axis = 0, descending = true} : tensor<[2, 3], int32>
  %11 = prim.transpose(%1) {permutation = (1, 0)} : tensor<[3, 40], float32>
  %12 = prim.transpose(%10) {permutation = (1, 0)} : tensor<[3, 2], int32>
  %13 = prim.reshape(%12) {shape = (3, 2, 1)} : tensor<[3, 2, 1], int32>
  %14 = prim.gather(%11, %13) {axes = (1,), batch = 1} : tensor<[3, 2], float32>
  %15 = prim.transpose(%14) {permutation = (1, 0)} : tensor<[2, 3], float32>
  %16 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %17 = prim.pad(%15, %16) {low = (0, 0), high = (38, 0), interior = (0, 0)} : tensor<[40, 3], float32>
  %18 = prim.slice(%17) {start = (0, 0), limit = (2, 3), stride = (1, 1)} : tensor<[2, 3], float32>
  return(%8, %9, %18)
}
