#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace tutti {

// What memory is held for.
enum class HeldFor { kParameters, kGathered, kGradients, kOptimizer, kBatch, kCopies };
constexpr std::size_t kHeldFor = 6;
// "parameters", "gathered parameters", ...
const char* name(HeldFor purpose);

// Bytes by purpose.
struct HeldBytes {
  std::array<double, kHeldFor> bytes = {};

  double& operator[](HeldFor purpose) { return bytes[static_cast<std::size_t>(purpose)]; }
  double operator[](HeldFor purpose) const { return bytes[static_cast<std::size_t>(purpose)]; }
  HeldBytes& operator+=(const HeldBytes& other);
  double total() const;
};

// The accounts of those who hold memory. Activations have no owner: they are what is measured beside.
class MemoryLedger {
 public:
  // `bytes`: what the owner holds, asked at each `held`; must be callable as long as the ledger lives.
  void add(HeldFor purpose, std::function<double()> bytes) {
    accounts_.emplace_back(purpose, std::move(bytes));
  }
  HeldBytes held() const;

 private:
  std::vector<std::pair<HeldFor, std::function<double()>>> accounts_;
};

// The bytes of tensors, which `tensor_of` finds in the entries of a range.
template <class Entries, class TensorOf>
double bytes_of(const Entries& entries, TensorOf tensor_of) {
  double bytes = 0;
  for (const auto& entry : entries) bytes += static_cast<double>(tensor_of(entry).nbytes());
  return bytes;
}

}  // namespace tutti
