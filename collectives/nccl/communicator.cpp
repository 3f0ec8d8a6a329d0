#include "collectives/nccl/communicator.h"

#include <ATen/ops/zeros.h>

#include <cstring>
#include <thread>

namespace tutti {
namespace {

// Broadcasts rank 0's id.
ncclUniqueId share_id(Group& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) check_nccl(ncclGetUniqueId(&id), "to make an id");
  const at::Tensor bytes = at::zeros({sizeof(id.internal)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), id.internal, sizeof(id.internal));
  const WorkPtr work = control.broadcast(bytes, 0, "NCCL's id");
  while (!work->done()) std::this_thread::yield();
  std::memcpy(id.internal, bytes.const_data_ptr(), sizeof(id.internal));
  return id;
}

}  // namespace

void check_nccl(ncclResult_t result, const std::string& doing) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CollectiveError("NCCL failed " + doing + ": " + ncclGetErrorString(result));
}

NcclCommunicator::NcclCommunicator(Group& control)
    : rank_(control.rank()), size_(control.size()), stream_(c10::cuda::getStreamFromPool(true)) {
  check_nccl(ncclCommInitRank(&comm_, size_, share_id(control), rank_), "to connect the ranks");
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

void NcclCommunicator::check() const {
  if (comm_ == nullptr) throw CollectiveError("this NCCL group was aborted");
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(comm_, &state), "to report its state");
  check_nccl(state, "in the background");
}

void NcclCommunicator::abort() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace tutti
