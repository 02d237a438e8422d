// pipeline: strip-locations
program @main(%x: tensor<[4], int32>) {
  %0 = test.pure(%x) : tensor<[4], int32> loc("a.py":3:5 in "f") region {
    test.effect() loc(fused["a.py":3, "b.py":4])
  }
  return(%0) loc("a.py":9)
}
// ----- becomes
program @main(%x: tensor<[4], int32>) {
  %0 = test.pure(%x) : tensor<[4], int32> region {
    test.effect()
  }
  return(%0)
}
