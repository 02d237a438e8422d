// pipeline: random-counters
program @layers(%0: tensor<[2], uint64>) {
  %1 = prim.rng_bits(%0) {shape = (4,), counter = 3} : tensor<[4], uint32>
  %2 = prim.rng_bits(%0) {shape = (4,), counter = 7} : tensor<[4], uint32>
  return(%1, %2)
}
// ----- becomes
program @layers(%0: tensor<[2], uint64>) {
  %1 = builtin.constant() {value = dense<tensor<[2], uint64>, 0x00000000000000000300000000000000>} : tensor<[2], uint64>
  %2 = prim.add(%0, %1) : tensor<[2], uint64>
  %3 = prim.rng_bits(%2) {shape = (4,), counter = 0} : tensor<[4], uint32>
  %4 = builtin.constant() {value = dense<tensor<[2], uint64>, 0x00000000000000000700000000000000>} : tensor<[2], uint64>
  %5 = prim.add(%0, %4) : tensor<[2], uint64>
  %6 = prim.rng_bits(%5) {shape = (4,), counter = 0} : tensor<[4], uint32>
  return(%3, %6)
}
