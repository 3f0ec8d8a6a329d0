#pragma once

#include <c10/core/Device.h>
#include <nccl.h>

#include <string>

#include "collectives/communicator.h"

namespace tutti {

// NCCL's communicator, not blocking. Sums of more than two ranks depend on NCCL's algorithm, which
// deterministic mode fixes.
class NcclCommunicator final : public Communicator {
 public:
  static CommunicatorId make_id();

  NcclCommunicator(const CommunicatorId& id, c10::DeviceIndex device, int rank, int size);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;

  bool ready() override;
  void all_reduce(const at::Tensor& inout) override;
  void reduce_scatter(const at::Tensor& whole, const at::Tensor& part) override;
  void all_gather(const at::Tensor& part, const at::Tensor& whole) override;
  void broadcast(const at::Tensor& inout, int root) override;
  std::string failure() override;
  void abort() noexcept override;

 private:
  void launched(ncclResult_t result, const char* call);

  c10::DeviceIndex device_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace tutti
