#include "collectives/text_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace tutti {
namespace {

constexpr int64_t kBytes = TextExchange::kMaxBytes + 1;

[[noreturn]] void give_up(const Group& group, Nanoseconds patience) {
  std::string who;
  for (const int rank : group.late()) who += (who.empty() ? "rank " : ", rank ") + std::to_string(rank);
  throw CollectiveError((who.empty() ? "another rank" : who) + " does not get ready to train: waited for " +
                        std::to_string(static_cast<int>(seconds(patience))) + " s");
}

}  // namespace

TextExchange::TextExchange(Group& group, const std::string& mine)
    : size_(group.size()),
      mine_(at::zeros({kBytes}, at::kByte)),
      all_(at::empty({size_ * kBytes}, at::kByte)) {
  std::memcpy(mine_.data_ptr(), mine.data(), std::min<std::size_t>(mine.size(), kMaxBytes));
  work_ = group.all_gather(mine_, all_, "agreement");
}

std::vector<std::string> TextExchange::texts() const {
  std::vector<std::string> texts;
  for (int r = 0; r < size_; ++r) texts.emplace_back(static_cast<const char*>(all_.data_ptr()) + r * kBytes);
  return texts;
}

std::vector<std::string> exchange_texts(Group& group, const std::string& mine, Nanoseconds patience) {
  TextExchange exchange(group, mine);
  const WorkPtr work = exchange.take_work();
  const TimePoint until = std::chrono::steady_clock::now() + patience;
  while (!work->done()) {
    if (std::chrono::steady_clock::now() > until) give_up(group, patience);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return exchange.texts();
}

}  // namespace tutti
