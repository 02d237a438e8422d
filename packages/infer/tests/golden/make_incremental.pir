// pipeline: decompose{keep=[scaled_dot_product_attention]},make-incremental{block-size=8}
program @decoder(%tokens: tensor<[b, s], int64>) state(%0 = "embedding": tensor<[32, 8], float32>) {
  %1 = prim.reshape(%tokens) {shape = (dim<b>, dim<s>, 1)} : tensor<[b, s, 1], int64>
  %2 = prim.gather(%0, %1) {axes = (0,), batch = 0} : tensor<[b, s, 8], float32>
  %3 = prim.reshape(%2) {shape = (dim<b>, dim<s>, 2, 4)} : tensor<[b, s, 2, 4], float32>
  %4 = phi.scaled_dot_product_attention(%3, %3, %3) {is_causal = true, scale = none} : tensor<[b, s, 2, 4], float32>
  %5 = prim.reshape(%4) {shape = (dim<b>, dim<s>, 8)} : tensor<[b, s, 8], float32>
  %6 = phi.silu(%5) : tensor<[b, s, 8], float32>
  %7 = prim.add(%6, %2) : tensor<[b, s, 8], float32>
  return(%7; %0)
}
// ----- becomes
program @decoder_incremental(%tokens: tensor<[t], int64>, %positions: tensor<[t], int64>, %starts: tensor<[rows + 1], int64>, %block_tables: tensor<[rows, table_blocks], int64>, %outputs: tensor<[m], int64>) state(%0 = "embedding": tensor<[32, 8], float32>, %1 = "cache.0.key": tensor<[kv_blocks, 8, 2, 4], float32> {role = "cache", kind = "full", layer = 0, window = 0}, %2 = "cache.0.value": tensor<[kv_blocks, 8, 2, 4], float32> {role = "cache", kind = "full", layer = 0, window = 0}) attributes {tokens_limit = 32, incremental = {block_size = 8, layers = 1}} {
  prim.check_index(%tokens) {operator = "tokens", low = 0, size = 32, besides = none}
  prim.check_index(%outputs) {operator = "outputs", low = 0, size = dim<t>, besides = none}
  %3 = prim.slice(%starts) {start = (1,), limit = (dim<rows + 1>,), stride = (1,)} : tensor<[rows], int64>
  %4 = prim.iota() {shape = (dim<t>, dim<rows>), axis = 0, dtype = "int64"} : tensor<[t, rows], int64>
  %5 = prim.broadcast(%3) {shape = (dim<t>, dim<rows>), axes = (1,)} : tensor<[t, rows], int64>
  %6 = prim.le(%5, %4) : tensor<[t, rows], bool>
  %7 = prim.cast(%6) {dtype = "int64"} : tensor<[t, rows], int64>
  %8 = prim.reduce_sum(%7) {axes = (1,)} : tensor<[t], int64>
  prim.check_index(%8) {operator = "starts", low = 0, size = dim<rows>, besides = none}
  %9 = prim.reshape(%tokens) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %10 = prim.gather(%0, %9) {axes = (0,), batch = 0} : tensor<[t, 8], float32>
  %11 = prim.reshape(%10) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %12 = builtin.constant() {value = dense<tensor<[], int64>, 8>} : tensor<[], int64>
  %13 = prim.broadcast(%12) {shape = (dim<t>,), axes = ()} : tensor<[t], int64>
  %14 = prim.floor_div(%positions, %13) : tensor<[t], int64>
  %15 = prim.reshape(%8) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %16 = prim.reshape(%14) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %17 = prim.concat(%15, %16) {axis = 1} : tensor<[t, 2], int64>
  %18 = prim.gather(%block_tables, %17) {axes = (0, 1), batch = 0} : tensor<[t], int64>
  %19 = builtin.constant() {value = dense<tensor<[], int64>, 8>} : tensor<[], int64>
  %20 = prim.broadcast(%19) {shape = (dim<t>,), axes = ()} : tensor<[t], int64>
  %21 = prim.floor_mod(%positions, %20) : tensor<[t], int64>
  %22 = prim.reshape(%21) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %23 = prim.reshape(%18) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %24 = prim.concat(%23, %22) {axis = 1} : tensor<[t, 2], int64>
  %25 = prim.scatter(%1, %24, %11) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %26 = prim.scatter(%2, %24, %11) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %27 = prim.reshape(%11) {shape = (dim<t>, 2, 1, 4)} : tensor<[t, 2, 1, 4], float32>
  %28 = prim.paged_attention(%27, %25, %26, %positions, %8, %block_tables) {scale = 0.5, window = 0, softcap = 0.0} : tensor<[t, 2, 1, 4], float32>
  %29 = prim.reshape(%28) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %30 = prim.reshape(%outputs) {shape = (dim<m>, 1)} : tensor<[m, 1], int64>
  %31 = prim.gather(%positions, %30) {axes = (0,), batch = 0} : tensor<[m], int64>
  %32 = prim.reshape(%outputs) {shape = (dim<m>, 1)} : tensor<[m, 1], int64>
  %33 = prim.gather(%29, %32) {axes = (0,), batch = 0} : tensor<[m, 2, 4], float32>
  %34 = prim.reshape(%33) {shape = (dim<m>, 8)} : tensor<[m, 8], float32>
  %35 = prim.logistic(%34) : tensor<[m, 8], float32>
  %36 = prim.mul(%34, %35) : tensor<[m, 8], float32>
  %37 = prim.reshape(%outputs) {shape = (dim<m>, 1)} : tensor<[m, 1], int64>
  %38 = prim.gather(%10, %37) {axes = (0,), batch = 0} : tensor<[m, 8], float32>
  %39 = prim.add(%36, %38) : tensor<[m, 8], float32>
  return(%39; %0, %25, %26)
}
