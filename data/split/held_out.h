#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

// What determines which samples are held out for evaluation.
struct SplitRequest {
  int64_t samples = 0;
  double held_out = 0.1;  // below 1: their share, else their number
  uint64_t seed = 0;
  std::vector<int64_t> classes = {};  // of each sample, whose shares are kept; empty: not stratified
  std::vector<int64_t> groups = {};   // of each sample; a group stays whole, whatever its classes
};

// True for each sample that is held out, a function of the request alone. Of each class as many as its share,
// rounded so that the sum is right; the last sample of a class is never held out. Classes that are too small
// for that are not looked at. Of groups, so many as fit the number, in a drawn order. Throws WrongKey
// of "split" and "split_by" if a part would be empty.
std::vector<bool> held_out_samples(const SplitRequest& request);

// The samples with the mark `held_out`, ascending.
std::vector<int64_t> samples_marked(const std::vector<bool>& marks, bool held_out);

// Groups for samples that are cut from one sequence: blocks of neighbours, of an eighth of what is held out.
std::vector<int64_t> groups_of_neighbours(int64_t samples, double held_out);

}  // namespace tutti
