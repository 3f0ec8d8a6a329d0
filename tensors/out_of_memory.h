#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace c10 {
class Error;
}

namespace tutti {

// How a rank ran out of memory, and what held it; in bytes.
struct OutOfMemoryReport {
  double ranks = 0;  // 1: this rank did
  double asked = 0;  // 0 where that is not known
  double used = 0;
  double budget = 0;  // 0 = none: the system had no more
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  double batch = 0;
  double copies = 0;  // that checkpoints are made of
};

// One's own row of a flat float64 table, a row a rank, whose sum over ranks is the table of all.
at::Tensor report_row(const OutOfMemoryReport& mine, int rank, int world);
std::vector<OutOfMemoryReport> reports_of(const at::Tensor& table);  // by rank

// "rank 1 ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)": the lowest rank that did; of others
// only the number.
std::string out_of_memory_text(const std::vector<OutOfMemoryReport>& all);

// "parameters 0.2 MB, ..., checkpoint copy 0.3 MB, the rest (activations, batches read ahead) 9.1 MB", of the
// same rank.
std::string what_held_memory(const std::vector<OutOfMemoryReport>& all);

// A step or an evaluation that memory does not suffice for, though it was done in parts. All ranks throw it
// alike, and what is trained is as it was.
class AgreedOutOfMemory : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// Memory ran out on this rank alone, in `what`, which cannot be done again in smaller parts: it ends the run.
class OutOfMemory : public OperatingError {
 public:
  OutOfMemory(const std::string& what, const c10::Error& error);
};

// Runs what cannot be done again in smaller parts. Throws OutOfMemory.
void guard_memory(const std::string& what, const std::function<void()>& work);

}  // namespace tutti
