// pipeline: recompute-regions,dce
program @recompute_regions(%x: tensor<[3], float32>) state(%w = "w": tensor<[3], float32>, %c = "counter": tensor<[], int64>) {
  %0 = prim.exp(%x) : tensor<[3], float32>
  %1 = prim.cast(%c) {dtype = "float32"} : tensor<[], float32> annotations {recompute = 0}
  %2 = prim.broadcast(%1) {shape = (3,), axes = ()} : tensor<[3], float32> annotations {recompute = 0}
  %3 = prim.mul(%0, %w) : tensor<[3], float32> annotations {recompute = 0}
  %4 = prim.sin(%3) : tensor<[3], float32> annotations {kept = true, recompute = 0}
  %5 = prim.mul(%4, %2) : tensor<[3], float32> annotations {recompute = 0}
  %6 = prim.tanh(%5) : tensor<[3], float32> annotations {recompute = 0}
  %7 = prim.log(%6) : tensor<[3], float32>
  %8 = prim.cos(%7) : tensor<[3], float32> annotations {phase = "input-gradient"}
  %9 = prim.mul(%8, %5) : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %10 = prim.mul(%9, %3) : tensor<[3], float32> annotations {phase = "weight-gradient", recompute = 0}
  return(%7, %10; %w, %c)
}
// ----- becomes
program @recompute_regions(%x: tensor<[3], float32>) state(%w = "w": tensor<[3], float32>, %c = "counter": tensor<[], int64>) {
  %0 = prim.exp(%x) : tensor<[3], float32>
  %1 = prim.cast(%c) {dtype = "float32"} : tensor<[], float32> annotations {recompute = 0}
  %2 = prim.broadcast(%1) {shape = (3,), axes = ()} : tensor<[3], float32> annotations {recompute = 0}
  %3 = prim.mul(%0, %w) : tensor<[3], float32> annotations {recompute = 0}
  %4 = prim.sin(%3) : tensor<[3], float32> annotations {kept = true, recompute = 0}
  %5 = prim.mul(%4, %2) : tensor<[3], float32> annotations {recompute = 0}
  %6 = prim.tanh(%5) : tensor<[3], float32> annotations {recompute = 0}
  %7 = prim.log(%6) : tensor<[3], float32>
  %8 = prim.cos(%7) : tensor<[3], float32> annotations {phase = "input-gradient"}
  %9 = prim.slice(%8) {start = (0,), limit = (1,), stride = (1,)} : tensor<[1], float32> annotations {phase = "input-gradient", recompute = 0}
  %10 = prim.reshape(%9) {shape = ()} : tensor<[], float32> annotations {phase = "input-gradient", recompute = 0}
  %11 = prim.ne(%10, %10) : tensor<[], bool> annotations {phase = "input-gradient", recompute = 0}
  %12 = prim.cast(%11) {dtype = "int32"} : tensor<[], int32> annotations {phase = "input-gradient", recompute = 0}
  %13 = prim.reshape(%c) {shape = (1,)} : tensor<[1], int64> annotations {phase = "input-gradient", recompute = 0}
  %14 = prim.dynamic_slice(%13, %12) {sizes = (1,)} : tensor<[1], int64> annotations {phase = "input-gradient", recompute = 0}
  %15 = prim.reshape(%14) {shape = ()} : tensor<[], int64> annotations {phase = "input-gradient", recompute = 0}
  %16 = prim.dynamic_slice(%0, %12) {sizes = (3,)} : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %17 = prim.dynamic_slice(%w, %12) {sizes = (3,)} : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %18 = prim.dynamic_slice(%4, %12) {sizes = (3,)} : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %19 = prim.cast(%15) {dtype = "float32"} : tensor<[], float32> annotations {phase = "input-gradient", recompute = 0}
  %20 = prim.broadcast(%19) {shape = (3,), axes = ()} : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %21 = prim.mul(%16, %17) : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %22 = prim.mul(%18, %20) : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %23 = prim.mul(%8, %22) : tensor<[3], float32> annotations {phase = "input-gradient", recompute = 0}
  %24 = prim.mul(%23, %21) : tensor<[3], float32> annotations {phase = "weight-gradient", recompute = 0}
  return(%7, %24; %w, %c)
}
