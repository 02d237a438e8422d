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
  %5 = prim.reshape(%1) {shape = (1, 18)} : tensor<[1, 18], float32>
  %6 = prim.reshape(%2) {shape = (1, 18)} : tensor<[1, 18], float32>
  %7 = prim.concat(%5, %6) {axis = 1} : tensor<[1, 36], float32>
  %8 = prim.reshape(%7) {shape = (36,)} : tensor<[36], float32>
  %9, %10 = prim.all_gather(%8, %4) {group = (0, 1), size = 2, axis = 0} : tensor<[72], float32>, token annotations {needed_by = ("prim.dot_general",)}
  %11 = prim.reshape(%9) {shape = (2, 36)} : tensor<[2, 36], float32>
  %12 = prim.slice(%11) {start = (0, 0), limit = (2, 18), stride = (1, 1)} : tensor<[2, 18], float32>
  %13 = prim.reshape(%12) {shape = (6, 6)} : tensor<[6, 6], float32>
  %14 = prim.slice(%11) {start = (0, 18), limit = (2, 36), stride = (1, 1)} : tensor<[2, 18], float32>
  %15 = prim.reshape(%14) {shape = (2, 6, 3)} : tensor<[2, 6, 3], float32>
  %16 = prim.transpose(%15) {permutation = (1, 0, 2)} : tensor<[6, 2, 3], float32>
  %17 = prim.reshape(%16) {shape = (6, 6)} : tensor<[6, 6], float32>
  %18 = prim.dot_general(%0, %13) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %19 = prim.dot_general(%18, %17) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %20 = prim.reshape(%3) {shape = (1, 18)} : tensor<[1, 18], float32>
  %21 = prim.reshape(%1) {shape = (1, 18)} : tensor<[1, 18], float32>
  %22 = prim.concat(%20, %21) {axis = 1} : tensor<[1, 36], float32>
  %23 = prim.reshape(%22) {shape = (36,)} : tensor<[36], float32>
  %24, %25 = prim.all_gather(%23, %10) {group = (0, 1), size = 2, axis = 0} : tensor<[72], float32>, token annotations {needed_by = ("prim.dot_general",)}
  %26 = prim.reshape(%24) {shape = (2, 36)} : tensor<[2, 36], float32>
  %27 = prim.slice(%26) {start = (0, 0), limit = (2, 18), stride = (1, 1)} : tensor<[2, 18], float32>
  %28 = prim.reshape(%27) {shape = (6, 6)} : tensor<[6, 6], float32>
  %29 = prim.slice(%26) {start = (0, 18), limit = (2, 36), stride = (1, 1)} : tensor<[2, 18], float32>
  %30 = prim.reshape(%29) {shape = (6, 6)} : tensor<[6, 6], float32>
  %31 = prim.dot_general(%19, %28) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %32 = prim.dot_general(%31, %17) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %33 = prim.dot_general(%32, %30) {lhs_contract = (1,), rhs_contract = (1,), lhs_batch = (), rhs_batch = ()} : tensor<[16, 6], float32>
  %34 = prim.dot_general(%0, %33) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  %35 = prim.dot_general(%18, %32) {lhs_contract = (0,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} : tensor<[6, 6], float32>
  %36 = prim.reshape(%34) {shape = (2, 18)} : tensor<[2, 18], float32>
  %37 = prim.reshape(%35) {shape = (6, 2, 3)} : tensor<[6, 2, 3], float32>
  %38 = prim.transpose(%37) {permutation = (1, 0, 2)} : tensor<[2, 6, 3], float32>
  %39 = prim.reshape(%38) {shape = (2, 18)} : tensor<[2, 18], float32>
  %40 = prim.concat(%36, %39) {axis = 1} : tensor<[2, 36], float32>
  %41 = prim.reshape(%40) {shape = (72,)} : tensor<[72], float32>
  %42, %43 = prim.reduce_scatter(%41, %25) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[36], float32>, token
  %44 = prim.reshape(%42) {shape = (1, 36)} : tensor<[1, 36], float32>
  %45 = prim.slice(%44) {start = (0, 0), limit = (1, 18), stride = (1, 1)} : tensor<[1, 18], float32>
  %46 = prim.reshape(%45) {shape = (3, 6)} : tensor<[3, 6], float32>
  %47 = prim.slice(%44) {start = (0, 18), limit = (1, 36), stride = (1, 1)} : tensor<[1, 18], float32>
  %48 = prim.reshape(%47) {shape = (6, 3)} : tensor<[6, 3], float32>
  return(; %46, %48, %3)
}
