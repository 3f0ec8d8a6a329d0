#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "runtime/clock.h"

namespace tutti {

// A rank's word in a round of an agreement.
struct Statement {
  std::string trouble = {};  // why the rank cannot go on, or ""
  std::string text = {};
};

// One round of the ranks' agreement before they train: every rank makes a statement, of any length and
// without zero bytes, and hears those of all. Takes one all_gather of kPartBytes a rank, and one more while
// some statement has not ended.
class AgreementRound final : public Work {
 public:
  static constexpr int64_t kPartBytes = 2048;

  AgreementRound(Group& group, const Statement& mine);

  bool done() override;
  const CollectiveHeader& header() const override { return part_->header(); }
  bool finite() const override { return true; }
  std::vector<Statement> statements() const;  // by rank, once done

 private:
  void post_part();
  void hear_part();

  Group& group_;
  std::string mine_;
  int64_t said_ = 0;                // bytes of mine_
  std::vector<std::string> heard_;  // by rank
  bool all_ended_ = false;
  at::Tensor mine_part_, all_parts_;
  WorkPtr part_;
};

// A whole round, blocking: for the time before the actors run. Gives all statements, by rank. Throws
// CollectiveError after `timeout`, naming the ranks that are missing.
std::vector<Statement> agree(Group& group, const Statement& mine,
                             Nanoseconds timeout = std::chrono::seconds(60));

}  // namespace tutti
