#include "training/state.h"

namespace tutti {

void State::to_next_batch(int64_t samples, int64_t tokens, double seconds) {
  before_batch = timestamp;
  timestamp.to_next_batch(samples, tokens, seconds);
}

void State::stop_training() { max_duration = timestamp.get(TimeUnit::kBatch); }

}  // namespace tutti
