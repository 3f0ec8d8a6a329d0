#pragma once

#include <cstdint>

namespace tutti {

constexpr int64_t kSquareLanes = 16;

// A row's squares are summed in lanes: a lane's numbers are `lane`, `lane` + 16 and so on. Then lanes 8 to 15
// are added to 0 to 7, 4 to 7 to 0 to 3, and so on. The product of two float32 is exact in float64, so that a
// sum has the same bits whether a processor multiplies and adds at once or not. For kernels of all devices.
constexpr double square_lane(const float* row, int64_t columns, int64_t lane) {
  double sum = 0;
  for (int64_t i = lane; i < columns; i += kSquareLanes) sum += static_cast<double>(row[i]) * row[i];
  return sum;
}

}  // namespace tutti
