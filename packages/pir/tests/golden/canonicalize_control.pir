// pipeline: canonicalize
program @known(%flag: tensor<[], bool>, %x: tensor<[4], int32>) {
  %yes = builtin.constant() {value = dense<tensor<[], bool>, true>} : tensor<[], bool>
  %zero = builtin.constant() {value = dense<tensor<[], int64>, 0>} : tensor<[], int64>
  %one = builtin.constant() {value = dense<tensor<[], int64>, 1>} : tensor<[], int64>
  %two = builtin.constant() {value = dense<tensor<[], int64>, 2>} : tensor<[], int64>
  %a = control.if(%yes) : tensor<[4], int32> region {
    %then = test.neg(%x) : tensor<[4], int32>
    %inner = control.if(%flag) : tensor<[4], int32> region {
      control.yield(%then)
    } region {
      control.yield(%x)
    }
    control.yield(%inner)
  } region {
    test.effect(%x)
    control.yield(%x)
  }
  %none = control.for(%one, %zero, %one, %a) : tensor<[4], int32> region (%i: tensor<[], int64>, %c: tensor<[4], int32>) {
    %n = test.neg(%c) : tensor<[4], int32>
    control.yield(%n)
  }
  %once = control.for(%zero, %one, %two, %none) : tensor<[4], int32> region (%i1: tensor<[], int64>, %c1: tensor<[4], int32>) {
    %t = test.typed(%c1, %i1) {axis = 0} : tensor<[4], int32>
    control.yield(%t)
  }
  %twice = control.for(%zero, %two, %one, %once) : tensor<[4], int32> region (%i2: tensor<[], int64>, %c2: tensor<[4], int32>) {
    %t2 = test.typed(%c2, %i2) {axis = 0} : tensor<[4], int32>
    control.yield(%t2)
  }
  return(%twice)
}
// ----- becomes
program @known(%flag: tensor<[], bool>, %x: tensor<[4], int32>) {
  %zero = builtin.constant() {value = dense<tensor<[], int64>, 0>} : tensor<[], int64>
  %one = builtin.constant() {value = dense<tensor<[], int64>, 1>} : tensor<[], int64>
  %two = builtin.constant() {value = dense<tensor<[], int64>, 2>} : tensor<[], int64>
  %then = test.neg(%x) : tensor<[4], int32>
  %inner = control.if(%flag) : tensor<[4], int32> region {
    control.yield(%then)
  } region {
    control.yield(%x)
  }
  %t = test.typed(%inner, %zero) {axis = 0} : tensor<[4], int32>
  %twice = control.for(%zero, %two, %one, %t) : tensor<[4], int32> region (%i2: tensor<[], int64>, %c2: tensor<[4], int32>) {
    %t2 = test.typed(%c2, %i2) {axis = 0} : tensor<[4], int32>
    control.yield(%t2)
  }
  return(%twice)
}
