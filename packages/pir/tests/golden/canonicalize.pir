// pipeline: canonicalize
program @fold(%x: tensor<[4], int32>) {
  %two = builtin.constant() {value = dense<tensor<[4], int32>, 2>} : tensor<[4], int32>
  %three = builtin.constant() {value = dense<tensor<[4], int32>, 3>} : tensor<[4], int32>
  %zero = builtin.constant() {value = dense<tensor<[4], int32>, 0>} : tensor<[4], int32>
  %five = test.add(%two, %three) : tensor<[4], int32>
  %same = test.add(%x, %zero) : tensor<[4], int32>
  %a = test.neg(%same) : tensor<[4], int32>
  %b = test.neg(%a) : tensor<[4], int32>
  %unused = test.sub(%a, %b) : tensor<[4], int32>
  %kept = foo.unknown(%b) : tensor<[4], int32>
  %sum = test.sub(%b, %five) : tensor<[4], int32>
  return(%sum)
}
// ----- becomes
program @fold(%x: tensor<[4], int32>) {
  %five = builtin.constant() {value = dense<tensor<[4], int32>, 5>} : tensor<[4], int32>
  %kept = foo.unknown(%x) : tensor<[4], int32>
  %sum = test.sub(%x, %five) : tensor<[4], int32>
  return(%sum)
}
