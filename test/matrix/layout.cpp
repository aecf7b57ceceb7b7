// Do the members that the agent found by calibration lie where this PyTorch's own headers say? SEQUENCE, FORWARD_THREAD and ID
// are given with -D; -fno-access-control -fsyntax-only: it is an error if one does not.
#include <ATen/record_function.h>

#include <cstddef>

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

static_assert(offsetof(at::RecordFunction, sequence_nr_) == SEQUENCE, "sequence number");
static_assert(offsetof(at::RecordFunction, fwd_thread_id_) == FORWARD_THREAD, "forward thread");
static_assert(offsetof(at::RecordFunction, handle_) == ID, "id");
