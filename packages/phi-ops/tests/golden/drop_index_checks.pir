// pipeline: drop-index-checks
program @drop_index_checks(%x: tensor<[4], float32>, %i: tensor<[2, 1], int64>) {
  prim.check_index(%i) {operator = "gather", low = -4, size = 4, besides = none}
  %0 = prim.gather(%x, %i) {axes = (0,), batch = 0} : tensor<[2], float32>
  return(%0)
}
// ----- becomes
program @drop_index_checks(%x: tensor<[4], float32>, %i: tensor<[2, 1], int64>) {
  %0 = prim.gather(%x, %i) {axes = (0,), batch = 0} : tensor<[2], float32>
  return(%0)
}
