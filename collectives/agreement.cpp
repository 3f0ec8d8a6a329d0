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
constexpr char kLackOfMemory = '#';

std::string packed(const Statement& mine) {
  if (mine.trouble.empty()) return kText + mine.text;
  return (mine.lacks_memory ? kLackOfMemory : kTrouble) + mine.trouble;
}

Statement unpacked(const std::string& received) {
  if (received[0] == kText) return {.text = received.substr(1)};
  return {.trouble = received.substr(1), .lacks_memory = received[0] == kLackOfMemory};
}

[[noreturn]] void throw_timeout(const Group& group, Nanoseconds timeout) {
  std::string who;
  for (const int rank : group.late()) who += (who.empty() ? "rank " : ", rank ") + std::to_string(rank);
  throw CollectiveError((who.empty() ? "another rank" : who) + " does not get ready to train: waited for " +
                        std::to_string(static_cast<int>(seconds(timeout))) + " s");
}

}  // namespace

AgreementRound::AgreementRound(Group& group, const Statement& mine)
    : group_(group), mine_(packed(mine)), received_(group.size()) {
  post_part();
}

bool AgreementRound::done() {
  while (!all_ended_ && part_->done()) {
    receive_part();
    if (!all_ended_) post_part();
  }
  return all_ended_;
}

void AgreementRound::post_part() {
  mine_part_ = at::zeros({kPartBytes}, at::kByte);
  all_parts_ = at::empty({group_.size() * kPartBytes}, at::kByte);
  sent_ += static_cast<int64_t>(mine_.copy(static_cast<char*>(mine_part_.data_ptr()), kPartBytes, sent_));
  part_ = group_.all_gather(mine_part_, all_parts_, "agreement");
}

// The first part that is not full ends a statement.
void AgreementRound::receive_part() {
  all_ended_ = true;
  const char* part = static_cast<const char*>(all_parts_.const_data_ptr());
  for (std::string& received : received_) {
    const std::size_t bytes = strnlen(part, kPartBytes);
    received.append(part, bytes);
    all_ended_ = all_ended_ && bytes < kPartBytes;
    part += kPartBytes;
  }
}

std::vector<Statement> AgreementRound::statements() const {
  std::vector<Statement> all;
  for (const std::string& received : received_) all.push_back(unpacked(received));
  return all;
}

std::vector<std::string> agreed_texts(const std::vector<Statement>& statements) {
  std::vector<std::string> texts;
  for (const Statement& statement : statements) {
    if (!statement.trouble.empty()) {
      const bool own = statements[0].trouble != statement.trouble;
      const int rank = static_cast<int>(texts.size());
      throw UserError(own ? rank_message(rank, statement.trouble) : statement.trouble,
                      statement.lacks_memory ? EndKind::kOutOfMemoryElsewhere : EndKind::kRefused);
    }
    texts.push_back(statement.text);
  }
  return texts;
}

std::vector<Statement> agree(Group& group, const Statement& mine, Nanoseconds timeout) {
  const TimePoint until = std::chrono::steady_clock::now() + timeout;
  const auto wait_until = [&](const auto& done) {
    while (!done()) {
      if (std::chrono::steady_clock::now() > until) throw_timeout(group, timeout);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  wait_until([&] { return group.ready(); });
  AgreementRound round(group, mine);
  wait_until([&] { return round.done(); });
  return round.statements();
}

}  // namespace tutti
