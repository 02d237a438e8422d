// pipeline: number-index-checks,lower-index-checks
program @lower_index_checks(%0: tensor<[3], int64>) {
  prim.check_index(%0) {operator = "gather", low = 0, size = 4, besides = none}
  %1 = builtin.constant() {value = dense<tensor<[], int64>, 1>} : tensor<[], int64>
  %2 = prim.broadcast(%1) {shape = (3,), axes = ()} : tensor<[3], int64>
  %3 = prim.add(%0, %2) : tensor<[3], int64>
  return(%3)
}
// ----- becomes
program @lower_index_checks(%0: tensor<[3], int64>) {
  %1 = builtin.constant() {value = dense<tensor<[3], int64>, 0>} : tensor<[3], int64>
  %2 = prim.lt(%0, %1) : tensor<[3], bool>
  %3 = builtin.constant() {value = dense<tensor<[3], int64>, 4>} : tensor<[3], int64>
  %4 = prim.ge(%0, %3) : tensor<[3], bool>
  %5 = prim.logical_or(%2, %4) : tensor<[3], bool>
  %6 = prim.iota() {shape = (3,), axis = 0, dtype = "int64"} : tensor<[3], int64>
  %7 = builtin.constant() {value = dense<tensor<[3], int64>, 3>} : tensor<[3], int64>
  %8 = prim.select(%5, %6, %7) : tensor<[3], int64>
  %9 = prim.reduce_min(%8) {axes = (0,)} : tensor<[], int64>
  %10 = builtin.constant() {value = dense<tensor<[], int64>, 2>} : tensor<[], int64>
  %11 = prim.minimum(%9, %10) : tensor<[], int64>
  %12 = prim.reshape(%11) {shape = (1,)} : tensor<[1], int64>
  %13 = prim.gather(%0, %12) {axes = (0,), batch = 0} : tensor<[], int64>
  %14 = cinn.note_index(%9, %13) {site = 0, count = 3} : tensor<[], int64>
  %15 = builtin.constant() {value = dense<tensor<[], int64>, 1>} : tensor<[], int64>
  %16 = prim.broadcast(%15) {shape = (3,), axes = ()} : tensor<[3], int64>
  %17 = prim.add(%0, %16) : tensor<[3], int64>
  return(%17)
}
