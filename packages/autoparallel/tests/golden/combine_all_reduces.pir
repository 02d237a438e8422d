// pipeline: combine-all-reduces{limit=64}
program @combine_all_reduces(%0: tensor<[4], float32>, %1: tensor<[2, 3], float32>) attributes {all_reduces = ((0, 0, -1, none, 16.0), (0, 1, -1, none, 24.0)), output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3, %4 = prim.all_reduce(%0, %2) {group = (0, 1), size = 2, kind = "sum"} : tensor<[4], float32>, token
  %5 = prim.exp(%3) : tensor<[4], float32>
  %6, %7 = prim.all_reduce(%1, %4) {group = (0, 1), size = 2, kind = "sum"} : tensor<[2, 3], float32>, token
  %8 = prim.exp(%6) : tensor<[2, 3], float32>
  return(%5, %8)
}
// ----- becomes
program @combine_all_reduces(%0: tensor<[4], float32>, %1: tensor<[2, 3], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3 = prim.reshape(%0) {shape = (4,)} : tensor<[4], float32>
  %4 = prim.reshape(%1) {shape = (6,)} : tensor<[6], float32>
  %5 = prim.concat(%3, %4) {axis = 0} : tensor<[10], float32>
  %6, %7 = prim.all_reduce(%5, %2) {group = (0, 1), size = 2, kind = "sum"} : tensor<[10], float32>, token
  %8 = prim.slice(%6) {start = (0,), limit = (4,), stride = (1,)} : tensor<[4], float32>
  %9 = prim.reshape(%8) {shape = (4,)} : tensor<[4], float32>
  %10 = prim.slice(%6) {start = (4,), limit = (10,), stride = (1,)} : tensor<[6], float32>
  %11 = prim.reshape(%10) {shape = (2, 3)} : tensor<[2, 3], float32>
  %12 = prim.exp(%9) : tensor<[4], float32>
  %13 = prim.exp(%11) : tensor<[2, 3], float32>
  return(%12, %13)
}
