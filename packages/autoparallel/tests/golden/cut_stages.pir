// pipeline: cut-stages{gradients=[1,2]}
program @step(%x: tensor<[3], float32>) state(%0 = "w0": tensor<[3], float32>, %1 = "w1": tensor<[3], float32>) {
  %2 = prim.mul(%x, %0) : tensor<[3], float32> annotations {stage = 0}
  %3 = prim.mul(%2, %1) : tensor<[3], float32> annotations {stage = 1}
  %4 = prim.mul(%3, %0) : tensor<[3], float32> annotations {stage = 1}
  %5 = prim.reduce_sum(%4) {axes = (0,)} : tensor<[], float32> annotations {stage = 1}
  %6 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %7 = prim.broadcast(%6) {shape = (3,), axes = ()} : tensor<[3], float32>
  %8 = prim.mul(%7, %0) : tensor<[3], float32> annotations {stage = 1, phase = "input-gradient"}
  %9 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %10 = prim.broadcast(%9) {shape = (3,), axes = ()} : tensor<[3], float32>
  %11 = prim.mul(%10, %3) : tensor<[3], float32> annotations {stage = 1, phase = "weight-gradient"}
  %12 = prim.mul(%8, %2) : tensor<[3], float32> annotations {stage = 1, phase = "weight-gradient"}
  %13 = prim.mul(%8, %1) : tensor<[3], float32> annotations {stage = 1, phase = "input-gradient"}
  %14 = prim.mul(%13, %x) : tensor<[3], float32> annotations {stage = 0, phase = "weight-gradient"}
  %15 = prim.add(%11, %14) : tensor<[3], float32> annotations {stage = 0, phase = "weight-gradient"}
  return(%5, %15, %12; %0, %1)
}
// ----- becomes
program @step(%x: tensor<[3], float32>) state(%0 = "w0": tensor<[3], float32>, %1 = "w1": tensor<[3], float32>) {
  %2 = builtin.call(%x, %0) {callee = @forward0} : tensor<[3], float32>
  %3 = builtin.call(%2, %0, %1) {callee = @forward1} : tensor<[], float32>
  %4, %5, %6 = builtin.call(%2, %0, %1) {callee = @backward1} : tensor<[3], float32>, tensor<[3], float32>, tensor<[3], float32>
  %7 = builtin.call(%x, %4) {callee = @backward0} : tensor<[3], float32>
  %8 = prim.add(%5, %7) : tensor<[3], float32>
  return(%3, %8, %6; %0, %1)
}

function @forward0(%0: tensor<[3], float32>, %1: tensor<[3], float32>) {
  %2 = prim.mul(%0, %1) : tensor<[3], float32>
  return(%2)
}

function @forward1(%0: tensor<[3], float32>, %1: tensor<[3], float32>, %2: tensor<[3], float32>) {
  %3 = prim.mul(%0, %2) : tensor<[3], float32>
  %4 = prim.mul(%3, %1) : tensor<[3], float32>
  %5 = prim.reduce_sum(%4) {axes = (0,)} : tensor<[], float32>
  return(%5)
}

function @backward1(%0: tensor<[3], float32>, %1: tensor<[3], float32>, %2: tensor<[3], float32>) {
  %3 = prim.mul(%0, %2) : tensor<[3], float32>
  %4 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %5 = prim.broadcast(%4) {shape = (3,), axes = ()} : tensor<[3], float32>
  %6 = prim.mul(%5, %1) : tensor<[3], float32>
  %7 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %8 = prim.broadcast(%7) {shape = (3,), axes = ()} : tensor<[3], float32>
  %9 = prim.mul(%8, %3) : tensor<[3], float32>
  %10 = prim.mul(%6, %0) : tensor<[3], float32>
  %11 = prim.mul(%6, %2) : tensor<[3], float32>
  return(%11, %9, %10)
}

function @backward0(%0: tensor<[3], float32>, %1: tensor<[3], float32>) {
  %2 = prim.mul(%1, %0) : tensor<[3], float32>
  return(%2)
}
