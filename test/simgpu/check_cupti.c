/* A program of the CUDA runtime, and a reader of CUPTI's records, over the libraries themselves. */
#include "suites.h"

#include "simgpu.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START = 1000000, BYTES = 65536 };

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *thread, void *block,
                            void *block_dim, void *grid_dim, int *warp);

static const char stub[] = "the address of this is the kernel's";
static char text[8192];

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = aligned_alloc(8, BYTES);
    *bytes = BYTES;
    *records = 0;
}

static void note(const CUpti_Activity *record)
{
    char *end = text + strlen(text);
    size_t room = sizeof text - (size_t)(end - text);
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
        const char *name = "?";
        cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call->cbid, &name);
        snprintf(end, room, "%s %u %lu-%lu = %u\n", name, call->correlationId, call->start - START, call->end - START,
                 call->returnValue);
        break;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
        snprintf(end, room, "kernel %s %u %lu-%lu stream %u\n", kernel->name, kernel->correlationId, kernel->start - START,
                 kernel->end - START, kernel->streamId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
        snprintf(end, room, "copy %u %u %lu-%lu %lu bytes\n", copy->copyKind, copy->correlationId, copy->start - START,
                 copy->end - START, copy->bytes);
        break;
    }
    default:
        snprintf(end, room, "kind %d\n", (int)record->kind);
    }
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)context, (void)stream, (void)bytes;
    CUpti_Activity *record = NULL;
    CUptiResult result;
    while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS)
        note(record);
    ck_assert_int_eq(result, CUPTI_ERROR_MAX_LIMIT_REACHED);
    free(buffer);
}

static void begin(void)
{
    sim_clock_virtual(START);
    __cudaRegisterFunction(NULL, stub, NULL, "kernel_of_the_test", 0, NULL, NULL, NULL, NULL, NULL);
    ck_assert_int_eq(cuptiActivityRegisterCallbacks(request, complete), CUPTI_SUCCESS);
}

