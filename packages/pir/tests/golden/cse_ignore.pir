// pipeline: cse{ignore=[phase]}
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) {phase = "forward"} : tensor<[4], int32>
  %b = test.neg(%x) {phase = "backward"} : tensor<[4], int32>
  %c = test.neg(%x) : tensor<[4], int32>
  %d = test.neg(%x) {other = 1} : tensor<[4], int32>
  return(%a, %b, %c, %d)
}
// ----- becomes
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) {phase = "forward"} : tensor<[4], int32>
  %d = test.neg(%x) {other = 1} : tensor<[4], int32>
  return(%a, %a, %a, %d)
}
