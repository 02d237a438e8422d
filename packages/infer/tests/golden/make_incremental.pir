// pipeline: decompose{keep=[scaled_dot_product_attention]},make-incremental{block-size=8,rows=4}
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
program @decoder_incremental(%tokens: tensor<[t], int64>, %positions: tensor<[t], int64>, %sequences: tensor<[t], int64>, %block_tables: tensor<[4, table_blocks], int64>) state(%0 = "embedding": tensor<[32, 8], float32>, %1 = "cache.0.key": tensor<[kv_blocks, 8, 2, 4], float32> {role = "cache"}, %2 = "cache.0.value": tensor<[kv_blocks, 8, 2, 4], float32> {role = "cache"}) attributes {incremental = {block_size = 8, layers = 1}} {
  %3 = prim.reshape(%tokens) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %4 = prim.gather(%0, %3) {axes = (0,), batch = 0} : tensor<[t, 8], float32>
  %5 = prim.reshape(%4) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %6 = prim.reshape(%sequences) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %7 = prim.gather(%block_tables, %6) {axes = (0,), batch = 0} : tensor<[t, table_blocks], int64>
  %8 = builtin.constant() {value = dense<tensor<[], int64>, 8>} : tensor<[], int64>
  %9 = prim.broadcast(%8) {shape = (dim<t>,), axes = ()} : tensor<[t], int64>
  %10 = prim.floor_div(%positions, %9) : tensor<[t], int64>
  %11 = prim.reshape(%10) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %12 = prim.gather(%7, %11) {axes = (1,), batch = 1} : tensor<[t], int64>
  %13 = builtin.constant() {value = dense<tensor<[], int64>, 8>} : tensor<[], int64>
  %14 = prim.broadcast(%13) {shape = (dim<t>,), axes = ()} : tensor<[t], int64>
  %15 = prim.floor_mod(%positions, %14) : tensor<[t], int64>
  %16 = prim.reshape(%15) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %17 = prim.reshape(%12) {shape = (dim<t>, 1)} : tensor<[t, 1], int64>
  %18 = prim.concat(%17, %16) {axis = 1} : tensor<[t, 2], int64>
  %19 = prim.scatter(%1, %18, %5) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %20 = prim.scatter(%2, %18, %5) {axes = (0, 1), batch = 0, kind = "set"} : tensor<[kv_blocks, 8, 2, 4], float32>
  %21 = prim.reshape(%5) {shape = (dim<t>, 2, 1, 4)} : tensor<[t, 2, 1, 4], float32>
  %22 = prim.reshape(%7) {shape = (dim<t>, dim<table_blocks>, 1)} : tensor<[t, table_blocks, 1], int64>
  %23 = prim.gather(%19, %22) {axes = (0,), batch = 0} : tensor<[t, table_blocks, 8, 2, 4], float32>
  %24 = prim.reshape(%23) {shape = (dim<t>, dim<8*table_blocks>, 2, 4)} : tensor<[t, 8*table_blocks, 2, 4], float32>
  %25 = prim.reshape(%7) {shape = (dim<t>, dim<table_blocks>, 1)} : tensor<[t, table_blocks, 1], int64>
  %26 = prim.gather(%20, %25) {axes = (0,), batch = 0} : tensor<[t, table_blocks, 8, 2, 4], float32>
  %27 = prim.reshape(%26) {shape = (dim<t>, dim<8*table_blocks>, 2, 4)} : tensor<[t, 8*table_blocks, 2, 4], float32>
  %28 = prim.dot_general(%21, %24) {lhs_contract = (3,), rhs_contract = (3,), lhs_batch = (0, 1), rhs_batch = (0, 2), accumulate = ""} : tensor<[t, 2, 1, 8*table_blocks], float32>
  %29 = builtin.constant() {value = dense<tensor<[], float32>, 0.5>} : tensor<[], float32>
  %30 = prim.broadcast(%29) {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axes = ()} : tensor<[t, 2, 1, 8*table_blocks], float32>
  %31 = prim.mul(%28, %30) : tensor<[t, 2, 1, 8*table_blocks], float32>
  %32 = prim.iota() {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axis = 3, dtype = "int64"} : tensor<[t, 2, 1, 8*table_blocks], int64>
  %33 = prim.broadcast(%positions) {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axes = (0,)} : tensor<[t, 2, 1, 8*table_blocks], int64>
  %34 = prim.le(%32, %33) : tensor<[t, 2, 1, 8*table_blocks], bool>
  %35 = builtin.constant() {value = dense<tensor<[], float32>, -inf>} : tensor<[], float32>
  %36 = prim.broadcast(%35) {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axes = ()} : tensor<[t, 2, 1, 8*table_blocks], float32>
  %37 = prim.select(%34, %31, %36) : tensor<[t, 2, 1, 8*table_blocks], float32>
  %38 = prim.reduce_max(%37) {axes = (3,)} : tensor<[t, 2, 1], float32>
  %39 = prim.stop_gradient(%38) : tensor<[t, 2, 1], float32>
  %40 = prim.broadcast(%39) {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axes = (0, 1, 2)} : tensor<[t, 2, 1, 8*table_blocks], float32>
  %41 = prim.sub(%37, %40) : tensor<[t, 2, 1, 8*table_blocks], float32>
  %42 = prim.exp(%41) : tensor<[t, 2, 1, 8*table_blocks], float32>
  %43 = prim.reduce_sum(%42) {axes = (3,)} : tensor<[t, 2, 1], float32>
  %44 = builtin.constant() {value = dense<tensor<[], float32>, 1.0>} : tensor<[], float32>
  %45 = prim.broadcast(%44) {shape = (dim<t>, 2, 1), axes = ()} : tensor<[t, 2, 1], float32>
  %46 = prim.div(%45, %43) : tensor<[t, 2, 1], float32>
  %47 = prim.broadcast(%46) {shape = (dim<t>, 2, 1, dim<8*table_blocks>), axes = (0, 1, 2)} : tensor<[t, 2, 1, 8*table_blocks], float32>
  %48 = prim.mul(%42, %47) : tensor<[t, 2, 1, 8*table_blocks], float32>
  %49 = prim.dot_general(%48, %27) {lhs_contract = (3,), rhs_contract = (1,), lhs_batch = (0, 1), rhs_batch = (0, 2), accumulate = ""} : tensor<[t, 2, 1, 4], float32>
  %50 = prim.reshape(%49) {shape = (dim<t>, 2, 4)} : tensor<[t, 2, 4], float32>
  %51 = prim.reshape(%50) {shape = (dim<t>, 8)} : tensor<[t, 8], float32>
  %52 = prim.logistic(%51) : tensor<[t, 8], float32>
  %53 = prim.mul(%51, %52) : tensor<[t, 8], float32>
  %54 = prim.add(%53, %4) : tensor<[t, 8], float32>
  return(%54; %0, %19, %20)
}
