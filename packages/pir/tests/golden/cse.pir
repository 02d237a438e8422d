// pipeline: cse
program @merge(%flag: tensor<[], bool>, %x: tensor<[4], int32>, %y: tensor<[4], int32>) {
  %a = test.add(%x, %y) : tensor<[4], int32>
  %b = test.add(%y, %x) : tensor<[4], int32>
  %c = test.sub(%x, %y) : tensor<[4], int32>
  %d = test.sub(%y, %x) : tensor<[4], int32>
  %t1 = test.typed(%x) {axis = 1} : tensor<[4], int32>
  %t2 = test.typed(%x) {axis = 1} : tensor<[4], int32>
  %t3 = test.typed(%x) {axis = 2} : tensor<[4], int32>
  %e1 = test.effect(%x) : tensor<[4], int32>
  %e2 = test.effect(%x) : tensor<[4], int32>
  %r = control.if(%flag) : tensor<[4], int32> region {
    %inner = test.add(%x, %y) : tensor<[4], int32>
    %own = test.neg(%inner) : tensor<[4], int32>
    control.yield(%own)
  } region {
    %other = test.neg(%b) : tensor<[4], int32>
    control.yield(%other)
  }
  %after = test.neg(%a) : tensor<[4], int32>
  test.effect(%a, %b, %c, %d, %t1, %t2, %t3, %e1, %e2, %r, %after)
  return()
}
// ----- becomes
program @merge(%flag: tensor<[], bool>, %x: tensor<[4], int32>, %y: tensor<[4], int32>) {
  %a = test.add(%x, %y) : tensor<[4], int32>
  %c = test.sub(%x, %y) : tensor<[4], int32>
  %d = test.sub(%y, %x) : tensor<[4], int32>
  %t1 = test.typed(%x) {axis = 1} : tensor<[4], int32>
  %t3 = test.typed(%x) {axis = 2} : tensor<[4], int32>
  %e1 = test.effect(%x) : tensor<[4], int32>
  %e2 = test.effect(%x) : tensor<[4], int32>
  %r = control.if(%flag) : tensor<[4], int32> region {
    %own = test.neg(%a) : tensor<[4], int32>
    control.yield(%own)
  } region {
    %other = test.neg(%a) : tensor<[4], int32>
    control.yield(%other)
  }
  %after = test.neg(%a) : tensor<[4], int32>
  test.effect(%a, %a, %c, %d, %t1, %t1, %t3, %e1, %e2, %r, %after)
  return()
}
