#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "recipe/options.h"

namespace at {
class Tensor;
}

namespace tutti {

class TensorTree;
using Batch = TensorTree;

// Says which array of a batch is meant: by its name, or by its number in the order of the batch (0 is the
// first). Composer's input_key and target_key.
class BatchKey {
 public:
  BatchKey(std::string name) : name_(std::move(name)) {}  // NOLINT: a name is a key
  BatchKey(const char* name) : name_(name) {}             // NOLINT
  explicit BatchKey(int64_t number) : number_(number) {}

  // The array. Throws UserError with the existing names if the batch has no such array.
  const at::Tensor& get(const Batch& batch) const;
  // Replaces the array; the tensor that was there keeps its values.
  void set(Batch& batch, at::Tensor tensor) const;

  // As in a recipe: "input", "0".
  std::string text() const { return name_.empty() ? std::to_string(number_) : name_; }
  static BatchKey parse(const Setting& setting) {  // errors name the key
    if (setting.is_integer() && setting.integer() >= 0) return BatchKey(setting.integer());
    if (!setting.is_text() || setting.text().empty())
      setting.fail("expected the name of an array, or its number: the first is 0");
    return setting.text();
  }

 private:
  std::string name_in(const Batch& batch) const;

  std::string name_;  // "" = by number
  int64_t number_ = 0;
};

template <>
struct OptionType<BatchKey> {
  static constexpr KeyType type = KeyType::kAny;
  static std::string text(const BatchKey& key) { return key.text(); }
  static BatchKey read(const Setting& key) { return BatchKey::parse(key); }
};

}  // namespace tutti
