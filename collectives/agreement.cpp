#include "collectives/agreement.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace tutti {
namespace {

constexpr char kText = '+';
constexpr char kTrouble = '!';

[[noreturn]] void give_up(const Group& group, Nanoseconds timeout) {
  std::string who;
  for (const int rank : group.late()) who += (who.empty() ? "rank " : ", rank ") + std::to_string(rank);
  throw CollectiveError((who.empty() ? "another rank" : who) + " does not get ready to train: waited for " +
                        std::to_string(static_cast<int>(seconds(timeout))) + " s");
}

}  // namespace

AgreementRound::AgreementRound(Group& group, const Statement& mine)
    : group_(group),
      mine_(mine.trouble.empty() ? kText + mine.text : kTrouble + mine.trouble),
      heard_(group.size()) {
  post_part();
}

bool AgreementRound::done() {
  while (!all_ended_ && part_->done()) {
    hear_part();
    if (!all_ended_) post_part();
  }
  return all_ended_;
}

void AgreementRound::post_part() {
  mine_part_ = at::zeros({kPartBytes}, at::kByte);
  all_parts_ = at::empty({group_.size() * kPartBytes}, at::kByte);
  said_ += static_cast<int64_t>(mine_.copy(static_cast<char*>(mine_part_.data_ptr()), kPartBytes, said_));
  part_ = group_.all_gather(mine_part_, all_parts_, "agreement");
}

// A statement ends with the first part that has room left.
void AgreementRound::hear_part() {
  all_ended_ = true;
  const char* part = static_cast<const char*>(all_parts_.const_data_ptr());
  for (std::string& heard : heard_) {
    const std::size_t bytes = strnlen(part, kPartBytes);
    heard.append(part, bytes);
    all_ended_ = all_ended_ && bytes < kPartBytes;
    part += kPartBytes;
  }
}

std::vector<Statement> AgreementRound::statements() const {
  std::vector<Statement> all;
  for (const std::string& heard : heard_)
    all.push_back(heard[0] == kTrouble ? Statement{.trouble = heard.substr(1)}
                                       : Statement{.text = heard.substr(1)});
  return all;
}

std::vector<Statement> agree(Group& group, const Statement& mine, Nanoseconds timeout) {
  AgreementRound round(group, mine);
  const TimePoint until = std::chrono::steady_clock::now() + timeout;
  while (!round.done()) {
    if (std::chrono::steady_clock::now() > until) give_up(group, timeout);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return round.statements();
}

}  // namespace tutti
