// Times image operations. Reads requests from the standard input, one a line: an operation, its parameter,
// the height and width of the image, a number of threads, each of which changes an image of its own. Answers
// with nanoseconds an image and the Adler-32 of the result. Without requests ("--all") it prints a table.
// bench/images.py sends this program and Pillow the same requests.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <time.h>

#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "data/transforms/augmentations/image_operations.h"

namespace tutti {
namespace {

constexpr int64_t kLeastNs = 20'000'000;

// A slope with noise; peer_images.py makes the same.
at::Tensor bench_image(int64_t size) {
  at::Tensor image = at::empty({size, size, 3}, at::kByte);
  auto pixels = image.accessor<uint8_t, 3>();
  for (uint32_t y = 0; y < size; ++y)
    for (uint32_t x = 0; x < size; ++x)
      for (uint32_t c = 0; c < 3; ++c) {
        const uint32_t noise = (x * 73856093U) ^ (y * 19349663U) ^ (c * 83492791U);
        pixels[y][x][c] = static_cast<uint8_t>(x + y / 2 + 60 * c + (noise >> 3) % 48);
      }
  return image;
}

uint32_t adler32(const at::Tensor& bytes) {
  uint32_t low = 1, high = 0;
  const uint8_t* data = bytes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    low = (low + data[i]) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

// Nanoseconds an image.
struct Pace {
  double processor, clock;
};

int64_t thread_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Each thread works `repeats` times. Processor time is this thread's.
Pace measure(int64_t repeats, int threads, const auto& work) {
  const auto repeat = [&] {
    for (int64_t i = 0; i < repeats; ++i) work();
  };
  const auto begin = std::chrono::steady_clock::now();
  const int64_t thread_begin = thread_ns();
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(repeat);
  repeat();
  const auto processor = static_cast<double>(thread_ns() - thread_begin);
  others.clear();
  const std::chrono::duration<double, std::nano> clock = std::chrono::steady_clock::now() - begin;
  return {processor / static_cast<double>(repeats), clock.count() / static_cast<double>(repeats * threads)};
}

Pace pace_of(const ImageOperation& operation, const at::Tensor& image, double parameter, int threads) {
  const auto work = [&] { operation.apply(image, parameter); };
  for (int64_t repeats = 1;; repeats *= 2) {
    const Pace pace = measure(repeats, threads, work);
    if (pace.processor * static_cast<double>(repeats) >= kLeastNs) return pace;
  }
}

void answer_requests() {
  std::string name;
  double parameter = 0;
  int64_t size = 0;
  int threads = 0;
  while (std::cin >> name >> parameter >> size >> threads) {
    const at::Tensor image = bench_image(size);
    for (const ImageOperation& operation : image_operations())
      if (operation.name == name) {
        const Pace pace = pace_of(operation, image, parameter, threads);
        std::cout << pace.processor << ' ' << pace.clock << ' ' << adler32(operation.apply(image, parameter))
                  << std::endl;
      }
  }
}

void print_all() {
  const auto draws = make_draws(1, {.name = "bench"});
  for (const ImageOperation& operation : image_operations())
    for (const int64_t size : {32, 224}) {
      const at::Tensor image = bench_image(size);
      const double parameter = operation.draw(9, image, *draws);
      std::cout << std::left << std::setw(20) << operation.name << std::right << std::setw(4) << size
                << std::setw(12) << std::llround(pace_of(operation, image, parameter, 1).processor)
                << " ns\n";
    }
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  at::set_num_threads(1);
  if (argc > 1 && std::string(argv[1]) == "--all")
    tutti::print_all();
  else
    tutti::answer_requests();
}
