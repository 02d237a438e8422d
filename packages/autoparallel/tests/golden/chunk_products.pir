// pipeline: chunk-products{chunks=2, least=1}
program @chunks(%0: tensor<[4, 3], float32>, %1: tensor<[3, 2], float32>, %2: tensor<[2, 5], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %3 = prim.create_token() : token
  %4, %5 = prim.all_gather(%0, %3) {group = (0, 1), size = 2, axis = 0} : tensor<[8, 3], float32>, token
  %6 = prim.dot_general(%4, %1) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[8, 2], float32>
  %7 = prim.tanh(%6) : tensor<[8, 2], float32>
  %8 = prim.dot_general(%7, %2) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[8, 5], float32>
  %9, %10 = prim.reduce_scatter(%8, %5) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[4, 5], float32>, token
  return(%4, %9)
}
// ----- becomes
program @chunks(%0: tensor<[4, 3], float32>, %1: tensor<[3, 2], float32>, %2: tensor<[2, 5], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %3 = prim.create_token() : token
  %4 = prim.slice(%0) {start = (0, 0), limit = (2, 3), stride = (1, 1)} : tensor<[2, 3], float32>
  %5, %6 = prim.all_gather(%4, %3) {group = (0, 1), size = 2, axis = 0} : tensor<[4, 3], float32>, token
  %7 = prim.slice(%0) {start = (2, 0), limit = (4, 3), stride = (1, 1)} : tensor<[2, 3], float32>
  %8, %9 = prim.all_gather(%7, %6) {group = (0, 1), size = 2, axis = 0} : tensor<[4, 3], float32>, token
  %10 = prim.dot_general(%5, %1) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 2], float32>
  %11 = prim.dot_general(%8, %1) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 2], float32>
  %12 = prim.reshape(%10) {shape = (2, 2, 2)} : tensor<[2, 2, 2], float32>
  %13 = prim.reshape(%11) {shape = (2, 2, 2)} : tensor<[2, 2, 2], float32>
  %14 = prim.concat(%12, %13) {axis = 1} : tensor<[2, 4, 2], float32>
  %15 = prim.reshape(%14) {shape = (8, 2)} : tensor<[8, 2], float32>
  %16 = prim.reshape(%5) {shape = (2, 2, 3)} : tensor<[2, 2, 3], float32>
  %17 = prim.reshape(%8) {shape = (2, 2, 3)} : tensor<[2, 2, 3], float32>
  %18 = prim.concat(%16, %17) {axis = 1} : tensor<[2, 4, 3], float32>
  %19 = prim.reshape(%18) {shape = (8, 3)} : tensor<[8, 3], float32>
  %20 = prim.tanh(%15) : tensor<[8, 2], float32>
  %21 = prim.reshape(%20) {shape = (2, 4, 2)} : tensor<[2, 4, 2], float32>
  %22 = prim.slice(%21) {start = (0, 0, 0), limit = (2, 2, 2), stride = (1, 1, 1)} : tensor<[2, 2, 2], float32>
  %23 = prim.reshape(%22) {shape = (4, 2)} : tensor<[4, 2], float32>
  %24 = prim.dot_general(%23, %2) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 5], float32>
  %25, %26 = prim.reduce_scatter(%24, %9) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[2, 5], float32>, token
  %27 = prim.slice(%21) {start = (0, 2, 0), limit = (2, 4, 2), stride = (1, 1, 1)} : tensor<[2, 2, 2], float32>
  %28 = prim.reshape(%27) {shape = (4, 2)} : tensor<[4, 2], float32>
  %29 = prim.dot_general(%28, %2) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = (), accumulate = ""} : tensor<[4, 5], float32>
  %30, %31 = prim.reduce_scatter(%29, %26) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[2, 5], float32>, token
  %32 = prim.concat(%25, %30) {axis = 0} : tensor<[4, 5], float32>
  return(%19, %32)
}
