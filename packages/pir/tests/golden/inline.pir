// pipeline: inline,symbol-dce
program @main(%x: tensor<[4], int32>) {
  %0 = builtin.call(%x) {callee = @outer} : tensor<[4], int32> loc("user.py":7)
  %1 = builtin.call(%0) {callee = @loop} : tensor<[4], int32>
  return(%1)
}

function @outer(%a: tensor<[4], int32>) {
  %0 = builtin.call(%a) {callee = @inner} : tensor<[4], int32>
  %1 = test.neg(%0) : tensor<[4], int32> loc("layer.py":3)
  return(%1)
}

function @inner(%a: tensor<[4], int32>) {
  %0 = test.add(%a, %a) : tensor<[4], int32>
  return(%0)
}

function @loop(%a: tensor<[4], int32>) {
  %0 = builtin.call(%a) {callee = @loop} : tensor<[4], int32>
  return(%0)
}
// ----- becomes
program @main(%x: tensor<[4], int32>) {
  %0 = test.add(%x, %x) : tensor<[4], int32> loc("user.py":7)
  %1 = test.neg(%0) : tensor<[4], int32> loc(fused["layer.py":3, "user.py":7])
  %2 = builtin.call(%1) {callee = @loop} : tensor<[4], int32>
  return(%2)
}

function @loop(%a: tensor<[4], int32>) {
  %0 = builtin.call(%a) {callee = @loop} : tensor<[4], int32>
  return(%0)
}
