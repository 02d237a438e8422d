// pipeline: lower-convolutions{vector-bits=512}
program @lower_convolutions_dilated(%0: tensor<[2, 64, 32, 32], float32>, %1: tensor<[64, 64, 3, 3], float32>) {
  %2 = prim.conv(%0, %1) {strides = (1, 1), padding = ((2, 2), (2, 2)), lhs_dilation = (1, 1), rhs_dilation = (2, 2), groups = 1} : tensor<[2, 64, 32, 32], float32>
  return(%2)
}
// ----- becomes
program @lower_convolutions_dilated(%0: tensor<[2, 64, 32, 32], float32>, %1: tensor<[64, 64, 3, 3], float32>) {
  %2 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %3 = prim.pad(%0, %2) {low = (0, 0, 0, 0), high = (0, 0, 0, 0), interior = (0, 0, 0, 0)} : tensor<[2, 64, 32, 32], float32>
  %4 = prim.reshape(%3) {shape = (2, 64, 16, 2, 16, 2)} : tensor<[2, 64, 16, 2, 16, 2], float32>
  %5 = prim.transpose(%4) {permutation = (0, 3, 5, 1, 2, 4)} : tensor<[2, 2, 2, 64, 16, 16], float32>
  %6 = prim.reshape(%5) {shape = (8, 64, 16, 16)} : tensor<[8, 64, 16, 16], float32>
  %7 = cinn.kept(%6) : tensor<[8, 64, 16, 16], float32>
  %8 = cinn.patches(%7) {strides = (1, 1), padding = ((1, 1), (1, 1)), lhs_dilation = (1, 1), rhs_dilation = (1, 1)} : tensor<[8, 1, 64, 3, 3, 16, 16], float32>
  %9 = prim.reshape(%1) {shape = (1, 64, 576)} : tensor<[1, 64, 576], float32>
  %10 = prim.reshape(%8) {shape = (8, 1, 576, 256)} : tensor<[8, 1, 576, 256], float32>
  %11 = prim.broadcast(%9) {shape = (8, 1, 64, 576), axes = (1, 2, 3)} : tensor<[8, 1, 64, 576], float32>
  %12 = prim.dot_general(%11, %10) {lhs_contract = (3,), rhs_contract = (2,), lhs_batch = (0, 1), rhs_batch = (0, 1), accumulate = ""} : tensor<[8, 1, 64, 256], float32>
  %13 = prim.reshape(%12) {shape = (8, 64, 16, 16)} : tensor<[8, 64, 16, 16], float32>
  %14 = prim.reshape(%13) {shape = (2, 2, 2, 64, 16, 16)} : tensor<[2, 2, 2, 64, 16, 16], float32>
  %15 = prim.transpose(%14) {permutation = (0, 3, 4, 1, 5, 2)} : tensor<[2, 64, 16, 2, 16, 2], float32>
  %16 = prim.reshape(%15) {shape = (2, 64, 32, 32)} : tensor<[2, 64, 32, 32], float32>
  %17 = prim.slice(%16) {start = (0, 0, 0, 0), limit = (2, 64, 32, 32), stride = (1, 1, 1, 1)} : tensor<[2, 64, 32, 32], float32>
  return(%17)
}
