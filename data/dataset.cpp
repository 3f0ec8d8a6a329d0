#include "data/dataset.h"

#include "runtime/random.h"

namespace tutti {

int64_t Dataset::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  if (!shuffle) return position;
  const Draw draw = Draw(seed, "order").at(static_cast<uint64_t>(epoch));
  return static_cast<int64_t>(
      Permutation(static_cast<uint64_t>(size()), draw)(static_cast<uint64_t>(position)));
}

}  // namespace tutti
