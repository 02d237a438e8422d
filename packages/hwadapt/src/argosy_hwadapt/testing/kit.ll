; The kit's kernels for the form spirv, as text of LLVM: `kit.spv` is what its SPIR-V generator makes of it, by
; python packages/cinn/src/argosy_cinn/runtime/emit_spirv.py < kit.ll > kit.spv
; A buffer is two parameters, an address and an offset in bytes; all but count_items run on the first work-item.
target triple = "spirv64v1.3-unknown-unknown"
declare i64 @_Z13get_global_idj(i32)
declare i64 @_Z15get_global_sizej(i32)

define internal i64 @item() {
  %x = call i64 @_Z13get_global_idj(i32 0)
  %y = call i64 @_Z13get_global_idj(i32 1)
  %z = call i64 @_Z13get_global_idj(i32 2)
  %width = call i64 @_Z15get_global_sizej(i32 0)
  %height = call i64 @_Z15get_global_sizej(i32 1)
  %plane = mul i64 %z, %height
  %row = add i64 %plane, %y
  %first = mul i64 %row, %width
  %item = add i64 %first, %x
  ret i64 %item
}

define spir_kernel void @affine_float32(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, float %a, float %b, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr float, ptr addrspace(1) %x_at, i64 %i
  %x_i = load float, ptr addrspace(1) %x_place
  %product = fmul float %a, %x_i
  %sum = fadd float %product, %b
  %y_place = getelementptr float, ptr addrspace(1) %y_at, i64 %i
  store float %sum, ptr addrspace(1) %y_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @affine_float64(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, double %a, double %b, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr double, ptr addrspace(1) %x_at, i64 %i
  %x_i = load double, ptr addrspace(1) %x_place
  %product = fmul double %a, %x_i
  %sum = fadd double %product, %b
  %y_place = getelementptr double, ptr addrspace(1) %y_at, i64 %i
  store double %sum, ptr addrspace(1) %y_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @affine_int32(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, i32 %a, i32 %b, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr i32, ptr addrspace(1) %x_at, i64 %i
  %x_i = load i32, ptr addrspace(1) %x_place
  %product = mul i32 %a, %x_i
  %sum = add i32 %product, %b
  %y_place = getelementptr i32, ptr addrspace(1) %y_at, i64 %i
  store i32 %sum, ptr addrspace(1) %y_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @affine_int64(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, i64 %a, i64 %b, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr i64, ptr addrspace(1) %x_at, i64 %i
  %x_i = load i64, ptr addrspace(1) %x_place
  %product = mul i64 %a, %x_i
  %sum = add i64 %product, %b
  %y_place = getelementptr i64, ptr addrspace(1) %y_at, i64 %i
  store i64 %sum, ptr addrspace(1) %y_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @count_items(ptr addrspace(1) %out, i64 %out_offset, i64 %n) {
  %out_at = getelementptr i8, ptr addrspace(1) %out, i64 %out_offset
  %item = call i64 @item()
  %inside = icmp slt i64 %item, %n
  br i1 %inside, label %body, label %done
body:
  %place = getelementptr i32, ptr addrspace(1) %out_at, i64 %item
  %before = load i32, ptr addrspace(1) %place
  %after = add i32 %before, 1
  store i32 %after, ptr addrspace(1) %place
  br label %done
done:
  ret void
}

define spir_kernel void @scalars(ptr addrspace(1) %out, i64 %out_offset, i8 %a, i16 %b, i32 %c, float %d, i8 %e, double %f, i64 %g) {
  %out_at = getelementptr i8, ptr addrspace(1) %out, i64 %out_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  br i1 %first, label %body, label %done
body:
  %a_wide = sitofp i8 %a to double
  %place0 = getelementptr double, ptr addrspace(1) %out_at, i64 0
  store double %a_wide, ptr addrspace(1) %place0
  %b_wide = uitofp i16 %b to double
  %place1 = getelementptr double, ptr addrspace(1) %out_at, i64 1
  store double %b_wide, ptr addrspace(1) %place1
  %c_wide = sitofp i32 %c to double
  %place2 = getelementptr double, ptr addrspace(1) %out_at, i64 2
  store double %c_wide, ptr addrspace(1) %place2
  %d_wide = fpext float %d to double
  %place3 = getelementptr double, ptr addrspace(1) %out_at, i64 3
  store double %d_wide, ptr addrspace(1) %place3
  %e_wide = uitofp i8 %e to double
  %place4 = getelementptr double, ptr addrspace(1) %out_at, i64 4
  store double %e_wide, ptr addrspace(1) %place4
  %place5 = getelementptr double, ptr addrspace(1) %out_at, i64 5
  store double %f, ptr addrspace(1) %place5
  %g_wide = sitofp i64 %g to double
  %place6 = getelementptr double, ptr addrspace(1) %out_at, i64 6
  store double %g_wide, ptr addrspace(1) %place6
  br label %done
done:
  ret void
}

define spir_kernel void @matmul(ptr addrspace(1) %a, i64 %a_offset, ptr addrspace(1) %b, i64 %b_offset, ptr addrspace(1) %c, i64 %c_offset, i32 %m, i32 %n, i32 %k, i32 %ta, i32 %tb) {
entry:
  %a_at = getelementptr i8, ptr addrspace(1) %a, i64 %a_offset
  %b_at = getelementptr i8, ptr addrspace(1) %b, i64 %b_offset
  %c_at = getelementptr i8, ptr addrspace(1) %c, i64 %c_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %rows = select i1 %first, i32 %m, i32 0
  %cells = mul i32 %rows, %n
  %a_turned = icmp ne i32 %ta, 0
  %b_turned = icmp ne i32 %tb, 0
  %a_row = select i1 %a_turned, i32 1, i32 %k
  %a_step = select i1 %a_turned, i32 %m, i32 1
  %b_column = select i1 %b_turned, i32 %k, i32 1
  %b_step = select i1 %b_turned, i32 1, i32 %n
  br label %cells.head
cells.head:
  %cell = phi i32 [0, %entry], [%cell.next, %terms.done]
  %cells.more = icmp slt i32 %cell, %cells
  br i1 %cells.more, label %cells.body, label %done
cells.body:
  %i = sdiv i32 %cell, %n
  %j = srem i32 %cell, %n
  %a_first = mul i32 %i, %a_row
  %b_first = mul i32 %j, %b_column
  br label %terms.head
terms.head:
  %l = phi i32 [0, %cells.body], [%l.next, %terms.body]
  %sum = phi float [0.0, %cells.body], [%sum.next, %terms.body]
  %terms.more = icmp slt i32 %l, %k
  br i1 %terms.more, label %terms.body, label %terms.done
terms.body:
  %a_by = mul i32 %l, %a_step
  %b_by = mul i32 %l, %b_step
  %a_index = add i32 %a_first, %a_by
  %b_index = add i32 %b_first, %b_by
  %a_place = getelementptr float, ptr addrspace(1) %a_at, i32 %a_index
  %b_place = getelementptr float, ptr addrspace(1) %b_at, i32 %b_index
  %a_l = load float, ptr addrspace(1) %a_place
  %b_l = load float, ptr addrspace(1) %b_place
  %term = fmul float %a_l, %b_l
  %sum.next = fadd float %sum, %term
  %l.next = add i32 %l, 1
  br label %terms.head
terms.done:
  %c_place = getelementptr float, ptr addrspace(1) %c_at, i32 %cell
  store float %sum, ptr addrspace(1) %c_place
  %cell.next = add i32 %cell, 1
  br label %cells.head
done:
  ret void
}

define spir_kernel void @relu(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr float, ptr addrspace(1) %x_at, i64 %i
  %x_i = load float, ptr addrspace(1) %x_place
  %positive = fcmp ogt float %x_i, 0.0
  %result = select i1 %positive, float %x_i, float 0.0
  %y_place = getelementptr float, ptr addrspace(1) %y_at, i64 %i
  store float %result, ptr addrspace(1) %y_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @relu_backward(ptr addrspace(1) %y, i64 %y_offset, ptr addrspace(1) %g, i64 %g_offset, ptr addrspace(1) %out, i64 %out_offset, i64 %n) {
entry:
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %g_at = getelementptr i8, ptr addrspace(1) %g, i64 %g_offset
  %out_at = getelementptr i8, ptr addrspace(1) %out, i64 %out_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %y_place = getelementptr float, ptr addrspace(1) %y_at, i64 %i
  %y_i = load float, ptr addrspace(1) %y_place
  %g_place = getelementptr float, ptr addrspace(1) %g_at, i64 %i
  %g_i = load float, ptr addrspace(1) %g_place
  %positive = fcmp ogt float %y_i, 0.0
  %result = select i1 %positive, float %g_i, float 0.0
  %out_place = getelementptr float, ptr addrspace(1) %out_at, i64 %i
  store float %result, ptr addrspace(1) %out_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @axpby(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %y, i64 %y_offset, ptr addrspace(1) %out, i64 %out_offset, float %a, float %b, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %y_at = getelementptr i8, ptr addrspace(1) %y, i64 %y_offset
  %out_at = getelementptr i8, ptr addrspace(1) %out, i64 %out_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  %count = select i1 %first, i64 %n, i64 0
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %x_place = getelementptr float, ptr addrspace(1) %x_at, i64 %i
  %x_i = load float, ptr addrspace(1) %x_place
  %y_place = getelementptr float, ptr addrspace(1) %y_at, i64 %i
  %y_i = load float, ptr addrspace(1) %y_place
  %ax = fmul float %a, %x_i
  %by = fmul float %b, %y_i
  %sum = fadd float %ax, %by
  %out_place = getelementptr float, ptr addrspace(1) %out_at, i64 %i
  store float %sum, ptr addrspace(1) %out_place
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define spir_kernel void @sum_squares(ptr addrspace(1) %x, i64 %x_offset, ptr addrspace(1) %out, i64 %out_offset, i64 %n) {
entry:
  %x_at = getelementptr i8, ptr addrspace(1) %x, i64 %x_offset
  %out_at = getelementptr i8, ptr addrspace(1) %out, i64 %out_offset
  %item = call i64 @item()
  %first = icmp eq i64 %item, 0
  br i1 %first, label %head, label %done
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %sum = phi float [0.0, %entry], [%sum.next, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %x_place = getelementptr float, ptr addrspace(1) %x_at, i64 %i
  %x_i = load float, ptr addrspace(1) %x_place
  %square = fmul float %x_i, %x_i
  %sum.next = fadd float %sum, %square
  %next = add i64 %i, 1
  br label %head
end:
  store float %sum, ptr addrspace(1) %out_at
  br label %done
done:
  ret void
}