static void run_program(void)
{
    char bytes[100] = "moved there and back", back[100] = "";
    void *device;
    ck_assert_int_eq(cudaMalloc(&device, sizeof bytes), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(device, bytes, sizeof bytes, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaLaunchKernel(stub, (dim3){4, 1, 1}, (dim3){64, 1, 1}, NULL, 0, NULL), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_str_eq(back, bytes);
    ck_assert_int_eq(cudaFree(device), cudaSuccess);
}

START_TEST(a_run_is_the_same_to_the_byte)
{
    begin();
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    run_program();
    ck_assert_int_eq(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
    /* A call costs 200 ns, a launch 2500, the next operation of a stream comes 600 later; calls of CUPTI cost time too. */
    ck_assert_str_eq(text, "cudaMalloc_v3020 1 900-1000 = 0\n"
                           "copy 1 2 3600-4604 100 bytes\n"
                           "cudaMemcpy_v3020 2 1100-4704 = 0\n"
                           "cudaLaunchKernel_v7000 3 4804-4904 = 0\n"
                           "kernel kernel_of_the_test 3 7304-9704 stream 7\n"
                           "copy 2 4 10304-11308 100 bytes\n"
                           "cudaMemcpy_v3020 4 5004-11408 = 0\n"
                           "cudaFree_v3020 5 11508-11608 = 0\n");
}
END_TEST

START_TEST(disabled_kinds_and_calls_are_not_told)
{
    begin();
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, 0);
    run_program();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    ck_assert_ptr_null(strstr(text, "kernel "));
    ck_assert_ptr_null(strstr(text, "cudaMemcpy"));
    ck_assert_ptr_nonnull(strstr(text, "cudaLaunchKernel"));
    ck_assert_int_eq(cuptiActivityEnable((CUpti_ActivityKind)40), CUPTI_ERROR_INVALID_KIND);
}
END_TEST

static void *subscriber_data;
static unsigned entered, left;

static void called(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData *call)
{
    ck_assert_ptr_eq(data, subscriber_data);
    ck_assert_int_eq(domain, CUPTI_CB_DOMAIN_RUNTIME_API);
    ck_assert_uint_eq(id, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
    ck_assert_str_eq(call->functionName, "cudaMalloc");
    if (call->callbackSite == CUPTI_API_ENTER) {
        entered++;
        *call->correlationData = 77;
    } else {
        left++;
        ck_assert_uint_eq(*call->correlationData, 77);
        ck_assert_int_eq(*(const cudaError_t *)call->functionReturnValue, cudaSuccess);
    }
}

START_TEST(there_is_one_subscriber)
{
    begin();
    CUpti_SubscriberHandle handle, other;
    subscriber_data = &handle;
    ck_assert_int_eq(cuptiSubscribe(&handle, (CUpti_CallbackFunc)called, subscriber_data), CUPTI_SUCCESS);
    ck_assert_int_eq(cuptiSubscribe(&other, (CUpti_CallbackFunc)called, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ck_assert_int_eq(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020),
                     CUPTI_SUCCESS);
    run_program();
    ck_assert_uint_eq(entered, 1);
    ck_assert_uint_eq(left, 1);
    ck_assert_int_eq(cuptiUnsubscribe(handle), CUPTI_SUCCESS);
    run_program();
    ck_assert_uint_eq(entered, 1);
    ck_assert_int_eq(cuptiUnsubscribe(handle), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(external_ids_come_with_calls)
{
    begin();
    uint64_t last;
    ck_assert_int_eq(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last), CUPTI_ERROR_QUEUE_EMPTY);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 42);
    cudaDeviceSynchronize();
    cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    ck_assert_uint_eq(last, 42);
    cudaDeviceSynchronize();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const char *external = strstr(text, "kind 39\n");
    ck_assert_ptr_nonnull(external);
    ck_assert_ptr_null(strstr(external + 1, "kind 39\n"));
}
END_TEST

START_TEST(any_call_fails_on_request)
{
    begin();
    sim_faults_set("cudaMalloc=2,cudaStreamCreate=999@2,cudaMemcpy=719,cudaDeviceSynchronize=700,cuptiSubscribe=39,cuptiActivityEnable=35,"
                   "cuptiActivityFlushAll=999,cuptiGetVersion=15");
    void *device = NULL;
    cudaStream_t stream, second = NULL;
    CUpti_SubscriberHandle handle;
    uint32_t version = 0;
    ck_assert_int_eq(cudaMalloc(&device, 8), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(device);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreate(&second), cudaErrorUnknown);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(cudaMemcpy(&version, &version, 4, cudaMemcpyDefault), 719);
    ck_assert_int_eq(cudaDeviceSynchronize(), 700);
    ck_assert_int_eq(cuptiSubscribe(&handle, (CUpti_CallbackFunc)called, NULL), 39);
    ck_assert_int_eq(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), 35);
    ck_assert_int_eq(cuptiActivityFlushAll(1), 999);
    ck_assert_int_eq(cuptiGetVersion(&version), 15);
    ck_assert_uint_eq(version, 0);
}
END_TEST

START_TEST(a_graph_replays_what_was_captured)
{
    begin();
    char from[] = "first", *device, back[sizeof from];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    size_t count = 0;
    cudaStreamCreate(&stream);
    cudaMalloc((void **)&device, sizeof from);
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cudaMemcpyAsync(device, from, sizeof from, cudaMemcpyHostToDevice, stream);
    cudaLaunchKernel(stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    memcpy(from, "other", sizeof from); /* it is read at the replay */
    ck_assert_int_eq(cudaGraphLaunch(replay, stream), cudaSuccess);
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    ck_assert_str_eq(back, "other");
    ck_assert_int_eq(cudaGraphExecDestroy(replay), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
}
END_TEST

START_TEST(memory_is_set_and_freed_once)
{
    begin();
    char *device, back[64];
    cudaMalloc((void **)&device, sizeof back);
    ck_assert_int_eq(cudaMemset(device, 0x5a, sizeof back), cudaSuccess);
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < sizeof back; i++)
        ck_assert_int_eq(back[i], 0x5a);
    ck_assert_int_eq(cudaFree(device), cudaSuccess);
    ck_assert_int_eq(cudaFree(device), cudaErrorInvalidValue);
}
END_TEST

Suite *cupti_suite(void)
{
    Suite *suite = suite_create("cupti");
    TCase *all = tcase_create("cupti");
    tcase_add_test(all, a_run_is_the_same_to_the_byte);
    tcase_add_test(all, disabled_kinds_and_calls_are_not_told);
    tcase_add_test(all, there_is_one_subscriber);
    tcase_add_test(all, external_ids_come_with_calls);
    tcase_add_test(all, any_call_fails_on_request);
    tcase_add_test(all, a_graph_replays_what_was_captured);
    tcase_add_test(all, memory_is_set_and_freed_once);
    suite_add_tcase(suite, all);
    return suite;
}
