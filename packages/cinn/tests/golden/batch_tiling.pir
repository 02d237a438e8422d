// pipeline: batch-tiling{cache-bytes=65536},dce
program @batch_tiling(%0: tensor<[2304, 64], float32>, %1: tensor<[2304, 2], float32>, %2: tensor<[64, 64], float32>, %3: tensor<[64, 2], float32>) {
  %4 = prim.dot_general(%0, %2) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[2304, 64], float32>
  %5 = prim.tanh(%4) : tensor<[2304, 64], float32>
  %6 = prim.dot_general(%5, %3) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[2304, 2], float32>
  %7 = prim.sub(%6, %1) : tensor<[2304, 2], float32>
  %8 = prim.transpose(%3) {permutation = (1, 0)} : tensor<[2, 64], float32>
  %9 = prim.dot_general(%7, %8) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[2304, 64], float32>
  %10 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %11 = prim.broadcast(%10) {shape = (2304, 64), axes = ()} : tensor<[2304, 64], float32>
  %12 = prim.mul(%5, %5) : tensor<[2304, 64], float32>
  %13 = prim.sub(%11, %12) : tensor<[2304, 64], float32>
  %14 = prim.mul(%9, %13) : tensor<[2304, 64], float32>
  %15 = prim.dot_general(%0, %14) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[64, 64], float32>
  %16 = prim.dot_general(%5, %7) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[64, 2], float32>
  %17 = prim.mul(%7, %7) : tensor<[2304, 2], float32>
  %18 = prim.reduce_sum(%17) {axes = (0, 1)} : tensor<[], float32>
  return(%18, %15, %16)
}
// ----- becomes
program @batch_tiling(%0: tensor<[2304, 64], float32>, %1: tensor<[2304, 2], float32>, %2: tensor<[64, 64], float32>, %3: tensor<[64, 2], float32>) {
  %4 = prim.transpose(%3) {permutation = (1, 0)} : tensor<[2, 64], float32>
  %5 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %6 = builtin.constant() {value = dense<tensor<[64, 64], float32>, 0.0>} : tensor<[64, 64], float32>
  %7 = builtin.constant() {value = dense<tensor<[64, 2], float32>, 0.0>} : tensor<[64, 2], float32>
  %8 = builtin.constant() {value = dense<tensor<[], float32>, 0.0>} : tensor<[], float32>
  %9 = prim.reshape(%0) {shape = (9, 256, 64)} : tensor<[9, 256, 64], float32>
  %10 = prim.reshape(%1) {shape = (9, 256, 2)} : tensor<[9, 256, 2], float32>
  %11, %12, %13 = control.scan(%9, %10, %6, %7, %8) {inputs = 2} : tensor<[64, 64], float32>, tensor<[64, 2], float32>, tensor<[], float32> region (%14: tensor<[256, 64], float32>, %15: tensor<[256, 2], float32>, %16: tensor<[64, 64], float32>, %17: tensor<[64, 2], float32>, %18: tensor<[], float32>) {
    %19 = prim.dot_general(%14, %2) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[256, 64], float32>
    %20 = prim.tanh(%19) : tensor<[256, 64], float32>
    %21 = prim.dot_general(%20, %3) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[256, 2], float32>
    %22 = prim.sub(%21, %15) : tensor<[256, 2], float32>
    %23 = prim.dot_general(%22, %4) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[256, 64], float32>
    %24 = prim.broadcast(%5) {shape = (256, 64), axes = ()} : tensor<[256, 64], float32>
    %25 = prim.mul(%20, %20) : tensor<[256, 64], float32>
    %26 = prim.sub(%24, %25) : tensor<[256, 64], float32>
    %27 = prim.mul(%23, %26) : tensor<[256, 64], float32>
    %28 = prim.dot_general(%14, %27) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[64, 64], float32>
    %29 = prim.dot_general(%20, %22) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[64, 2], float32>
    %30 = prim.mul(%22, %22) : tensor<[256, 2], float32>
    %31 = prim.reduce_sum(%30) {axes = (0, 1)} : tensor<[], float32>
    %32 = prim.add(%16, %28) : tensor<[64, 64], float32>
    %33 = prim.add(%17, %29) : tensor<[64, 2], float32>
    %34 = prim.add(%18, %31) : tensor<[], float32>
    control.yield(%32, %33, %34)
  }
  return(%13, %11, %12)
}
