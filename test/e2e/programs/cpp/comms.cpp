// What a process group says of its operations, as those of GPUs do (RECORD_PARAM_COMMS), without one.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

static void communicate(const char *name, at::ScalarType type, std::vector<int64_t> in, std::vector<int64_t> out)
{
    at::Tensor given = at::ones({2, 3}), returned = at::ones({4});
    RECORD_PARAM_COMMS_DATA(static_cast<int64_t>(7), std::make_tuple(std::string("12"), std::string("a group of é")),
                            given, returned, 1, std::string(name), 6, 4, type, in, out, 2, 3, 8);
}

extern "C" void communicate_all()
{
    communicate("all_reduce", at::kFloat, {}, {});
    communicate("all_to_allv_under_a_long_name", at::kBFloat16, {1, 2, 3}, {4, 5});
    communicate("all_to_allv", at::kLong, std::vector<int64_t>(1000, 17), std::vector<int64_t>(1000, 1LL << 40));
    RECORD_FUNCTION("record_param_comms", std::vector<c10::IValue>{}); // says nothing
}
