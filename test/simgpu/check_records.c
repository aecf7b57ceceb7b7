#include "suites.h"

#include "records.h"

static const struct sim_operation kernel = {
    .kind = SIM_KERNEL, .correlation = 5, .device = 1, .stream = 13, .graph = 3, .node = 4, .start = 100, .end = 250,
    .kernel = {.name = "k", .grid = {1, 2, 3}, .block = {32, 4, 2}, .registers = 40, .shared_static = 16, .shared_dynamic = 64},
};

static void make(union sim_record *record, const struct sim_operation *operation)
{
    bool enabled[256];
    for (int i = 0; i < 256; i++)
        enabled[i] = i != CUPTI_ACTIVITY_KIND_INVALID;
    CUpti_ActivityKind kind = sim_record_kind(operation, enabled);
    ck_assert_uint_ne(kind, CUPTI_ACTIVITY_KIND_INVALID);
    sim_record_make(record, kind, operation);
    ck_assert_uint_eq(record->kind, kind);
    enabled[kind] = enabled[CUPTI_ACTIVITY_KIND_KERNEL] = false;
    ck_assert_uint_eq(sim_record_kind(operation, enabled), CUPTI_ACTIVITY_KIND_INVALID);
}

START_TEST(a_kernel_tells_what_ran)
{
    union sim_record record;
    make(&record, &kernel);
    const CUpti_ActivityKernel10 *told = &record.kernel;
    ck_assert_uint_eq(told->kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ck_assert_uint_eq(told->start, 100);
    ck_assert_uint_eq(told->end, 250);
    ck_assert_uint_eq(told->correlationId, 5);
    ck_assert_uint_eq(told->deviceId, 1);
    ck_assert_uint_eq(told->contextId, 2);
    ck_assert_uint_eq(told->streamId, 13);
    ck_assert_int_eq(told->gridX * 100 + told->gridY * 10 + told->gridZ, 123);
    ck_assert_int_eq(told->blockX * 100 + told->blockY * 10 + told->blockZ, 3242);
    ck_assert_uint_eq(told->registersPerThread, 40);
    ck_assert_int_eq(told->staticSharedMemory, 16);
    ck_assert_int_eq(told->dynamicSharedMemory, 64);
    ck_assert_uint_eq(told->graphId, 3);
    ck_assert_uint_eq(told->graphNodeId, 4);
    ck_assert_str_eq(told->name, "k");
}
END_TEST

START_TEST(a_copy_between_devices_names_both)
{
    struct sim_operation operation = {.kind = SIM_COPY, .start = 1, .end = 2, .async = true,
                                      .copy = {64, SIM_TO_PEER, SIM_DEVICE, SIM_DEVICE, 0, 1}};
    union sim_record record;
    make(&record, &operation);
    ck_assert_uint_eq(record.kind, CUPTI_ACTIVITY_KIND_MEMCPY2);
    ck_assert_uint_eq(record.peer.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    ck_assert_uint_eq(record.peer.srcDeviceId, 0);
    ck_assert_uint_eq(record.peer.dstDeviceId, 1);
    ck_assert_uint_eq(record.peer.bytes, 64);
    operation.copy.kind = SIM_TO_DEVICE;
    operation.copy.from = SIM_PINNED;
    make(&record, &operation);
    ck_assert_uint_eq(record.kind, CUPTI_ACTIVITY_KIND_MEMCPY);
    ck_assert_uint_eq(record.copy.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    ck_assert_uint_eq(record.copy.srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    ck_assert_uint_eq(record.copy.dstKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
    ck_assert_uint_eq(record.copy.flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
}
END_TEST

START_TEST(all_other_kinds_have_theirs)
{
    static const struct {
        enum sim_kind kind;
        CUpti_ActivityKind record;
    } pairs[] = {{SIM_SET, CUPTI_ACTIVITY_KIND_MEMSET},
                 {SIM_MARK, CUPTI_ACTIVITY_KIND_CUDA_EVENT},
                 {SIM_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
                 {SIM_ALLOCATION, CUPTI_ACTIVITY_KIND_MEMORY2},
                 {SIM_GRAPH, CUPTI_ACTIVITY_KIND_GRAPH_TRACE}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct sim_operation operation = {.kind = pairs[i].kind};
        union sim_record record;
        make(&record, &operation);
        ck_assert_uint_eq(record.kind, pairs[i].record);
        ck_assert_uint_gt(sim_record_bytes(record.kind, CUPTI_API_VERSION), 0);
    }
}
END_TEST

START_TEST(records_are_spoilt_in_every_way)
{
    bool news = false, timeless = false, backwards = false, alone = false, nameless = false;
    for (uint64_t nth = 0; nth < 5; nth++) {
        union sim_record record;
        make(&record, &kernel);
        sim_record_spoil(&record, nth);
        news |= record.kind == (CUpti_ActivityKind)SIM_NEWS;
        timeless |= !record.kernel.start && !record.kernel.end;
        backwards |= record.kernel.end < record.kernel.start;
        alone |= !record.kernel.correlationId;
        nameless |= !record.kernel.name;
    }
    ck_assert(news && timeless && backwards && alone && nameless);
}
END_TEST

Suite *records_suite(void)
{
    Suite *suite = suite_create("records");
    TCase *all = tcase_create("records");
    tcase_add_test(all, a_kernel_tells_what_ran);
    tcase_add_test(all, a_copy_between_devices_names_both);
    tcase_add_test(all, all_other_kinds_have_theirs);
    tcase_add_test(all, records_are_spoilt_in_every_way);
    suite_add_tcase(suite, all);
    return suite;
}
