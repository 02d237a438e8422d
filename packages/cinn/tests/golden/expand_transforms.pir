// pipeline: expand-transforms{vector-bits=512},dce
program @expand_transforms(%0: tensor<[3, 24], complex64>, %1: tensor<[8, 6], float32>) {
  %2 = prim.fft(%0) {axes = (1,), kind = "c2c", inverse = false, length = 0} : tensor<[3, 24], complex64>
  %3 = builtin.constant() {value = dense<tensor<[], complex64>, complex(0.5, 0.0)>} : tensor<[], complex64>
  %4 = prim.broadcast(%3) {shape = (3, 24), axes = ()} : tensor<[3, 24], complex64>
  %5 = prim.mul(%2, %4) : tensor<[3, 24], complex64>
  %6 = builtin.constant() {value = dense<tensor<[], float32>, 2.0>} : tensor<[], float32>
  %7 = prim.broadcast(%6) {shape = (8, 6), axes = ()} : tensor<[8, 6], float32>
  %8 = prim.div(%1, %7) : tensor<[8, 6], float32>
  %9 = prim.fft(%8) {axes = (0, 1), kind = "r2c", inverse = false, length = 0} : tensor<[8, 4], complex64>
  %10 = prim.fft(%0) {axes = (0,), kind = "c2c", inverse = false, length = 0} : tensor<[3, 24], complex64>
  return(%5, %9, %10)
}
// ----- becomes
program @expand_transforms(%0: tensor<[3, 24], complex64>, %1: tensor<[8, 6], float32>) {
  %2 = cinn.fourier(%0) {outers = 1, lanes = 3, length = 24, source = (0, 24, 1), target = (0, 24, 1), kind = "c2c", inverse = false, scale = 0.5, turn = 0, pieces = ()} : tensor<[3, 24], complex64>
  %3 = cinn.fourier(%1) {outers = 1, lanes = 8, length = 6, source = (0, 6, 1), target = (0, 4, 1), kind = "r2c", inverse = false, scale = 1.0, turn = 0, pieces = ()} : tensor<[8, 4], complex64>
  %4 = cinn.fourier(%3) {outers = 1, lanes = 4, length = 8, source = (32, 1, 4), target = (32, 1, 4), kind = "c2c", inverse = false, scale = 0.5, turn = 0, pieces = ()} : tensor<[8, 4], complex64>
  %5 = cinn.fourier(%0) {outers = 1, lanes = 24, length = 3, source = (72, 1, 24), target = (72, 1, 24), kind = "c2c", inverse = false, scale = 1.0, turn = 0, pieces = ()} : tensor<[3, 24], complex64>
  return(%2, %4, %5)
}
