/* Exercises models from C; prints a line if every check holds, and exits with 1 at the first one that does not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxprobe.h"

#define CHECK(condition)                                                                                                 \
    do {                                                                                                                 \
        if (!(condition)) {                                                                                              \
            const char *why = mxprobe_last_error();                                                                      \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, why ? why : "no error");                          \
            return 1;                                                                                                    \
        }                                                                                                                \
    } while (0)

static int says(const char *words) {
    const char *error = mxprobe_last_error();
    if (error && strstr(error, words)) return 1;
    fprintf(stderr, "`%s` is not in `%s`\n", words, error ? error : "(no error)");
    return 0;
}

int main(void) {
    CHECK(sizeof(mxprobe_operation) == OPERATION_BYTES);
    CHECK(offsetof(mxprobe_operation, id) == ID_OFFSET && offsetof(mxprobe_operation, scale) == SCALE_OFFSET);
    CHECK(strcmp(mxprobe_version(), VERSION) == 0 && mxprobe_last_error() == NULL);

    mxprobe_model *h100 = mxprobe_model_load("h100");
    CHECK(h100 != NULL);
    size_t count = mxprobe_model_operation_count(h100);
    CHECK(count > 100);
    mxprobe_operation of;
    for (size_t i = 0; i < count; i++) {
        mxprobe_operation again;
        CHECK(mxprobe_model_operation(h100, i, &of) == 0 && of.m && of.n && of.k && of.a_bytes && of.d_bytes);
        CHECK(mxprobe_model_find(h100, of.id, &again) == 0 && strcmp(again.id, of.id) == 0);
    }
    CHECK(mxprobe_model_find(h100, "f16->f32", &of) == 0);
    CHECK(strcmp(of.id, "mma.m16n8k16.f32.f16.f16.f32") == 0 && of.k == 16 && of.a_bytes == 2 && of.d_bytes == 4);
    CHECK(strcmp(of.a, "f16") == 0 && strcmp(of.d, "f32") == 0 && of.block == 0 && of.scale[0] == 0);

    /* 32 products of 1.0 and 2.0, one matrix of 3x2, from pointers of any alignment. */
    enum { M = 3, N = 2, K = 32 };
    unsigned char room_a[M * K * 2 + 1], room_b[K * N * 2 + 1];
    uint16_t one = 0x3c00, two = 0x4000;
    for (int i = 0; i < M * K; i++) memcpy(room_a + 1 + 2 * i, &one, 2);
    for (int i = 0; i < K * N; i++) memcpy(room_b + 1 + 2 * i, &two, 2);
    float c[M * N] = {0, 1, 2, 3, 4, 5}, d[M * N];
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, room_a + 1, room_b + 1, c, NULL, NULL, d, 1) == 0);
    for (int i = 0; i < M * N; i++) CHECK(d[i] == 64.0f + (float)i);
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, room_a + 1, room_b + 1, NULL, NULL, NULL, d, 0) == 0 && d[5] == 64.0f);
    /* D may be C. */
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, room_a + 1, room_b + 1, c, NULL, NULL, c, 1) == 0 && c[5] == 69.0f);
    CHECK(mxprobe_matmul(h100, "f16->f32", 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0) == 0);

    /* 2^15 * 2^15 and 2^-10: kept at 25 bits, lost below. */
    uint16_t a16[16] = {0x7800, 0x1400}, b16[16] = {0x7800, 0x3c00};
    float result = 0, zero = 0;
    CHECK(mxprobe_dot(h100, "f16->f32", a16, b16, &zero, NULL, NULL, &result) == 0 && result == ldexpf(1, 30));

    /* Errors: each message contains the value, and the next successful call clears it. */
    CHECK(mxprobe_model_load("h1000") == NULL && says("unknown model `h1000`"));
    CHECK(mxprobe_model_load(NULL) == NULL && says("the name is NULL"));
    CHECK(mxprobe_model_load("\xff") == NULL && says("is not UTF-8"));
    CHECK(mxprobe_model_find(h100, "f99->f32", &of) == -1 && says("`f99`"));
    CHECK(mxprobe_model_find(h100, "f16->f32", NULL) == -1 && says("NULL"));
    CHECK(mxprobe_model_find(NULL, "f16->f32", &of) == -1 && says("the model is NULL"));
    CHECK(mxprobe_model_operation(h100, count, &of) == -1 && says("none of the index"));
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, NULL, room_b, NULL, NULL, NULL, d, 1) == -1 && says("a is NULL"));
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, room_a, room_b, NULL, NULL, NULL, NULL, 1) == -1 && says("d is NULL"));
    CHECK(mxprobe_matmul(h100, "f16->f32", (size_t)-1, N, K, room_a, room_b, NULL, NULL, NULL, d, 1) == -1 && says("memory"));
    CHECK(mxprobe_matmul(h100, "f16->f32", M, N, K, room_a, room_b, NULL, room_a, NULL, d, 1) == -1 && says("no block scales"));
    CHECK(mxprobe_model_operation_count(NULL) == 0 && says("the model is NULL"));
    CHECK(mxprobe_model_operation_count(h100) == count && mxprobe_last_error() == NULL);

    /* The last error is kept when a model is freed. */
    CHECK(mxprobe_model_find(h100, "f99->f32", &of) == -1);
    mxprobe_model_free(h100);
    mxprobe_model_free(NULL);
    CHECK(says("`f99`"));
    puts("every check held");
    return 0;
}
