/*
 * mxprobe for C: executable models of matrix units, bit for bit.
 *
 * Operands and results are bits: elements of the operation's formats, each in the fewest whole bytes (1, 2, 4 or 8) and
 * little-endian; matrices are row-major. A 4-bit or 6-bit element takes a byte whose high bits are zero. Pointers need
 * no alignment.
 *
 * Functions that return int return 0, or -1 on error; those that return a pointer return NULL on error.
 * mxprobe_last_error() then returns a message of one sentence that contains the offending value. Several threads may
 * use a model simultaneously. The library does not end the process, write to standard output or keep pointers that it
 * was given.
 */
#ifndef MXPROBE_H
#define MXPROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model of a matrix unit. */
typedef struct mxprobe_model mxprobe_model;

/* One operation of a model. */
typedef struct mxprobe_operation {
    /* The operation's own shape: A is m x k, B k x n, C and D m x n. */
    uint32_t m, n, k;
    /* Bytes per element. */
    uint32_t a_bytes, b_bytes, c_bytes, d_bytes;
    /* Consecutive k that share a scale, and bytes per scale; 0 for an operation without block scales. */
    uint32_t block, scale_bytes;
    /* Format names: "f16", "e4m3", "s32"; `scale` is empty for an operation without block scales. */
    char a[16], b[16], c[16], d[16], scale[16];
    /* The id: "mma.m16n8k16.f32.f16.f16.f32". */
    char id[128];
} mxprobe_operation;

/* The version of the library: "0.2.0". */
const char *mxprobe_version(void);

/*
 * Why the last call of this thread failed; NULL if it succeeded. The text is valid until this thread's next call, where
 * mxprobe_model_free, mxprobe_version and this function do not count.
 */
const char *mxprobe_last_error(void);

/* Loads a model by name ("h100"), alias, variant ("NAME@VARIANT") or path of a TOML file. Free it when done. */
mxprobe_model *mxprobe_model_load(const char *name);

/* Frees a model; NULL is ignored. */
void mxprobe_model_free(mxprobe_model *model);

/* The number of operations of a model; 0 for NULL. */
size_t mxprobe_model_operation_count(const mxprobe_model *model);

/* Gets the operation with an index below that count, in the order of ids. */
int mxprobe_model_operation(const mxprobe_model *model, size_t index, mxprobe_operation *operation);

/*
 * Finds an operation by its id, an instruction, an alias, or formats. "f16->f32" is the operation with the longest k
 * that multiplies f16 into f32; "e4m3*e5m2->f32" names A and B separately.
 */
int mxprobe_model_find(const mxprobe_model *model, const char *name, mxprobe_operation *operation);

/*
 * D = A B + C of any sizes: each element of D goes through ceil(k / the operation's k) operations, each with the
 * previous d as its c. `a` has m*k elements, `b` k*n, `c` m*n or is NULL for +0; `d` has room for m*n and may be `c`.
 * `scale_a`, m*ceil(k/block), and `scale_b`, ceil(k/block)*n, are for operations with block scales, otherwise NULL.
 * `threads` threads compute; 0 means one per core.
 */
int mxprobe_matmul(const mxprobe_model *model, const char *operation, size_t m, size_t n, size_t k, const void *a,
                   const void *b, const void *c, const void *scale_a, const void *scale_b, void *d, size_t threads);

/*
 * d = the sum of the operation's k products a[i] b[i], plus c: one operation. `c` is one element or NULL for +0; `d`
 * has room for one.
 */
int mxprobe_dot(const mxprobe_model *model, const char *operation, const void *a, const void *b, const void *c,
                const void *scale_a, const void *scale_b, void *d);

#ifdef __cplusplus
}
#endif

#endif
