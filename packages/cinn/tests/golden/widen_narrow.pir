// pipeline: widen-narrow
program @widen_narrow(%0: tensor<[4, 3], bfloat16>, %1: tensor<[2, 1], int64>, %2: tensor<[2, 3], bfloat16>, %3: tensor<[2, 3], int8>, %4: tensor<[3, 2], int8>) {
  %5 = prim.scatter(%0, %1, %2) {axes = (0,), batch = 0, kind = "add"} : tensor<[4, 3], bfloat16>
  %6 = prim.dot_general(%3, %4) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[2, 2], int8>
  return(%5, %6)
}
// ----- becomes
program @widen_narrow(%0: tensor<[4, 3], bfloat16>, %1: tensor<[2, 1], int64>, %2: tensor<[2, 3], bfloat16>, %3: tensor<[2, 3], int8>, %4: tensor<[3, 2], int8>) {
  %5 = prim.cast(%0) {dtype = "float32"} : tensor<[4, 3], float32>
  %6 = prim.cast(%2) {dtype = "float32"} : tensor<[2, 3], float32>
  %7 = prim.scatter(%5, %1, %6) {axes = (0,), batch = 0, kind = "add"} : tensor<[4, 3], float32>
  %8 = prim.cast(%7) {dtype = "bfloat16"} : tensor<[4, 3], bfloat16>
  %9 = prim.cast(%3) {dtype = "int32"} : tensor<[2, 3], int32>
  %10 = prim.cast(%4) {dtype = "int32"} : tensor<[3, 2], int32>
  %11 = prim.dot_general(%3, %4) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = "int32"} : tensor<[2, 2], int32>
  %12 = prim.cast(%11) {dtype = "int8"} : tensor<[2, 2], int8>
  return(%8, %12)
}
