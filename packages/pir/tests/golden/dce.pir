// pipeline: dce
program @sweep(%flag: tensor<[], bool>, %n: tensor<[], int64>, %x: tensor<[4], int32>) {
  %dead = test.neg(%x) : tensor<[4], int32>
  %deader = test.add(%dead, %dead) : tensor<[4], int32>
  test.effect(%x)
  %unknown = foo.maybe(%x) : tensor<[4], int32>
  %p, %q = control.if(%flag) : tensor<[4], int32>, tensor<[4], int32> region {
    %p1 = test.neg(%x) : tensor<[4], int32>
    %q1 = test.add(%x, %x) : tensor<[4], int32>
    control.yield(%p1, %q1)
  } region {
    control.yield(%x, %x)
  }
  %f1, %f2, %f3 = control.for(%n, %n, %n, %x, %x, %x) : tensor<[4], int32>, tensor<[4], int32>, tensor<[4], int32> region (%i: tensor<[], int64>, %c1: tensor<[4], int32>, %c2: tensor<[4], int32>, %c3: tensor<[4], int32>) {
    %n1 = test.add(%c1, %c2) : tensor<[4], int32>
    %n2 = test.neg(%c2) : tensor<[4], int32>
    %n3 = test.neg(%c3) : tensor<[4], int32>
    control.yield(%n1, %n2, %n3)
  }
  return(%q, %f1)
}
// ----- becomes
program @sweep(%flag: tensor<[], bool>, %n: tensor<[], int64>, %x: tensor<[4], int32>) {
  test.effect(%x)
  %unknown = foo.maybe(%x) : tensor<[4], int32>
  %q = control.if(%flag) : tensor<[4], int32> region {
    %q1 = test.add(%x, %x) : tensor<[4], int32>
    control.yield(%q1)
  } region {
    control.yield(%x)
  }
  %f1, %f2 = control.for(%n, %n, %n, %x, %x) : tensor<[4], int32>, tensor<[4], int32> region (%i: tensor<[], int64>, %c1: tensor<[4], int32>, %c2: tensor<[4], int32>) {
    %n1 = test.add(%c1, %c2) : tensor<[4], int32>
    %n2 = test.neg(%c2) : tensor<[4], int32>
    control.yield(%n1, %n2)
  }
  return(%q, %f1)
}
