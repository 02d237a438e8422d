// pipeline: spmd-partition{rank=1,inputs=["x=2 on 0-1: S(0)"],states=["x=2 on 0-1: R"]}
program @spmd_partition(%x: tensor<[4, 6], float32>) state(%w = "w": tensor<[6, 5], float32>) {
  %0 = prim.dot_general(%x, %w) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[4, 5], float32>
  %1 = prim.tanh(%0) : tensor<[4, 5], float32>
  %2 = prim.dot_general(%x, %1) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 5], float32>
  %3 = prim.reduce_sum(%1) {axes = (0, 1)} : tensor<[], float32>
  %4 = prim.sub(%w, %2) : tensor<[6, 5], float32>
  return(%3; %4)
}
// ----- becomes
program @spmd_partition(%0: tensor<[2, 6], float32>) state(%1 = "w": tensor<[6, 5], float32>) attributes {collectives = ((0, 4, 2, none, 120.0, 3),), output_layouts = ("x=2 on 0-1: P(sum)",)} {
  %2 = prim.dot_general(%0, %1) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[2, 5], float32>
  %3 = prim.tanh(%2) : tensor<[2, 5], float32>
  %4 = prim.dot_general(%0, %3) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 5], float32>
  %5 = prim.reduce_sum(%3) {axes = (0, 1)} : tensor<[], float32>
  %6 = prim.create_token() : token
  %7, %8 = prim.all_reduce(%4, %6) {group = (0, 1), size = 2, kind = "sum"} : tensor<[6, 5], float32>, token annotations {needed_by = ("prim.sub",)}
  %9 = prim.sub(%1, %7) : tensor<[6, 5], float32>
  return(%5; %9)
}
