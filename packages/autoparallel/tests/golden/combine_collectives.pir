// pipeline: combine-collectives{limit=64}
program @combine_collectives(%0: tensor<[4], float32>, %1: tensor<[2, 3], float32>) attributes {collectives = ((0, 0, -1, none, 16.0), (0, 1, -1, none, 24.0)), output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3, %4 = prim.all_reduce(%0, %2) {group = (0, 1), size = 2, kind = "sum"} : tensor<[4], float32>, token
  %5 = prim.exp(%3) : tensor<[4], float32>
  %6, %7 = prim.all_reduce(%1, %4) {group = (0, 1), size = 2, kind = "sum"} : tensor<[2, 3], float32>, token
  %8 = prim.exp(%6) : tensor<[2, 3], float32>
  return(%5, %8)
}
// ----- becomes
program @combine_collectives(%0: tensor<[4], float32>, %1: tensor<[2, 3], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3 = prim.reshape(%0) {shape = (4,)} : tensor<[4], float32>
  %4 = prim.reshape(%1) {shape = (6,)} : tensor<[6], float32>
  %5 = prim.concat(%3, %4) {axis = 0} : tensor<[10], float32>
  %6, %7 = prim.all_reduce(%5, %2) {group = (0, 1), size = 2, kind = "sum"} : tensor<[10], float32>, token
  %8 = prim.reshape(%6) {shape = (1, 10)} : tensor<[1, 10], float32>
  %9 = prim.slice(%8) {start = (0, 0), limit = (1, 4), stride = (1, 1)} : tensor<[1, 4], float32>
  %10 = prim.reshape(%9) {shape = (4,)} : tensor<[4], float32>
  %11 = prim.slice(%8) {start = (0, 4), limit = (1, 10), stride = (1, 1)} : tensor<[1, 6], float32>
  %12 = prim.reshape(%11) {shape = (2, 3)} : tensor<[2, 3], float32>
  %13 = prim.exp(%10) : tensor<[4], float32>
  %14 = prim.exp(%12) : tensor<[2, 3], float32>
  return(%13, %14)
}
