#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tutti {

// Places pieces in samples: each in the first sample with room, among the `most_open` samples that were begun
// last, or else in a new sample. Samples are numbered from 0.
class FirstFit {
 public:
  FirstFit(int64_t sample_length, std::size_t most_open) : length_(sample_length), most_open_(most_open) {}

  struct Place {
    int64_t sample = 0;
    int64_t begin = 0;  // in the sample
  };
  // `length`: at most the sample's.
  Place place(int64_t length);

  int64_t begun() const { return first_ + std::ssize(used_); }  // samples
  bool is_complete(int64_t sample) const;                       // gets no further piece

 private:
  int64_t length_;
  std::size_t most_open_;
  int64_t first_ = 0;         // of the samples begun last
  std::deque<int64_t> used_;  // of each of them
};

}  // namespace tutti
