// pipeline: spmd-partition{states=["x=2 on 0-1: S(0)","x=2 on 0-1: S(1)","x=2 on 0-1: S(0)"],inputs=["x=2 on 0-1: S(0)"],reshard_after_use=true},combine-collectives{limit=400},dce
program @combine_gathers(%x: tensor<[32, 6], float32>) state(%v = "v": tensor<[6, 6], float32>, %w = "w": tensor<[6, 6], float32>, %u = "u": tensor<[6, 6], float32>) {
  %0 = prim.dot_general(%x, %v) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[32, 6], float32>
  %1 = prim.dot_general(%0, %w) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[32, 6], float32>
  %2 = prim.dot_general(%1, %u) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[32, 6], float32>
  %3 = prim.dot_general(%2, %w) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[32, 6], float32>
  %4 = prim.dot_general(%3, %v) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[32, 6], float32>
  %5 = prim.dot_general(%x, %4) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  %6 = prim.dot_general(%0, %3) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  return(; %5, %6, %u)
}
// ----- becomes
program @combine_gathers(%0: tensor<[16, 6], float32>) state(%1 = "v": tensor<[3, 6], float32>, %2 = "w": tensor<[6, 3], float32>, %3 = "u": tensor<[3, 6], float32>) attributes {output_layouts = ()} {
  %4 = prim.create_token() : token
  %5 = prim.reshape(%1) {shape = (18,)} : tensor<[18], float32>
  %6 = prim.reshape(%2) {shape = (18,)} : tensor<[18], float32>
  %7 = prim.concat(%5, %6) {axis = 0} : tensor<[36], float32>
  %8, %9 = prim.all_gather(%7, %4) {group = (0, 1), size = 2, axis = 0} : tensor<[72], float32>, token annotations {needed_by = ("prim.dot_general",)}
  %10 = prim.reshape(%8) {shape = (2, 36)} : tensor<[2, 36], float32>
  %11 = prim.slice(%10) {start = (0, 0), limit = (2, 18), stride = (1, 1)} : tensor<[2, 18], float32>
  %12 = prim.reshape(%11) {shape = (6, 6)} : tensor<[6, 6], float32>
  %13 = prim.slice(%10) {start = (0, 18), limit = (2, 36), stride = (1, 1)} : tensor<[2, 18], float32>
  %14 = prim.reshape(%13) {shape = (2, 6, 3)} : tensor<[2, 6, 3], float32>
  %15 = prim.transpose(%14) {permutation = (1, 0, 2)} : tensor<[6, 2, 3], float32>
  %16 = prim.reshape(%15) {shape = (6, 6)} : tensor<[6, 6], float32>
  %17 = prim.dot_general(%0, %12) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %18 = prim.dot_general(%17, %16) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %19 = prim.reshape(%3) {shape = (18,)} : tensor<[18], float32>
  %20 = prim.reshape(%1) {shape = (18,)} : tensor<[18], float32>
  %21 = prim.concat(%19, %20) {axis = 0} : tensor<[36], float32>
  %22, %23 = prim.all_gather(%21, %9) {group = (0, 1), size = 2, axis = 0} : tensor<[72], float32>, token annotations {needed_by = ("prim.dot_general",)}
  %24 = prim.reshape(%22) {shape = (2, 36)} : tensor<[2, 36], float32>
  %25 = prim.slice(%24) {start = (0, 0), limit = (2, 18), stride = (1, 1)} : tensor<[2, 18], float32>
  %26 = prim.reshape(%25) {shape = (6, 6)} : tensor<[6, 6], float32>
  %27 = prim.slice(%24) {start = (0, 18), limit = (2, 36), stride = (1, 1)} : tensor<[2, 18], float32>
  %28 = prim.reshape(%27) {shape = (6, 6)} : tensor<[6, 6], float32>
  %29 = prim.dot_general(%18, %26) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %30 = prim.dot_general(%29, %16) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %31 = prim.dot_general(%30, %28) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %32 = prim.dot_general(%0, %31) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  %33 = prim.dot_general(%17, %30) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  %34 = prim.reshape(%32) {shape = (2, 18)} : tensor<[2, 18], float32>
  %35 = prim.reshape(%33) {shape = (6, 2, 3)} : tensor<[6, 2, 3], float32>
  %36 = prim.transpose(%35) {permutation = (1, 0, 2)} : tensor<[2, 6, 3], float32>
  %37 = prim.reshape(%36) {shape = (2, 18)} : tensor<[2, 18], float32>
  %38 = prim.concat(%34, %37) {axis = 1} : tensor<[2, 36], float32>
  %39 = prim.reshape(%38) {shape = (72,)} : tensor<[72], float32>
  %40, %41 = prim.reduce_scatter(%39, %23) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[36], float32>, token
  %42 = prim.reshape(%40) {shape = (1, 36)} : tensor<[1, 36], float32>
  %43 = prim.slice(%42) {start = (0, 0), limit = (1, 18), stride = (1, 1)} : tensor<[1, 18], float32>
  %44 = prim.reshape(%43) {shape = (3, 6)} : tensor<[3, 6], float32>
  %45 = prim.slice(%42) {start = (0, 18), limit = (1, 36), stride = (1, 1)} : tensor<[1, 18], float32>
  %46 = prim.reshape(%45) {shape = (6, 3)} : tensor<[6, 3], float32>
  return(; %44, %46, %3)
}
