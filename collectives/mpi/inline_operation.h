#pragma once

#include "collectives/mpi/operation.h"

namespace tutti {

// A small collective among ranks of one host: each puts its data into its slot, and every rank makes its
// result from all slots by itself, so that there is one wait instead of two.
class InlineOperation final : public SlotOperation {
 public:
  using SlotOperation::SlotOperation;
  bool advance() override;

 private:
  void prepare(ControlSlot& slot) override;
  void take_result();
  void sum(int64_t first, int64_t count, std::byte* out);
  void gather();
};

}  // namespace tutti
