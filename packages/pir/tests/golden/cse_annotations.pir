// pipeline: cse
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) : tensor<[4], int32> annotations {stage = 0}
  %b = test.neg(%x) : tensor<[4], int32> annotations {stage = 1} loc("f.py":3)
  %c = test.neg(%x) : tensor<[4], int32> annotations {stage = 0}
  return(%a, %b, %c)
}
// ----- becomes
program @merge(%x: tensor<[4], int32>) {
  %a = test.neg(%x) : tensor<[4], int32> annotations {stage = 0}
  %b = test.neg(%x) : tensor<[4], int32> annotations {stage = 1} loc("f.py":3)
  return(%a, %b, %a)
}
