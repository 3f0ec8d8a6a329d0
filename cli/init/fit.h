#pragma once

#include <cstdint>

namespace tutti {

// Longer than a first try should take.
bool is_long(double epoch_s);

// The largest of some sizes of pictures with which an epoch is not long, if its time goes with their area;
// the smallest if there is none. 0 = the size stays. Pixels a side.
int64_t shorter_size(int64_t size, double epoch_s);

// Threads that read batches as fast as the model takes them; 0 if one thread can do both.
int64_t threads_for(double load_ms, double batch_ms, int64_t cores);

}  // namespace tutti
