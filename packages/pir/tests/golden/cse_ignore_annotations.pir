// pipeline: cse{ignore_annotations=true}
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) : tensor<[4], int32> annotations {phase = "forward"}
  %b = test.neg(%x) : tensor<[4], int32> annotations {phase = "backward"}
  %c = test.neg(%x) : tensor<[4], int32>
  %d = test.neg(%x) {other = 1} : tensor<[4], int32>
  return(%a, %b, %c, %d)
}
// ----- becomes
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) : tensor<[4], int32> annotations {phase = "forward"}
  %d = test.neg(%x) {other = 1} : tensor<[4], int32>
  return(%a, %a, %a, %d)
}
