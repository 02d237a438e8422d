// pipeline: number-index-checks
program @number_index_checks(%0: tensor<[3], int64>, %1: tensor<[2], int64>) {
  prim.check_index(%0) {operator = "gather", low = 0, size = 4, besides = none}
  prim.check_index(%1) {operator = "gather", low = 0, size = 5, besides = none}
  return(%0)
}
// ----- becomes
program @number_index_checks(%0: tensor<[3], int64>, %1: tensor<[2], int64>) {
  prim.check_index(%0) {operator = "gather", low = 0, size = 4, besides = none, site = 0}
  prim.check_index(%1) {operator = "gather", low = 0, size = 5, besides = none, site = 1}
  return(%0)
}
