#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "runtime/clock.h"

namespace tutti {

// One rank's message in an agreement round.
struct Statement {
  std::string trouble = {};  // the error that stops the rank, or ""
  std::string text = {};
  bool lacks_memory = false;  // the trouble
};

// One exchange between all ranks before training: every rank sends a statement, of any length and without
// zero bytes, and receives all statements. Runs an all_gather of kPartBytes a rank until all statements are
// sent.
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
  void receive_part();

  Group& group_;
  std::string mine_;
  int64_t sent_ = 0;                   // bytes of mine_
  std::vector<std::string> received_;  // by rank
  bool all_ended_ = false;
  at::Tensor mine_part_, all_parts_;
  WorkPtr part_;
};

// The texts of all statements, by rank. If ranks state trouble, throws the lowest rank's trouble as a
// UserError of kRefused, the same on all ranks. The error names that rank, except rank 0 and a trouble that
// all ranks share.
std::vector<std::string> agreed_texts(const std::vector<Statement>& statements);

// Runs one round, once the group is ready, and blocks until its end. Call before the actors run. Returns all
// statements, by rank. Throws CollectiveError after `timeout`, naming the missing ranks.
std::vector<Statement> agree(Group& group, const Statement& mine,
                             Nanoseconds timeout = std::chrono::seconds(60));

}  // namespace tutti
