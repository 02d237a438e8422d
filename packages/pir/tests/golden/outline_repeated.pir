// pipeline: outline{repeated=2}
program @main(%x: tensor<[4], int32>, %w: tensor<[4], int32>, %v: tensor<[4], int32>) {
  %h = test.neg(%x) : tensor<[4], int32>
  %a1 = test.add(%h, %w) : tensor<[4], int32>
  %b1 = test.neg(%a1) : tensor<[4], int32>
  %c1 = test.sub(%b1, %h) : tensor<[4], int32>
  %a2 = test.add(%c1, %v) : tensor<[4], int32>
  %b2 = test.neg(%a2) : tensor<[4], int32>
  %c2 = test.sub(%b2, %c1) : tensor<[4], int32>
  %a3 = test.add(%c2, %w) : tensor<[4], int32>
  %b3 = test.neg(%a3) : tensor<[4], int32>
  %c3 = test.sub(%b3, %c2) : tensor<[4], int32>
  return(%c3, %b2)
}
// ----- becomes
program @main(%x: tensor<[4], int32>, %w: tensor<[4], int32>, %v: tensor<[4], int32>) {
  %h = test.neg(%x) : tensor<[4], int32>
  %b1, %c1 = builtin.call(%h, %w) {callee = @block} : tensor<[4], int32>, tensor<[4], int32>
  %b2, %c2 = builtin.call(%c1, %v) {callee = @block} : tensor<[4], int32>, tensor<[4], int32>
  %b3, %c3 = builtin.call(%c2, %w) {callee = @block} : tensor<[4], int32>, tensor<[4], int32>
  return(%c3, %b2)
}

function @block(%h: tensor<[4], int32>, %w: tensor<[4], int32>) {
  %a1 = test.add(%h, %w) : tensor<[4], int32>
  %b1 = test.neg(%a1) : tensor<[4], int32>
  %c1 = test.sub(%b1, %h) : tensor<[4], int32>
  return(%b1, %c1)
}
