// pipeline: outline
program @main(%x: tensor<[4], int32>, %w: tensor<[4], int32>) {
  %a1 = test.add(%x, %w) {outline = ("layer", 0)} : tensor<[4], int32>
  %b1 = test.neg(%a1) {outline = ("layer", 0)} : tensor<[4], int32>
  %a2 = test.add(%b1, %w) {outline = ("layer", 1)} : tensor<[4], int32>
  %b2 = test.neg(%a2) {outline = ("layer", 1)} : tensor<[4], int32>
  %between = test.sub(%b2, %x) : tensor<[4], int32>
  %a3 = test.sub(%between, %w) {outline = "layer"} : tensor<[4], int32>
  return(%a3, %b1)
}
// ----- becomes
program @main(%x: tensor<[4], int32>, %w: tensor<[4], int32>) {
  %b1 = builtin.call(%x, %w) {callee = @layer} : tensor<[4], int32>
  %b2 = builtin.call(%b1, %w) {callee = @layer} : tensor<[4], int32>
  %between = test.sub(%b2, %x) : tensor<[4], int32>
  %a3 = builtin.call(%between, %w) {callee = @layer_1} : tensor<[4], int32>
  return(%a3, %b1)
}

function @layer(%x: tensor<[4], int32>, %w: tensor<[4], int32>) {
  %a1 = test.add(%x, %w) : tensor<[4], int32>
  %b1 = test.neg(%a1) : tensor<[4], int32>
  return(%b1)
}

function @layer_1(%between: tensor<[4], int32>, %w: tensor<[4], int32>) {
  %a3 = test.sub(%between, %w) : tensor<[4], int32>
  return(%a3)
}
