#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensors/tree.h"

namespace tutti {

// Samples by index. Reading is thread-safe and has no state, so that any rank can take any sample at any
// time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual SampleSpec spec() const = 0;

  // The samples at `indices`, stacked: every leaf [indices.size(), ...]. Duplicates are allowed.
  virtual Batch get(std::span<const int64_t> indices) const = 0;

  // The epoch's order: the sample at `position` of epoch `epoch`. Default: a counter-based permutation of all
  // samples keyed by (seed, epoch) when `shuffle`, else the identity.
  virtual int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const;

  // Reads everything and throws UserError (file, array, row, value) on the first bad sample.
  virtual void scan() const {}

  // A hash of what it would yield, cheap (sizes, names, a few samples), to tell datasets apart in a
  // checkpoint.
  virtual uint64_t digest() const = 0;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

}  // namespace tutti
