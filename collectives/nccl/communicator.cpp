#include "collectives/nccl/communicator.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "collectives/group.h"
#include "runtime/error.h"

namespace tutti {
namespace {

static_assert(sizeof(CommunicatorId) == sizeof(ncclUniqueId));

std::string text_of(ncclResult_t result) { return std::string("NCCL: ") + ncclGetErrorString(result); }

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess && result != ncclInProgress)
    throw CollectiveError(std::string(call) + " failed: " + text_of(result));
}

// Defaults of the user's environment. Ranks connect when a communicator is made, so that no call waits for
// another rank's host. NVLS sums, and the choice among algorithms, are not the same in every run.
void set_defaults() {
  setenv("NCCL_RUNTIME_CONNECT", "0", /*replace=*/0);
  if (!at::globalContext().deterministicAlgorithms()) return;
  for (const auto& [name, value] :
       {std::pair("NCCL_NVLS_ENABLE", "0"), {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}})
    setenv(name, value, /*replace=*/0);
}

ncclDataType_t type_of(const at::Tensor& tensor) {
  static const std::map<at::ScalarType, ncclDataType_t> types{
      {at::kFloat, ncclFloat32}, {at::kDouble, ncclFloat64}, {at::kBFloat16, ncclBfloat16},
      {at::kHalf, ncclFloat16},  {at::kInt, ncclInt32},      {at::kLong, ncclInt64}};
  const auto type = types.find(tensor.scalar_type());
  TUTTI_ASSERT(type != types.end(),
               std::string("NCCL has no sums of ") + c10::toString(tensor.scalar_type()));
  return type->second;
}

cudaStream_t stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

}  // namespace

CommunicatorId NcclCommunicator::make_id() {
  set_defaults();
  ncclUniqueId made;
  check(ncclGetUniqueId(&made), "ncclGetUniqueId");
  CommunicatorId id;
  std::memcpy(id.bytes, made.internal, sizeof id.bytes);
  return id;
}

NcclCommunicator::NcclCommunicator(const CommunicatorId& id, c10::DeviceIndex device, int rank, int size)
    : device_(device) {
  set_defaults();
  const c10::cuda::CUDAGuard on_device(device_);
  ncclUniqueId shared;
  std::memcpy(shared.internal, id.bytes, sizeof id.bytes);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(ncclCommInitRankConfig(&comm_, size, shared, rank, &config), "ncclCommInitRankConfig");
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

bool NcclCommunicator::ready() {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  check(state, "connecting GPUs");
  return state == ncclSuccess;
}

// NCCL may launch from a thread of its own. What follows on the stream must come after.
void NcclCommunicator::launched(ncclResult_t result, const char* call) {
  while (result == ncclInProgress) {
    std::this_thread::yield();
    check(ncclCommGetAsyncError(comm_, &result), "ncclCommGetAsyncError");
  }
  check(result, call);
}

void NcclCommunicator::all_reduce(const at::Tensor& inout) {
  const c10::cuda::CUDAGuard on_device(device_);
  void* const data = inout.mutable_data_ptr();
  launched(ncclAllReduce(data, data, inout.numel(), type_of(inout), ncclSum, comm_, stream_of(inout)),
           "ncclAllReduce");
}

void NcclCommunicator::reduce_scatter(const at::Tensor& whole, const at::Tensor& part) {
  const c10::cuda::CUDAGuard on_device(device_);
  launched(ncclReduceScatter(whole.const_data_ptr(), part.mutable_data_ptr(), part.numel(), type_of(whole),
                             ncclSum, comm_, stream_of(whole)),
           "ncclReduceScatter");
}

void NcclCommunicator::all_gather(const at::Tensor& part, const at::Tensor& whole) {
  const c10::cuda::CUDAGuard on_device(device_);
  launched(ncclAllGather(part.const_data_ptr(), whole.mutable_data_ptr(), part.nbytes(), ncclUint8, comm_,
                         stream_of(whole)),
           "ncclAllGather");
}

void NcclCommunicator::broadcast(const at::Tensor& inout, int root) {
  const c10::cuda::CUDAGuard on_device(device_);
  void* const data = inout.mutable_data_ptr();
  launched(ncclBroadcast(data, data, inout.nbytes(), ncclUint8, root, comm_, stream_of(inout)),
           "ncclBroadcast");
}

std::string NcclCommunicator::failure() {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess || state == ncclInProgress) return "";
  const char* const last = ncclGetLastError(comm_);
  return text_of(state) + (last != nullptr && *last != '\0' ? std::string(" (") + last + ")" : "");
}

void NcclCommunicator::abort() noexcept {
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

}  // namespace tutti
