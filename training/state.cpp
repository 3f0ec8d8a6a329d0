#include "training/state.h"

namespace tutti {

void State::stop_training() { max_duration = timestamp.get(TimeUnit::kBatch); }

}  // namespace tutti
