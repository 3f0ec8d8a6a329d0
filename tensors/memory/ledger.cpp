#include "tensors/memory/ledger.h"

#include <numeric>

namespace tutti {

const char* name(HeldFor purpose) {
  switch (purpose) {
    case HeldFor::kParameters:
      return "parameters";
    case HeldFor::kGathered:
      return "gathered parameters";
    case HeldFor::kGradients:
      return "gradients";
    case HeldFor::kOptimizer:
      return "optimizer state";
    case HeldFor::kBatch:
      return "the batch";
    case HeldFor::kCopies:
      return "checkpoint copy";
  }
  return "";
}

HeldBytes& HeldBytes::operator+=(const HeldBytes& other) {
  for (std::size_t i = 0; i < kHeldFor; ++i) bytes[i] += other.bytes[i];
  return *this;
}

double HeldBytes::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

HeldBytes MemoryLedger::held() const {
  HeldBytes held;
  for (const auto& [purpose, bytes] : accounts_) held[purpose] += bytes();
  return held;
}

}  // namespace tutti
