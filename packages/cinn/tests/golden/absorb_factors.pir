// pipeline: expand-transforms,absorb-factors,dce
program @absorb_factors(%0: tensor<[3, 24], complex64>, %1: tensor<[1], float32>) {
  %2 = builtin.constant() {value = dense<tensor<[], float32>, 0.5>} : tensor<[], float32>
  %3 = prim.broadcast(%2) {shape = (3, 24), axes = ()} : tensor<[3, 24], float32>
  %4 = prim.real(%0) : tensor<[3, 24], float32>
  %5 = prim.mul(%4, %3) : tensor<[3, 24], float32>
  %6 = prim.imag(%0) : tensor<[3, 24], float32>
  %7 = prim.mul(%6, %3) : tensor<[3, 24], float32>
  %8 = prim.complex(%5, %7) : tensor<[3, 24], complex64>
  %9 = prim.fft(%8) {axes = (1,), kind = "c2c", inverse = false, length = 0} : tensor<[3, 24], complex64>
  return(%9)
}
// ----- becomes
program @absorb_factors(%0: tensor<[3, 24], complex64>, %1: tensor<[1], float32>) {
  %2 = cinn.fourier(%0) {outers = 1, lanes = 3, length = 24, source = (0, 24, 1), target = (0, 24, 1), kind = "c2c", inverse = false, scale = 0.5, turn = 0, pieces = ()} : tensor<[3, 24], complex64>
  return(%2)
}
