// pipeline: bind-sizes{sizes=["rows=4"]}
program @bind_sizes(%x: tensor<[rows, columns], float32>) {
  %0 = any.constant() {value = dense<tensor<[2*rows], float32>, 1.5>, sizes = (dim<rows + 1>, {n = dim<columns*rows>})} : tensor<[2*rows], float32>
  %1 = builtin.call(%x) {callee = @f} : tensor<[rows], float32>
  %c = any.flag() : tensor<[], bool>
  %2 = control.if(%c) : tensor<[rows], float32> region {
    control.yield(%1)
  } region {
    control.yield(%1)
  }
  return(%0, %2)
}

function @f(%x: tensor<[rows, columns], float32>) {
  %0 = any.sum(%x) {axis = 1} : tensor<[rows], float32>
  return(%0)
}
// ----- becomes
program @bind_sizes(%x: tensor<[4, columns], float32>) {
  %0 = any.constant() {value = dense<tensor<[8], float32>, 1.5>, sizes = (5, {n = dim<4*columns>})} : tensor<[8], float32>
  %1 = builtin.call(%x) {callee = @f} : tensor<[4], float32>
  %c = any.flag() : tensor<[], bool>
  %2 = control.if(%c) : tensor<[4], float32> region {
    control.yield(%1)
  } region {
    control.yield(%1)
  }
  return(%0, %2)
}

function @f(%x: tensor<[4, columns], float32>) {
  %0 = any.sum(%x) {axis = 1} : tensor<[4], float32>
  return(%0)
}
