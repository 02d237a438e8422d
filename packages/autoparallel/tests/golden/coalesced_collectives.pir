// pipeline: combine-collectives
program @coalesced(%0: tensor<[64, 128], float32>, %1: tensor<[4, 2], float32>, %2: tensor<[], float32>, %3: tensor<[32, 128], float32>, %4: tensor<[64, 64], float32>) attributes {collectives = ((0, 9, -1, none, 32768.0, 0), (0, 9, -1, none, 32.0, 0), (0, 9, -1, none, 4.0, 0), (1, 9, -1, none, 16384.0, 0), (1, 9, -1, none, 16384.0, 0)), output_layouts = ("x=2 on 0-1: S(0)", "x=2 on 0-1: S(0)", "x=2 on 0-1: R", "x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %5 = prim.create_token() : token
  %6, %7 = prim.reduce_scatter(%0, %5) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[32, 128], float32>, token
  %8, %9 = prim.reduce_scatter(%1, %7) {group = (0, 1), size = 2, axis = 0, kind = "sum"} : tensor<[2, 2], float32>, token
  %10, %11 = prim.all_reduce(%2, %9) {group = (0, 1), size = 2, kind = "sum"} : tensor<[], float32>, token
  %12, %13 = prim.all_gather(%3, %11) {group = (0, 1), size = 2, axis = 0} : tensor<[64, 128], float32>, token
  %14, %15 = prim.all_gather(%4, %13) {group = (0, 1), size = 2, axis = 1} : tensor<[64, 128], float32>, token
  return(%6, %8, %10, %12, %14)
}
// ----- becomes
program @coalesced(%0: tensor<[64, 128], float32>, %1: tensor<[4, 2], float32>, %2: tensor<[], float32>, %3: tensor<[32, 128], float32>, %4: tensor<[64, 64], float32>) attributes {output_layouts = ("x=2 on 0-1: S(0)", "x=2 on 0-1: S(0)", "x=2 on 0-1: R", "x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %5 = prim.create_token() : token
  %6 = prim.reshape(%1) {shape = (2, 4)} : tensor<[2, 4], float32>
  %7 = prim.reshape(%2) {shape = (1,)} : tensor<[1], float32>
  %8 = prim.broadcast(%7) {shape = (2, 1), axes = (1,)} : tensor<[2, 1], float32>
  %9 = prim.concat(%6, %8) {axis = 1} : tensor<[2, 5], float32>
  %10 = prim.reshape(%9) {shape = (10,)} : tensor<[10], float32>
  %11, %12, %13 = prim.reduce_scatter_coalesced(%0, %10, %5) {group = (0, 1), size = 2, kind = "sum"} : tensor<[32, 128], float32>, tensor<[5], float32>, token
  %14 = prim.reshape(%12) {shape = (1, 5)} : tensor<[1, 5], float32>
  %15 = prim.slice(%14) {start = (0, 0), limit = (1, 4), stride = (1, 1)} : tensor<[1, 4], float32>
  %16 = prim.reshape(%15) {shape = (2, 2)} : tensor<[2, 2], float32>
  %17 = prim.slice(%14) {start = (0, 4), limit = (1, 5), stride = (1, 1)} : tensor<[1, 1], float32>
  %18 = prim.reshape(%17) {shape = ()} : tensor<[], float32>
  %19 = prim.reshape(%4) {shape = (4096,)} : tensor<[4096], float32>
  %20, %21, %22 = prim.all_gather_coalesced(%3, %19, %13) {group = (0, 1), size = 2} : tensor<[64, 128], float32>, tensor<[8192], float32>, token
  %23 = prim.reshape(%21) {shape = (2, 4096)} : tensor<[2, 4096], float32>
  %24 = prim.slice(%23) {start = (0, 0), limit = (2, 4096), stride = (1, 1)} : tensor<[2, 4096], float32>
  %25 = prim.reshape(%24) {shape = (2, 64, 64)} : tensor<[2, 64, 64], float32>
  %26 = prim.transpose(%25) {permutation = (1, 0, 2)} : tensor<[64, 2, 64], float32>
  %27 = prim.reshape(%26) {shape = (64, 128)} : tensor<[64, 128], float32>
  return(%11, %16, %18, %20, %27)
}
