// pipeline: cut-stages{split=true,gradients=[1,2]}
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
  %4, %5 = builtin.call(%0, %1) {callee = @backward_input1} : tensor<[3], float32>, tensor<[3], float32>
  %6, %7 = builtin.call(%2, %4, %1) {callee = @backward_weight1} : tensor<[3], float32>, tensor<[3], float32>
  %8 = builtin.call(%x, %5) {callee = @backward_weight0} : tensor<[3], float32>
  %9 = prim.add(%6, %8) : tensor<[3], float32>
  return(%3, %9, %7; %0, %1)
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

function @backward_input1(%0: tensor<[3], float32>, %1: tensor<[3], float32>) {
  %2 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %3 = prim.broadcast(%2) {shape = (3,), axes = ()} : tensor<[3], float32>
  %4 = prim.mul(%3, %0) : tensor<[3], float32>
  %5 = prim.mul(%4, %1) : tensor<[3], float32>
  return(%4, %5)
}

function @backward_weight1(%0: tensor<[3], float32>, %1: tensor<[3], float32>, %2: tensor<[3], float32>) {
  %3 = prim.mul(%0, %2) : tensor<[3], float32>
  %4 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %5 = prim.broadcast(%4) {shape = (3,), axes = ()} : tensor<[3], float32>
  %6 = prim.mul(%5, %3) : tensor<[3], float32>
  %7 = prim.mul(%1, %0) : tensor<[3], float32>
  return(%6, %7)
}

function @backward_weight0(%0: tensor<[3], float32>, %1: tensor<[3], float32>) {
  %2 = prim.mul(%1, %0) : tensor<[3], float32>
  return(%2)
}
