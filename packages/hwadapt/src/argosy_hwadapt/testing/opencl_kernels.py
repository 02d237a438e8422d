"""The kit's kernels as OpenCL C: a buffer is two parameters, an address and an offset in bytes."""

SOURCE = rb"""
#define BUFFER(name) __global char *name##_base, long name##_offset
#define AT(T, name) ((__global T *)(name##_base + name##_offset))
#define FIRST_ITEM (get_global_id(0) + get_global_id(1) + get_global_id(2) == 0)
#define AFFINE(NAME, T) __kernel void affine_##NAME(BUFFER(x), BUFFER(y), T a, T b, long n) { \
    if (FIRST_ITEM) for (long i = 0; i < n; i++) AT(T, y)[i] = a * AT(T, x)[i] + b; }
AFFINE(float32, float) AFFINE(float64, double) AFFINE(int32, int) AFFINE(int64, long)
__kernel void count_items(BUFFER(out), long n) {
    long i = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
    if (i < n) AT(int, out)[i] += 1; }
__kernel void scalars(BUFFER(out), char a, ushort b, int c, float d, uchar e, double f, long g) {
    __global double *to = AT(double, out);
    if (FIRST_ITEM) { to[0] = a; to[1] = b; to[2] = c; to[3] = d; to[4] = e; to[5] = f; to[6] = (double)g; } }
__kernel void matmul(BUFFER(a), BUFFER(b), BUFFER(c), int m, int n, int k, int ta, int tb) {
    if (FIRST_ITEM) for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int l = 0; l < k; l++)
            sum += AT(float, a)[ta ? l * m + i : i * k + l] * AT(float, b)[tb ? j * k + l : l * n + j];
        AT(float, c)[i * n + j] = sum; } }
__kernel void relu(BUFFER(x), BUFFER(y), long n) {
    if (FIRST_ITEM) for (long i = 0; i < n; i++) AT(float, y)[i] = AT(float, x)[i] > 0 ? AT(float, x)[i] : 0; }
__kernel void relu_backward(BUFFER(y), BUFFER(g), BUFFER(out), long n) {
    if (FIRST_ITEM) for (long i = 0; i < n; i++) AT(float, out)[i] = AT(float, y)[i] > 0 ? AT(float, g)[i] : 0; }
__kernel void axpby(BUFFER(x), BUFFER(y), BUFFER(out), float a, float b, long n) {
    if (FIRST_ITEM) for (long i = 0; i < n; i++) AT(float, out)[i] = a * AT(float, x)[i] + b * AT(float, y)[i]; }
__kernel void sum_squares(BUFFER(x), BUFFER(out), long n) {
    float sum = 0;
    if (FIRST_ITEM) for (long i = 0; i < n; i++) sum += AT(float, x)[i] * AT(float, x)[i];
    if (FIRST_ITEM) AT(float, out)[0] = sum; }
"""
