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
  %9 = builtin.constant() {value = dense<tensor<[], int64>, 8>} : tensor<[], int64>
  %10 = prim.broadcast(%9) {shape = (dim<t>,), axes = ()} : tensor<[t], int64>
  %11 = prim.floor_div(%positions, %10) : tensor<[t], int64>
  %12 = prim.reshape(%8) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %13 = prim.reshape(%11) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %14 = prim.concat(%12, %13) {axis = 1} : tensor<[t, 2], int64>
  %15 = prim.gather(%block_tables, %14) {axes = (0, 1), batch = 0} : tensor<[t], int64>
  %16 = prim.floor_mod(%positions, %10) : tensor<[t], int64>
  %17 = prim.reshape(%15) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %18 = prim.reshape(%16) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %19 = prim.concat(%17, %18) {axis = 1} : tensor<[t, 2], int64>
  %20 = prim.reshape(%tokens) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %21 = prim.gather(%0, %20) {axes = (0,), batch = 0} : tensor<[t, 8], float32>
  %22 = prim.reshape(%21) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %23 = prim.scatter(%1, %19, %22) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %24 = prim.scatter(%2, %19, %22) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %25 = prim.reshape(%22) {shape = (dim<t>, 2, 1, 4)} : tensor<[t, 2, 1, 4], float32>
  %26 = prim.paged_attention(%25, %23, %24, %positions, %8, %block_tables) {scale = 0.5, window = 0, softcap = 0.0, width = 0} : tensor<[t, 2, 1, 4], float32>
  %27 = prim.reshape(%26) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %28 = prim.reshape(%outputs) {shape = (dim<m>, 1)} : tensor<[m, 1], int64>
  %29 = prim.gather(%27, %28) {axes = (0,), batch = 0} : tensor<[m, 2, 4], float32>
  %30 = prim.reshape(%29) {shape = (dim<m>, 8)} : tensor<[m, 8], float32>
  %31 = prim.logistic(%30) : tensor<[m, 8], float32>
  %32 = prim.mul(%30, %31) : tensor<[m, 8], float32>
  %33 = prim.reshape(%outputs) {shape = (dim<m>, 1)} : tensor<[m, 1], int64>
  %34 = prim.gather(%21, %33) {axes = (0,), batch = 0} : tensor<[m, 8], float32>
  %35 = prim.add(%32, %34) : tensor<[m, 8], float32>
  return(%35; %0, %23, %24)
}
