// pipeline: symbol-dce
program @main(%x: tensor<[4], int32>) attributes {keep = (@kept, 1)} {
  %0 = builtin.call(%x) {callee = @used} : tensor<[4], int32>
  return(%0)
}

function @used(%a: tensor<[4], int32>) {
  return(%a)
}

function @kept() {
  return()
}

function @dead() {
  builtin.call() {callee = @dead_too}
  return()
}

function @dead_too() {
  builtin.call() {callee = @dead}
  return()
}
// ----- becomes
program @main(%x: tensor<[4], int32>) attributes {keep = (@kept, 1)} {
  %0 = builtin.call(%x) {callee = @used} : tensor<[4], int32>
  return(%0)
}

function @used(%a: tensor<[4], int32>) {
  return(%a)
}

function @kept() {
  return()
}
