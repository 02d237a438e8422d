// pipeline: expand-gradients
program @expand_gradients(%x: tensor<[3], float32>) state(%w = "w": tensor<[3], float32>) {
  %0 = prim.mul(%x, %w) : tensor<[3], float32>
  %1 = prim.reduce_sum(%0) {axes = (0,)} : tensor<[], float32>
  %2, %3 = ad.gradient(%1, %x, %w) {counts = (1, 2, 0)} : tensor<[3], float32>, tensor<[3], float32>
  return(%2; %3)
}
// ----- becomes
program @expand_gradients(%x: tensor<[3], float32>) state(%w = "w": tensor<[3], float32>) {
  %0 = prim.mul(%x, %w) : tensor<[3], float32>
  %1 = prim.reduce_sum(%0) {axes = (0,)} : tensor<[], float32>
  %2 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32> annotations {phase = "weight-gradient"}
  return(%w; %x)
}
