// pipeline: dce
program @sweep(%xs: tensor<[s0, 4], int32>, %x: tensor<[4], int32>) {
  %ys, %zs, %c, %d = control.scan(%xs, %x, %x) {inputs = 1} : tensor<[s0, 4], int32>, tensor<[s0, 4], int32>, tensor<[4], int32>, tensor<[4], int32> region (%row: tensor<[4], int32>, %c1: tensor<[4], int32>, %d1: tensor<[4], int32>) {
    %c2 = test.add(%c1, %row) : tensor<[4], int32>
    %d2 = test.add(%d1, %row) : tensor<[4], int32>
    %y = test.neg(%c2) : tensor<[4], int32>
    %z = test.neg(%d2) : tensor<[4], int32>
    control.yield(%y, %z, %c2, %d2)
  }
  %w1, %w2 = control.while(%x, %x) : tensor<[4], int32>, tensor<[4], int32> region (%a: tensor<[4], int32>, %b: tensor<[4], int32>) {
    %go = test.pure(%a) : tensor<[], bool>
    control.condition(%go)
  } region (%a1: tensor<[4], int32>, %b1: tensor<[4], int32>) {
    %a2 = test.neg(%a1) : tensor<[4], int32>
    %b2 = test.add(%a2, %b1) : tensor<[4], int32>
    control.yield(%a2, %b2)
  }
  %v1, %v2 = control.while(%x, %x) : tensor<[4], int32>, tensor<[4], int32> region (%e: tensor<[4], int32>, %f: tensor<[4], int32>) {
    %on = test.pure(%e) : tensor<[], bool>
    control.condition(%on)
  } region (%e1: tensor<[4], int32>, %f1: tensor<[4], int32>) {
    %e2 = test.neg(%e1) : tensor<[4], int32>
    %f2 = test.add(%e2, %f1) : tensor<[4], int32>
    control.yield(%e2, %f2)
  }
  return(%ys, %w1, %v2)
}
// ----- becomes
program @sweep(%xs: tensor<[s0, 4], int32>, %x: tensor<[4], int32>) {
  %ys, %c = control.scan(%xs, %x) {inputs = 1} : tensor<[s0, 4], int32>, tensor<[4], int32> region (%row: tensor<[4], int32>, %c1: tensor<[4], int32>) {
    %c2 = test.add(%c1, %row) : tensor<[4], int32>
    %y = test.neg(%c2) : tensor<[4], int32>
    control.yield(%y, %c2)
  }
  %w1 = control.while(%x) : tensor<[4], int32> region (%a: tensor<[4], int32>) {
    %go = test.pure(%a) : tensor<[], bool>
    control.condition(%go)
  } region (%a1: tensor<[4], int32>) {
    %a2 = test.neg(%a1) : tensor<[4], int32>
    control.yield(%a2)
  }
  %v1, %v2 = control.while(%x, %x) : tensor<[4], int32>, tensor<[4], int32> region (%e: tensor<[4], int32>, %f: tensor<[4], int32>) {
    %on = test.pure(%e) : tensor<[], bool>
    control.condition(%on)
  } region (%e1: tensor<[4], int32>, %f1: tensor<[4], int32>) {
    %e2 = test.neg(%e1) : tensor<[4], int32>
    %f2 = test.add(%e2, %f1) : tensor<[4], int32>
    control.yield(%e2, %f2)
  }
  return(%ys, %w1, %v2)
}
