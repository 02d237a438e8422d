// pipeline: overlap{least=1}
program @overlap(%0: tensor<[4], float32>, %1: tensor<[4], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3 = prim.exp(%1) : tensor<[4], float32>
  %4, %5 = prim.all_reduce(%0, %2) {group = (0, 1), size = 2, kind = "sum"} : tensor<[4], float32>, token
  %6 = prim.exp(%3) : tensor<[4], float32>
  %7 = prim.add(%4, %6) : tensor<[4], float32>
  return(%6, %7)
}
// ----- becomes
program @overlap(%0: tensor<[4], float32>, %1: tensor<[4], float32>) attributes {output_layouts = ("x=2 on 0-1: R", "x=2 on 0-1: R")} {
  %2 = prim.create_token() : token
  %3, %4, %5 = prim.start(%0, %2) {collective = "all_reduce", group = (0, 1), size = 2, axis = 0, concat_axis = 0, kind = "sum", root = 0, pairs = ()} : tensor<[4], float32>, token, token
  %6 = prim.exp(%1) : tensor<[4], float32>
  %7 = prim.exp(%6) : tensor<[4], float32>
  %8, %9 = prim.wait(%3, %4, %5) : tensor<[4], float32>, token
  %10 = prim.add(%8, %7) : tensor<[4], float32>
  return(%7, %10)
}
