// pipeline: lower-convolutions
program @lower_convolutions(%0: tensor<[2, 3, 16, 16], float32>, %1: tensor<[8, 3, 3, 3], float32>, %2: tensor<[3, 1, 2, 1], float32>, %3: tensor<[2, 3, 3, 3], float32>) {
  %4 = prim.conv(%0, %1) {strides = (1, 1), padding = ((1, 1), (1, 1)), lhs_dilation = (1, 1), rhs_dilation = (1, 1), groups = 1} : tensor<[2, 8, 16, 16], float32>
  %5 = prim.conv(%0, %2) {strides = (1, 1), padding = ((0, 0), (0, 0)), lhs_dilation = (1, 1), rhs_dilation = (1, 1), groups = 3} : tensor<[2, 3, 15, 16], float32>
  %6 = prim.conv(%0, %3) {strides = (1, 1), padding = ((1, 1), (1, 1)), lhs_dilation = (2, 2), rhs_dilation = (1, 1), groups = 1} : tensor<[2, 2, 31, 31], float32>
  return(%4, %5, %6)
}
// ----- becomes
program @lower_convolutions(%0: tensor<[2, 3, 16, 16], float32>, %1: tensor<[8, 3, 3, 3], float32>, %2: tensor<[3, 1, 2, 1], float32>, %3: tensor<[2, 3, 3, 3], float32>) {
  %4 = cinn.patches(%0) {strides = (1, 1), padding = ((1, 1), (1, 1)), lhs_dilation = (1, 1), rhs_dilation = (1, 1)} : tensor<[2, 1, 3, 3, 3, 16, 16], float32>
  %5 = prim.reshape(%1) {shape = (1, 8, 27)} : tensor<[1, 8, 27], float32>
  %6 = prim.reshape(%4) {shape = (2, 1, 27, 256)} : tensor<[2, 1, 27, 256], float32>
  %7 = prim.broadcast(%5) {shape = (2, 1, 8, 27), axes = (1, 2, 3)} : tensor<[2, 1, 8, 27], float32>
  %8 = prim.dot_general(%7, %6) {lhs_contract = (3,), rhs_contract = (2,), lhs_batch = (0, 1), rhs_batch = (0, 1), accumulate = ""} : tensor<[2, 1, 8, 256], float32>
  %9 = prim.reshape(%8) {shape = (2, 8, 16, 16)} : tensor<[2, 8, 16, 16], float32>
  %10 = cinn.patches(%0) {strides = (1, 1), padding = ((0, 0), (0, 0)), lhs_dilation = (1, 1), rhs_dilation = (1, 1)} : tensor<[2, 3, 1, 2, 1, 15, 16], float32>
  %11 = prim.slice(%10) {start = (0, 0, 0, 0, 0, 0, 0), limit = (2, 3, 1, 1, 1, 15, 16), stride = (1, 1, 1, 1, 1, 1, 1)} : tensor<[2, 3, 1, 1, 1, 15, 16], float32>
  %12 = prim.reshape(%11) {shape = (2, 3, 1, 15, 16)} : tensor<[2, 3, 1, 15, 16], float32>
  %13 = prim.slice(%2) {start = (0, 0, 0, 0), limit = (3, 1, 1, 1), stride = (1, 1, 1, 1)} : tensor<[3, 1, 1, 1], float32>
  %14 = prim.reshape(%13) {shape = (3, 1)} : tensor<[3, 1], float32>
  %15 = prim.reshape(%12) {shape = (2, 3, 15, 16)} : tensor<[2, 3, 15, 16], float32>
  %16 = prim.broadcast(%15) {shape = (2, 3, 1, 15, 16), axes = (0, 1, 3, 4)} : tensor<[2, 3, 1, 15, 16], float32>
  %17 = prim.broadcast(%14) {shape = (2, 3, 1, 15, 16), axes = (1, 2)} : tensor<[2, 3, 1, 15, 16], float32>
  %18 = prim.mul(%16, %17) : tensor<[2, 3, 1, 15, 16], float32>
  %19 = prim.slice(%10) {start = (0, 0, 0, 1, 0, 0, 0), limit = (2, 3, 1, 2, 1, 15, 16), stride = (1, 1, 1, 1, 1, 1, 1)} : tensor<[2, 3, 1, 1, 1, 15, 16], float32>
  %20 = prim.reshape(%19) {shape = (2, 3, 1, 15, 16)} : tensor<[2, 3, 1, 15, 16], float32>
  %21 = prim.slice(%2) {start = (0, 0, 1, 0), limit = (3, 1, 2, 1), stride = (1, 1, 1, 1)} : tensor<[3, 1, 1, 1], float32>
  %22 = prim.reshape(%21) {shape = (3, 1)} : tensor<[3, 1], float32>
  %23 = prim.reshape(%20) {shape = (2, 3, 15, 16)} : tensor<[2, 3, 15, 16], float32>
  %24 = prim.broadcast(%23) {shape = (2, 3, 1, 15, 16), axes = (0, 1, 3, 4)} : tensor<[2, 3, 1, 15, 16], float32>
  %25 = prim.broadcast(%22) {shape = (2, 3, 1, 15, 16), axes = (1, 2)} : tensor<[2, 3, 1, 15, 16], float32>
  %26 = prim.mul(%24, %25) : tensor<[2, 3, 1, 15, 16], float32>
  %27 = prim.add(%18, %26) : tensor<[2, 3, 1, 15, 16], float32>
  %28 = prim.reshape(%27) {shape = (2, 3, 15, 16)} : tensor<[2, 3, 15, 16], float32>
  %29 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %30 = prim.pad(%3, %29) {low = (0, 0, 0, 0), high = (0, 0, 1, 1), interior = (0, 0, 0, 0)} : tensor<[2, 3, 4, 4], float32>
  %31 = prim.reshape(%30) {shape = (2, 3, 2, 2, 2, 2)} : tensor<[2, 3, 2, 2, 2, 2], float32>
  %32 = prim.reverse(%31) {axes = (3, 5)} : tensor<[2, 3, 2, 2, 2, 2], float32>
  %33 = prim.transpose(%32) {permutation = (0, 3, 5, 1, 2, 4)} : tensor<[2, 2, 2, 3, 2, 2], float32>
  %34 = prim.reshape(%33) {shape = (8, 3, 2, 2)} : tensor<[8, 3, 2, 2], float32>
  %35 = cinn.patches(%0) {strides = (1, 1), padding = ((0, 1), (0, 1)), lhs_dilation = (1, 1), rhs_dilation = (1, 1)} : tensor<[2, 1, 3, 2, 2, 16, 16], float32>
  %36 = prim.reshape(%34) {shape = (1, 8, 12)} : tensor<[1, 8, 12], float32>
  %37 = prim.reshape(%35) {shape = (2, 1, 12, 256)} : tensor<[2, 1, 12, 256], float32>
  %38 = prim.broadcast(%36) {shape = (2, 1, 8, 12), axes = (1, 2, 3)} : tensor<[2, 1, 8, 12], float32>
  %39 = prim.dot_general(%38, %37) {lhs_contract = (3,), rhs_contract = (2,), lhs_batch = (0, 1), rhs_batch = (0, 1), accumulate = ""} : tensor<[2, 1, 8, 256], float32>
  %40 = prim.reshape(%39) {shape = (2, 8, 16, 16)} : tensor<[2, 8, 16, 16], float32>
  %41 = prim.reshape(%40) {shape = (2, 2, 2, 2, 16, 16)} : tensor<[2, 2, 2, 2, 16, 16], float32>
  %42 = prim.transpose(%41) {permutation = (0, 1, 4, 2, 5, 3)} : tensor<[2, 2, 16, 2, 16, 2], float32>
  %43 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %44 = prim.pad(%42, %43) {low = (0, 0, 0, 0, 0, 0), high = (0, 0, 0, 0, 0, 0), interior = (0, 0, 0, 0, 0, 0)} : tensor<[2, 2, 16, 2, 16, 2], float32>
  %45 = prim.reshape(%44) {shape = (2, 2, 32, 32)} : tensor<[2, 2, 32, 32], float32>
  %46 = prim.slice(%45) {start = (0, 0, 0, 0), limit = (2, 2, 31, 31), stride = (1, 1, 1, 1)} : tensor<[2, 2, 31, 31], float32>
  return(%9, %28, %46)
}
