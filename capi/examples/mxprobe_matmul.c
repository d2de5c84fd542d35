/*
 * D = mxprobe_matmul(MODEL, OPERATION, A, B) for MATLAB: A and B are uint16 matrices, the bits of f16 or bf16; D is single.
 *
 *     mex -I../include mxprobe_matmul.c -L../../target/release -lmxprobe_c
 *     D = mxprobe_matmul('h100', 'f16->f32', A, B)
 *
 * MATLAB stores matrices by columns and mxprobe by rows: the transposed product, B' A', needs no copy.
 */
#include "mex.h"
#include "mxprobe.h"

void mexFunction(int results, mxArray *result[], int count, const mxArray *given[]) {
    char model_name[256], operation[256];
    mxprobe_operation of;
    (void)results;
    if (count != 4 || !mxIsUint16(given[2]) || !mxIsUint16(given[3]) || mxGetN(given[2]) != mxGetM(given[3]))
        mexErrMsgIdAndTxt("mxprobe:usage", "D = mxprobe_matmul(MODEL, OPERATION, A, B) with uint16 A (m x k) and B (k x n)");
    if (mxGetString(given[0], model_name, sizeof model_name) || mxGetString(given[1], operation, sizeof operation))
        mexErrMsgIdAndTxt("mxprobe:usage", "the model and the operation are text");
    size_t m = mxGetM(given[2]), k = mxGetN(given[2]), n = mxGetN(given[3]);
    mxprobe_model *model = mxprobe_model_load(model_name);
    if (!model) mexErrMsgIdAndTxt("mxprobe:model", "%s", mxprobe_last_error());
    if (mxprobe_model_find(model, operation, &of) || of.a_bytes != 2 || of.b_bytes != 2 || of.d_bytes != 4) {
        const char *why = mxprobe_last_error();
        mxprobe_model_free(model);
        mexErrMsgIdAndTxt("mxprobe:operation", "%s", why ? why : "A and B must have 16 bits, and D 32");
    }
    result[0] = mxCreateNumericMatrix(m, n, mxSINGLE_CLASS, mxREAL);
    /* In row-major order, B' is n x k, A' k x m and D' n x m. */
    int failed = mxprobe_matmul(model, operation, n, m, k, mxGetData(given[3]), mxGetData(given[2]), NULL, NULL, NULL,
                                mxGetData(result[0]), 0);
    mxprobe_model_free(model);
    if (failed) mexErrMsgIdAndTxt("mxprobe:matmul", "%s", mxprobe_last_error());
}
