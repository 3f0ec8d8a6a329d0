#include "collectives/nccl/group.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor_split.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <map>
#include <utility>

#include "collectives/group.h"
#include "collectives/nccl/header_check.h"

namespace tutti {
namespace {

ncclDataType_t nccl_type(at::ScalarType type) {
  static const std::map<at::ScalarType, ncclDataType_t> types{
      {at::kFloat, ncclFloat32}, {at::kDouble, ncclFloat64}, {at::kBFloat16, ncclBfloat16},
      {at::kHalf, ncclFloat16},  {at::kInt, ncclInt32},      {at::kLong, ncclInt64}};
  const auto found = types.find(type);
  TUTTI_ASSERT(found != types.end(), std::string("NCCL has no sums of ") + c10::toString(type));
  return found->second;
}

class NcclWork final : public Work {
 public:
  NcclWork(NcclCommunicator& communicator, Group& control, const CollectiveHeader& header)
      : communicator_(communicator), header_(header), check_(control, header) {}

  void record_launch() { event_.record(communicator_.stream()); }

  bool done() override {
    communicator_.check();
    return headers_match() && event_.query();
  }
  const CollectiveHeader& header() const override { return header_; }
  bool finite() const override { return !summed_.defined() || at::isfinite(summed_).all().item<bool>(); }

  // Sets the tensor that finite() checks.
  void check_finite(at::Tensor summed) { summed_ = std::move(summed); }

 private:
  bool headers_match() try { return check_.done(); } catch (const CollectiveError&) {
    communicator_.abort();
    throw;
  }

  NcclCommunicator& communicator_;
  CollectiveHeader header_;
  HeaderCheck check_;
  at::Tensor summed_;
  at::cuda::CUDAEvent event_;
};

}  // namespace

NcclGroup::NcclGroup(Group& control)
    : control_(control), device_(c10::kCUDA, c10::cuda::current_device()), communicator_(control) {}

at::Tensor NcclGroup::allocate(int64_t bytes) {
  return at::zeros({bytes}, at::TensorOptions().dtype(at::kByte).device(device_));
}

WorkPtr NcclGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_flat(inout);
  return post(CollectiveKind::kAllReduce, {inout}, label, [&](ncclComm_t comm, cudaStream_t stream) {
    void* data = inout.mutable_data_ptr();
    return ncclAllReduce(data, data, inout.numel(), nccl_type(inout.scalar_type()), ncclSum, comm, stream);
  });
}

WorkPtr NcclGroup::reduce_scatter(at::Tensor input, at::Tensor out, const std::string& label) {
  check_parts(out, input, size());
  return post(CollectiveKind::kReduceScatter, {input, out}, label, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclReduceScatter(input.const_data_ptr(), out.mutable_data_ptr(), out.numel(),
                             nccl_type(input.scalar_type()), ncclSum, comm, stream);
  });
}

WorkPtr NcclGroup::all_gather(at::Tensor input, at::Tensor out, const std::string& label) {
  check_parts(input, out, size());
  return post(CollectiveKind::kAllGather, {out, input}, label, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(input.const_data_ptr(), out.mutable_data_ptr(), input.nbytes(), ncclUint8, comm,
                         stream);
  });
}

WorkPtr NcclGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
  return post(CollectiveKind::kBroadcast, {inout}, label, [&](ncclComm_t comm, cudaStream_t stream) {
    void* data = inout.mutable_data_ptr();
    return ncclBroadcast(data, data, inout.nbytes(), ncclUint8, root, comm, stream);
  });
}

// NCCL has no barrier. An all-reduce of one number ends only after all ranks have posted it.
WorkPtr NcclGroup::barrier(const std::string& label) {
  const at::Tensor token = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(device_));
  return post(CollectiveKind::kBarrier, {token}, label, [&](ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(token.const_data_ptr(), token.mutable_data_ptr(), 1, ncclInt32, ncclSum, comm,
                         stream);
  });
}

// `tensors`: the first holds all data.
WorkPtr NcclGroup::post(CollectiveKind kind, const std::vector<at::Tensor>& tensors, const std::string& label,
                        const Launch& launch) {
  communicator_.check();
  const c10::cuda::CUDAGuard on_device(device_);
  const c10::cuda::CUDAStream stream = communicator_.stream();
  at::cuda::CUDAEvent ready;
  ready.record();
  ready.block(stream);

  const uint64_t bytes = kind == CollectiveKind::kBarrier ? 0 : tensors.front().nbytes();
  auto work = std::make_unique<NcclWork>(communicator_, control_, log_.next(kind, bytes, label));
  if (kind == CollectiveKind::kReduceScatter) work->check_finite(tensors.back());
  if (kind == CollectiveKind::kAllReduce) work->check_finite(tensors.front());
  check_nccl(launch(communicator_.comm(), stream.stream()), "to start " + work->header().text());
  for (const at::Tensor& tensor : tensors) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
  work->record_launch();
  return work;
}

}  // namespace tutti
