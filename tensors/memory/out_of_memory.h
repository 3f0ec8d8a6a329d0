#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tensors/memory/ledger.h"
#include "tensors/memory/torch_error.h"

namespace tutti {

// A rank's lack of memory, and the use of its memory; in bytes.
struct OutOfMemoryReport {
  double ranks = 0;  // 1 if this rank ran out of memory
  double asked = 0;  // 0 = unknown
  double used = 0;
  double budget = 0;       // 0 = none: the system had no more memory
  HeldBytes held = {};     // by those who hold memory
  std::string words = {};  // FailedAllocation's; the first 96 bytes reach other ranks
};

// A flat float64 table with a row per rank: only this rank's row is filled. The sum over ranks has all rows.
at::Tensor report_row(const OutOfMemoryReport& mine, int rank, int world);
std::vector<OutOfMemoryReport> reports_of(const at::Tensor& table);  // by rank

// "rank 1 ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)", then advice, if any. Names the lowest
// such rank, and how many other ranks.
std::string out_of_memory_text(const std::vector<OutOfMemoryReport>& all);

// "parameters 0.2 MB, ..., checkpoint copy 0.3 MB, the rest (activations, batches read ahead) 9.1 MB".
std::string what_held_memory(const std::vector<OutOfMemoryReport>& all);

// A step or an evaluation runs out of memory even with the smallest microbatch. All ranks throw this error,
// and no weights have changed.
class AgreedOutOfMemory : public OperatingError {
 public:
  AgreedOutOfMemory(EndKind kind, const std::string& message) : OperatingError(message, kind) {}
};

// This rank ran out of memory in `what`, which cannot be split into smaller parts. Ends the run.
class OutOfMemory : public OperatingError {
 public:
  OutOfMemory(const std::string& what, const std::exception& error);
};

// Runs work that cannot be split; turns a lack of memory into OutOfMemory.
void guard_memory(const std::string& what, const std::function<void()>& work);

}  // namespace tutti
