#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "collectives/group.h"
#include "runtime/clock.h"

namespace tutti {

// Every rank says a text (cut at kMaxBytes) and hears what all say: how ranks agree before they train.
class TextExchange {
 public:
  static constexpr int64_t kMaxBytes = 2047;

  TextExchange(Group& group, const std::string& mine);

  WorkPtr take_work() { return std::move(work_); }  // for the caller to drive; once
  std::vector<std::string> texts() const;           // by rank, once that is done

 private:
  int size_;
  at::Tensor mine_, all_;
  WorkPtr work_;
};

// The same, waiting for it: before the actors run. Throws CollectiveError, naming who is missing, once it has
// waited for `patience`.
std::vector<std::string> exchange_texts(Group& group, const std::string& mine,
                                        Nanoseconds patience = std::chrono::seconds(60));

}  // namespace tutti
